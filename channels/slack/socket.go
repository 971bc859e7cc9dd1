package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"parley/channels"
	"parley/channels/slack/events"
)

const (
	// leavingTime is how long a socket that Slack replaces may still bring events.
	leavingTime  = time.Minute
	writeTimeout = 5 * time.Second
	// goodLife is how long a socket must have lasted for the next to be opened
	// without a wait.
	goodLife = 10 * time.Second
	// dialWait is the longest wait between attempts to open a socket, so that
	// people are heard again soon after an outage. aloneWait is the longest where
	// no other socket is open.
	dialWait  = 5 * time.Second
	aloneWait = time.Second
	maxFrame  = 16 << 20
)

// sockets keeps the sockets of one Receive open and reads them.
type sockets struct {
	channel *Channel
	outages *outages
	take    func(ctx context.Context, kind string, payload json.RawMessage, ack acknowledge)
}

// A socket is one WebSocket to Slack.
type socket struct {
	conn    *websocket.Conn
	began   time.Time
	leaving chan struct{} // closed when another is to be opened in its place
	once    sync.Once

	// Only the reader uses these: when Slack was heard on the socket, and, once it
	// is to be replaced, until when it may bring events.
	last, until time.Time

	mu sync.Mutex // one writer at a time, as gorilla's connections demand
}

func (k *socket) leave() { k.once.Do(func() { close(k.leaving) }) }

// keepOpen keeps one socket open until ctx is done. It returns the error of a
// token that is refused.
func (s *sockets) keepOpen(ctx context.Context) error {
	wait := &retryWait{most: dialWait, firm: true}
	var reading sync.WaitGroup
	defer reading.Wait()
	for ctx.Err() == nil {
		k, err := s.dial(ctx)
		s.channel.contact.Note(err)
		if err != nil {
			if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
				return err
			}
			s.outages.failed(ctx, err)
			wait.pause(ctx, err)
			continue
		}
		reading.Go(func() { s.read(ctx, k) })
		select {
		case <-k.leaving:
		case <-ctx.Done():
			return nil
		}
		wait.most = dialWait
		switch {
		case time.Since(k.began) >= goodLife:
			wait.series.Reset()
			continue
		case s.outages.noneOpen():
			wait.most = aloneWait
		}
		wait.pause(ctx, nil)
	}
	return nil
}

// CheckSocket asks Slack where a socket would be opened, to find out whether the
// app token is good. A token that is refused gives a *channels.SendError of kind
// Stop.
func (c *Channel) CheckSocket(ctx context.Context) error {
	_, err := c.socketAddress(ctx)
	return err
}

// socketAddress asks Slack for the address of the next socket.
func (c *Channel) socketAddress(ctx context.Context) (string, error) {
	if !c.app {
		return "", &channels.SendError{
			Fault: channels.Stop, Code: "no_app_token", Setting: appToken,
			Remedy: "receiving needs an App-Level Token, which begins with xapp-", Err: errors.New("receiving needs an app_token"),
		}
	}
	ctx, t, done := begin(ctx)
	defer done()
	_, address, err := c.api.StartSocketModeContext(ctx)
	if err == nil {
		return address, nil
	}
	e := repeatable(sendError(err, t))
	e.Setting = appToken
	switch {
	case e.Code == "missing_scope":
		e.Fault = channels.Stop
		e.Remedy = "it lacks the scope connections:write: generate another under Basic Information → App-Level Tokens"
	case e.Fault == channels.Rejected:
		e.Fault = channels.Retry // Slack rejects this call; the next may be accepted
	}
	return "", e
}

// dial opens a socket at the address that Slack gives.
func (s *sockets) dial(ctx context.Context) (*socket, error) {
	address, err := s.channel.socketAddress(ctx)
	if err != nil {
		return nil, err
	}
	ctx, _, done := begin(ctx)
	defer done()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: callTimeout}
	conn, resp, err := dialer.DialContext(ctx, address, nil)
	if err != nil {
		// The address holds a ticket; the error may hold the address.
		why := errors.New("the socket cannot be opened")
		if broken, ok := errors.AsType[*net.OpError](err); ok {
			why = fmt.Errorf("the socket cannot be opened: %w", broken)
		}
		if resp != nil {
			_ = resp.Body.Close() // the refusal's text says nothing that we could use
			why = fmt.Errorf("the socket cannot be opened: HTTP status %d", resp.StatusCode)
		}
		return nil, &channels.SendError{Fault: channels.Retry, Code: "no_socket", Err: why}
	}
	conn.SetReadLimit(maxFrame)
	return &socket{conn: conn, began: time.Now(), leaving: make(chan struct{})}, nil
}

// A frame is one message of the Socket Mode protocol.
type frame struct {
	Type     string          `json:"type"`
	Envelope string          `json:"envelope_id"`
	Reason   string          `json:"reason"`
	Payload  json.RawMessage `json:"payload"`
}

