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
)

// A pulse is what is done again and again.
type pulse struct {
	ping    time.Duration // how often the way to Slack is kept open
	silence time.Duration // after how long without a ping of Slack's or an event a socket counts as dead
	save    time.Duration // how often the cursor is saved
	// What was missed and cannot be read is tried for so long, then put off, and
	// tried again after a while.
	patience time.Duration
	again    time.Duration
}

func usualPulse() pulse {
	return pulse{ping: 10 * time.Second, silence: 30 * time.Second, save: 5 * time.Second, patience: time.Minute, again: time.Minute}
}

const (
	// farewell is how long a socket that Slack replaces may still bring something.
	farewell     = time.Minute
	writeTimeout = 5 * time.Second
	// settled is how long a socket must have lasted for the next to be opened
	// without a wait.
	settled = 10 * time.Second
	// dialWait is the longest wait between attempts to open one, so that people
	// are heard again soon after an outage, and aloneWait where the last one that
	// was open has ended early.
	dialWait  = 5 * time.Second
	aloneWait = time.Second
	maxFrame  = 16 << 20
)

// A link is one WebSocket.
type link struct {
	conn    *websocket.Conn
	began   time.Time
	leaving chan struct{} // closed when another is to be opened in its place
	once    sync.Once

	// What the reader alone knows: when Slack was heard on it, and, once it is to
	// be replaced, until when it may bring something.
	last, until time.Time

	mu sync.Mutex // for writing
}

func (k *link) leave() { k.once.Do(func() { close(k.leaving) }) }

// socket keeps one socket open until ctx is done. It returns the error of a
// token that is refused.
func (r *receiver) socket(ctx context.Context) error {
	wait := &backoff{most: dialWait, firm: true}
	var reading sync.WaitGroup
	defer reading.Wait()
	for ctx.Err() == nil {
		k, err := r.dial(ctx)
		r.channel.contact.Note(err)
		if err != nil {
			if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
				return err
			}
			r.gaps.failed(ctx, err)
			wait.pause(ctx, err)
			continue
		}
		reading.Go(func() { r.read(ctx, k) })
		select {
		case <-k.leaving:
		case <-ctx.Done():
			return nil
		}
		wait.most = dialWait
		switch {
		case time.Since(k.began) >= settled:
			wait.last = 0
			continue
		case r.gaps.isAlone():
			wait.most = aloneWait
		}
		wait.pause(ctx, nil)
	}
	return nil
}

// CheckSocket asks Slack where a socket would be opened: whether the app token
// is good. One that is refused gives a *channels.SendError of kind Stop.
func (c *Channel) CheckSocket(ctx context.Context) error {
	_, err := c.socketAddress(ctx)
	return err
}

// appToken is the setting with the token for sockets.
const appToken = "app_token"

// socketAddress is where the next socket is to be opened.
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
		e.Fault = channels.Retry // what is said of this one call need not last
	}
	return "", e
}

// dial opens a socket where Slack says.
func (r *receiver) dial(ctx context.Context) (*link, error) {
	address, err := r.channel.socketAddress(ctx)
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
	return &link{conn: conn, began: time.Now(), leaving: make(chan struct{})}, nil
}

// A frame is what comes through a socket.
type frame struct {
	Type     string          `json:"type"`
	Envelope string          `json:"envelope_id"`
	Reason   string          `json:"reason"`
	Payload  json.RawMessage `json:"payload"`
}

// read takes what a socket brings until it ends.
func (r *receiver) read(ctx context.Context, k *link) {
	ended := make(chan struct{})
	var minding sync.WaitGroup
	minding.Go(func() { k.mind(ctx, r.channel.pulse.ping, ended) })
	defer func() {
		close(ended)
		k.leave()
		_ = k.conn.Close() // it has ended
		minding.Wait()
	}()
	k.conn.SetPingHandler(func(data string) error {
		// Lost pongs are no reason to end: what ends a socket is silence.
		_ = k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		return r.alive(k)
	})
	greeted := false
	defer func() {
		if greeted {
			r.gaps.closed()
		}
	}()
	k.last = wallClock()
	for k.wait(r.channel.pulse.silence) == nil {
		_, data, err := k.conn.ReadMessage()
		if err != nil {
			r.silent(ctx, k, greeted)
			return
		}
		if r.alive(k) != nil {
			return
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			r.quarantine(ctx, k, data)
			continue
		}
		switch f.Type {
		case "hello":
			if !greeted {
				greeted = true
				r.gaps.opened(ctx)
			}
		case "disconnect":
			r.channel.log.LogAttrs(ctx, slog.LevelDebug, "a socket is replaced", slog.String("reason", known(f.Reason)))
			k.leave()
			k.until = time.Now().Add(farewell) // it goes on bringing events until Slack closes it
		case "events_api":
			r.event(ctx, k, f, len(data))
		default: // of no use, but Slack wants to know that it came
			r.ack(ctx, k, f.Envelope)
		}
	}
}

