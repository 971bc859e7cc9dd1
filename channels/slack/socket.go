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
	slackgo "github.com/slack-go/slack"

	"parley/channels"
	"parley/channels/slack/events"
	"parley/tools/plainjson"
)

const (
	// drainTime is how long a socket that Slack is replacing may still deliver events.
	drainTime    = time.Minute
	writeTimeout = 5 * time.Second
	// stableAfter is how long a socket must have lasted for the next one to be opened without a wait.
	stableAfter = 10 * time.Second
	// maxDialWait is the longest wait between attempts to open a socket; it is short so that people are heard again
	// soon after an outage. maxWaitWithoutSocket is the longest wait while no other socket is open.
	maxDialWait          = 5 * time.Second
	maxWaitWithoutSocket = time.Second
	maxFrame             = 16 << 20
)

// socketAddresses asks Slack for the addresses of sockets.
type socketAddresses struct {
	api         *slackgo.Client
	hasAppToken bool // whether sockets can be opened
}

// CheckSocket asks Slack for a socket's address, to find out whether the app token is valid. If Slack refuses the
// token, it returns a *channels.SendError with the fault Stop.
func (a *socketAddresses) CheckSocket(ctx context.Context) error {
	_, err := a.next(ctx)
	return err
}

// next asks Slack for the address of the next socket. It fails with a *channels.SendError.
func (a *socketAddresses) next(ctx context.Context) (string, error) {
	if !a.hasAppToken {
		return "", &channels.SendError{
			Fault: channels.Stop, Code: "no_app_token", Setting: appToken,
			Remedy: "set an App-Level Token, which begins with xapp-: the channel can't receive without one", Err: errors.New("receiving needs an app_token"),
		}
	}
	ctx, t, done := startCall(ctx)
	defer done()
	_, address, err := a.api.StartSocketModeContext(ctx)
	if err == nil {
		return address, nil
	}
	e := asRepeatable(sendError(err, t))
	e.Setting = appToken
	switch {
	case e.Code == "missing_scope":
		e.Fault = channels.Stop
		e.Remedy = "it lacks the connections:write scope: generate another token under Basic Information → App-Level Tokens"
	case e.Fault == channels.Rejected:
		e.Fault = channels.Retry // Slack rejects this call, but may accept the next
	}
	return "", e
}

// sockets keeps the sockets of one call of Receive open and passes on what they deliver.
type sockets struct {
	addresses    *socketAddresses
	reachability *channels.Reachability
	outages      *outages
	timing       timing
	log          *slog.Logger
	handle       func(ctx context.Context, kind string, payload json.RawMessage, ack acknowledge)
}

// A socket is one WebSocket to Slack.
type socket struct {
	conn    *websocket.Conn
	began   time.Time
	leaving chan struct{} // closed when another socket should be opened in place of this one
	once    sync.Once

	// Only the reading goroutine uses these: lastHeard is when the socket last delivered something, and drainUntil
	// is until when a socket that is being replaced may still deliver events.
	lastHeard, drainUntil time.Time

	mu sync.Mutex // allows only one writer at a time, as gorilla's connections require
}

// markLeaving tells keepOpen to open another socket in place of this one.
func (k *socket) markLeaving() { k.once.Do(func() { close(k.leaving) }) }

// keepOpen keeps one socket open until ctx is done. It fails only if Slack refuses the token.
func (s *sockets) keepOpen(ctx context.Context) error {
	wait := &retryWait{longest: maxDialWait, keepsLongest: true}
	var reading sync.WaitGroup
	defer reading.Wait()
	for ctx.Err() == nil {
		k, err := s.dial(ctx)
		s.reachability.Note(err)
		if err != nil {
			if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Fault == channels.Stop {
				return err
			}
			s.outages.logOutage(ctx, err)
			wait.pause(ctx, err)
			continue
		}
		reading.Go(func() { s.readFrames(ctx, k) })
		select {
		case <-k.leaving:
		case <-ctx.Done():
			return nil
		}
		wait.longest = maxDialWait
		switch {
		case time.Since(k.began) >= stableAfter:
			wait.series.Reset()
			continue
		case s.outages.hasNoneOpen():
			wait.longest = maxWaitWithoutSocket
		}
		wait.pause(ctx, nil)
	}
	return nil
}