// read reads a socket's frames until the socket ends.
func (s *sockets) read(ctx context.Context, k *socket) {
	ended := make(chan struct{})
	var pinging sync.WaitGroup
	pinging.Go(func() { k.ping(ctx, s.channel.pulse.ping, ended) })
	defer func() {
		close(ended)
		k.leave()
		_ = k.conn.Close() // it has ended
		pinging.Wait()
	}()
	k.conn.SetPingHandler(func(data string) error {
		// A pong that cannot be written does not end the socket: silence does.
		_ = k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		return s.alive(k)
	})
	greeted := false
	defer func() {
		if greeted {
			s.outages.closed()
		}
	}()
	k.last = wallClock()
	for k.wait(s.channel.pulse.silence) == nil {
		_, data, err := k.conn.ReadMessage()
		if err != nil {
			s.silent(ctx, k, greeted)
			return
		}
		if s.alive(k) != nil {
			return
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			s.skipUnreadable(ctx, k, data)
			continue
		}
		switch f.Type {
		case "hello":
			if !greeted {
				greeted = true
				s.outages.opened(ctx)
			}
		case "disconnect":
			s.channel.log.LogAttrs(ctx, slog.LevelDebug, "a socket is replaced", slog.String("reason", known(f.Reason)))
			k.leave()
			k.until = time.Now().Add(leavingTime) // it may bring events until Slack closes it
		case events.Event, events.Interaction, events.Command:
			s.take(ctx, f.Type, f.Payload, func(show any) { s.ack(ctx, k, f.Envelope, show) })
		default: // not used here, but Slack repeats what is not acknowledged
			s.ack(ctx, k, f.Envelope, nil)
		}
	}
}

// alive notes a sign of life: a ping or a frame of Slack's own. An answer to our
// ping is none, as a proxy may answer for a socket that Slack does not use any
// more.
func (s *sockets) alive(k *socket) error {
	k.last = wallClock()
	s.outages.heard()
	return k.wait(s.channel.pulse.silence)
}

// wait sets the read deadline: a socket without a sign of life until then is dead.
func (k *socket) wait(silence time.Duration) error {
	deadline := time.Now().Add(silence)
	if !k.until.IsZero() && k.until.Before(deadline) {
		deadline = k.until
	}
	if err := k.conn.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("bound a read: %w", err)
	}
	return nil
}

// silent notes a gap if a socket has ended because nothing came through it: the
// events that Slack has sent to it may be lost, even if the other socket lives.
func (s *sockets) silent(ctx context.Context, k *socket, greeted bool) {
	now := wallClock()
	if ctx.Err() != nil || !greeted || !k.until.IsZero() || now.Sub(k.last) < s.channel.pulse.silence*9/10 {
		return
	}
	s.channel.log.LogAttrs(ctx, slog.LevelWarn, "a socket brings nothing any more and is replaced")
	s.outages.deaf(k.last, now)
}

// skipUnreadable logs a frame that cannot be read. If it names an envelope, that
// is acknowledged, or Slack would bring it again and again.
func (s *sockets) skipUnreadable(ctx context.Context, k *socket, data []byte) {
	var loose map[string]json.RawMessage
	id := ""
	if json.Unmarshal(data, &loose) == nil {
		_ = json.Unmarshal(loose["envelope_id"], &id) // "" then
	}
	s.channel.log.LogAttrs(ctx, slog.LevelError, "what a socket brought cannot be read and is left out",
		slog.String("envelope", id), slog.Int("bytes", len(data)))
	s.ack(ctx, k, id, nil)
}

// ack tells Slack that an event has arrived. Slack takes that only on the socket
// that brought the event. If the socket is gone, Slack brings the event again, and
// the publisher knows it by its id.
func (s *sockets) ack(ctx context.Context, k *socket, envelope string, show any) {
	if envelope == "" {
		return
	}
	data, err := json.Marshal(struct {
		Envelope string `json:"envelope_id"`
		Payload  any    `json:"payload,omitempty"`
	}{envelope, show})
	if err == nil {
		err = k.write(data)
	}
	if err != nil {
		s.channel.log.LogAttrs(ctx, slog.LevelDebug, "an event could not be acknowledged", slog.String("envelope", envelope))
	}
}

func (k *socket) write(data []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("bound a write: %w", err)
	}
	if err := k.conn.WriteMessage(websocket.TextMessage, data); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// ping keeps a socket's connection open on the way to Slack, and closes it when
// ctx is done.
func (k *socket) ping(ctx context.Context, every time.Duration, ended <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// One that fails is met by the reader as silence.
			_ = k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		case <-ctx.Done():
			_ = k.conn.Close() // ends the reader
			return
		case <-ended:
			return
		}
	}
}