// alive notes a sign of life of Slack's: a ping or a frame of its own. That our
// pings are answered is none, as somebody on the way may do that for a socket to
// which Slack brings nothing any more.
func (r *receiver) alive(k *link) error {
	k.last = wallClock()
	r.gaps.heard()
	return k.wait(r.channel.pulse.silence)
}

// wait sets until when the next sign of life is waited for.
func (k *link) wait(silence time.Duration) error {
	deadline := time.Now().Add(silence)
	if !k.until.IsZero() && k.until.Before(deadline) {
		deadline = k.until
	}
	if err := k.conn.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("bound a read: %w", err)
	}
	return nil
}

// silent deals with a socket that has ended. Where that was because nothing came
// through it, what Slack has given to it may be lost, though others were heard.
func (r *receiver) silent(ctx context.Context, k *link, greeted bool) {
	now := wallClock()
	if ctx.Err() != nil || !greeted || !k.until.IsZero() || now.Sub(k.last) < r.channel.pulse.silence*9/10 {
		return
	}
	r.channel.log.LogAttrs(ctx, slog.LevelWarn, "a socket brings nothing any more and is replaced")
	r.gaps.deaf(k.last, now)
}

// event takes an event out of its envelope.
func (r *receiver) event(ctx context.Context, k *link, f frame, size int) {
	var payload struct {
		Event json.RawMessage `json:"event"`
	}
	var kind struct {
		Type string `json:"type"`
	}
	m := new(message)
	err := json.Unmarshal(f.Payload, &payload)
	if err == nil {
		err = json.Unmarshal(payload.Event, &kind)
	}
	if err == nil && (kind.Type == "message" || kind.Type == "app_mention") {
		err = json.Unmarshal(payload.Event, m)
	}
	if err != nil {
		// Nothing that is tried again later would make it readable.
		r.channel.log.LogAttrs(ctx, slog.LevelError, "an event cannot be read and is left out",
			slog.String("envelope", f.Envelope), slog.Int("bytes", size))
		r.ack(ctx, k, f.Envelope)
		return
	}
	r.heard(ctx, m, func() { r.ack(ctx, k, f.Envelope) })
}

// quarantine deals with a frame that cannot be read: if it names an envelope,
// that is acknowledged, or Slack would bring it again and again.
func (r *receiver) quarantine(ctx context.Context, k *link, data []byte) {
	var loose map[string]json.RawMessage
	id := ""
	if json.Unmarshal(data, &loose) == nil {
		_ = json.Unmarshal(loose["envelope_id"], &id) // "" then
	}
	r.channel.log.LogAttrs(ctx, slog.LevelError, "what a socket brought cannot be read and is left out",
		slog.String("envelope", id), slog.Int("bytes", len(data)))
	r.ack(ctx, k, id)
}

// ack tells Slack that an event has arrived, on the socket that brought it. If
// that is gone, Slack brings the event again, and it is known by its id.
func (r *receiver) ack(ctx context.Context, k *link, envelope string) {
	if envelope == "" {
		return
	}
	data, err := json.Marshal(map[string]string{"envelope_id": envelope})
	if err == nil {
		err = k.write(data)
	}
	if err != nil {
		r.channel.log.LogAttrs(ctx, slog.LevelDebug, "an event could not be acknowledged", slog.String("envelope", envelope))
	}
}

func (k *link) write(data []byte) error {
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

// mind keeps the way open, and closes the socket when ctx is done.
func (k *link) mind(ctx context.Context, every time.Duration, ended <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// One that fails is met by the reader as silence.
			_ = k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		case <-ctx.Done():
			_ = k.conn.Close() // which ends the reader
			return
		case <-ended:
			return
		}
	}
}