// dial opens a socket at an address that Slack gives. It fails with a *channels.SendError.
func (s *sockets) dial(ctx context.Context) (*socket, error) {
	address, err := s.addresses.next(ctx)
	if err != nil {
		return nil, err
	}
	ctx, _, done := startCall(ctx)
	defer done()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: callTimeout}
	conn, resp, err := dialer.DialContext(ctx, address, nil)
	if err != nil {
		// The address contains a ticket, and the error may contain the address.
		why := errors.New("the socket cannot be opened")
		if broken, ok := errors.AsType[*net.OpError](err); ok {
			why = fmt.Errorf("the socket cannot be opened: %w", broken)
		}
		if resp != nil {
			_ = resp.Body.Close() // nobody reads the text of the refusal
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

// readFrames reads a socket's frames until the socket ends, and handles or acknowledges each.
func (s *sockets) readFrames(ctx context.Context, k *socket) {
	ended := make(chan struct{})
	var pinging sync.WaitGroup
	pinging.Go(func() { k.sendPings(ctx, s.timing.pingInterval, ended) })
	defer func() {
		close(ended)
		k.markLeaving()
		_ = k.conn.Close() // the socket has ended
		pinging.Wait()
	}()
	k.conn.SetPingHandler(func(data string) error {
		// If a pong can't be written, that does not end the socket: silence does.
		_ = k.conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		return s.noteAlive(k)
	})
	greeted := false
	defer func() {
		if greeted {
			s.outages.noteClosed()
		}
	}()
	k.lastHeard = wallClock()
	for k.setReadDeadline(s.timing.maxSilence) == nil {
		_, data, err := k.conn.ReadMessage()
		if err != nil {
			s.noteSilence(ctx, k, greeted)
			return
		}
		if s.noteAlive(k) != nil {
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
				s.outages.noteOpened(ctx)
			}
		case "disconnect":
			s.log.LogAttrs(ctx, slog.LevelDebug, "a socket is replaced", slog.String("reason", safeCode(f.Reason)))
			k.markLeaving()
			k.drainUntil = time.Now().Add(drainTime) // it may deliver events until Slack closes it
		case events.Event, events.Interaction, events.Command:
			s.handle(ctx, f.Type, f.Payload, func(show any) { s.ack(ctx, k, f.Envelope, show) })
		default: // an unused kind, which Slack repeats if it is not acknowledged
			s.ack(ctx, k, f.Envelope, nil)
		}
	}
}

// noteAlive records a sign of life from Slack: a ping or a frame. The answer to our own ping doesn't count, because
// a proxy may answer on behalf of a socket that Slack no longer uses.
func (s *sockets) noteAlive(k *socket) error {
	k.lastHeard = wallClock()
	s.outages.noteHeard()
	return k.setReadDeadline(s.timing.maxSilence)
}

// setReadDeadline sets the time at which the socket is considered dead if it shows no sign of life before then.
func (k *socket) setReadDeadline(silence time.Duration) error {
	deadline := time.Now().Add(silence)
	if !k.drainUntil.IsZero() && k.drainUntil.Before(deadline) {
		deadline = k.drainUntil
	}
	if err := k.conn.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("bound a read: %w", err)
	}
	return nil
}

// noteSilence records a gap if a socket has ended because it delivered nothing: events that Slack sent to it may be
// lost, even if the other socket works.
func (s *sockets) noteSilence(ctx context.Context, k *socket, greeted bool) {
	now := wallClock()
	if ctx.Err() != nil || !greeted || !k.drainUntil.IsZero() || now.Sub(k.lastHeard) < s.timing.maxSilence*9/10 {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "a socket brings nothing anymore and is replaced")
	s.outages.noteLostSince(k.lastHeard, now)
}

// skipUnreadable logs a frame that can't be decoded. If the frame has an envelope id, skipUnreadable acknowledges
// it, because otherwise Slack would deliver the frame again and again.
func (s *sockets) skipUnreadable(ctx context.Context, k *socket, data []byte) {
	var loose map[string]json.RawMessage
	id := ""
	if json.Unmarshal(data, &loose) == nil {
		_ = json.Unmarshal(loose["envelope_id"], &id) // a malformed id stays ""
	}
	s.log.LogAttrs(ctx, slog.LevelError, "what a socket brought cannot be read and is left out",
		slog.String("envelope", id), slog.Int("bytes", len(data)))
	s.ack(ctx, k, id, nil)
}

// ack tells Slack that the event in an envelope has arrived; show is what Slack shows to the person, or nil. Slack
// accepts that only on the socket that delivered the event. If that socket is gone, Slack delivers the event again,
// and the publisher recognizes it by its id.
func (s *sockets) ack(ctx context.Context, k *socket, envelope string, show any) {
	if envelope == "" {
		return
	}
	data, err := plainjson.Marshal(struct {
		Envelope string `json:"envelope_id"`
		Payload  any    `json:"payload,omitempty"`
	}{envelope, show})
	if err == nil {
		err = k.write(data)
	}
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelDebug, "an event could not be acknowledged", slog.String("envelope", envelope))
	}
}

// write sends one frame.
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

// sendPings keeps a socket's connection to Slack alive, and closes it when ctx is done.
func (k *socket) sendPings(ctx context.Context, every time.Duration, ended <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			// The reader notices a failed ping because nothing arrives anymore.
			_ = k.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout))
		case <-ctx.Done():
			_ = k.conn.Close() // ends the reader
			return
		case <-ended:
			return
		}
	}
}
