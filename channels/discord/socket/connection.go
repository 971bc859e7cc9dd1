package socket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"parley/channels"
	"parley/tools/plainjson"
)

// protocolVersion is the version of the gateway's protocol and of the REST API.
const protocolVersion = "9"

const (
	dialTimeout  = 20 * time.Second
	beginTimeout = 60 * time.Second // the maximum time from dialing until the session has begun
	writeTimeout = 10 * time.Second
	// maxHeartbeatGrace is the longest time for which a connection may deliver nothing after a heartbeat was due;
	// after that it counts as dead.
	maxHeartbeatGrace = 10 * time.Second
	maxFrame          = 64 << 20 // the maximum size of a frame in bytes; a large server is described in one frame
)

// The gateway's operations.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

// A frame is one message of the gateway's protocol.
type frame struct {
	Op   int             `json:"op"`
	Type string          `json:"t,omitempty"`
	Seq  int64           `json:"s,omitempty"`
	Data json.RawMessage `json:"d"`
}

// A connection is one WebSocket to the gateway.
type connection struct {
	conn              *websocket.Conn
	heartbeatInterval time.Duration // set by the gateway in its hello
	seq               atomic.Int64  // the number of the last event, which heartbeats carry
	heartbeatAnswered atomic.Bool   // whether the last heartbeat was answered
	sessionBegun      bool          // whether the gateway has begun or resumed the session

	mu sync.Mutex // allows only one writer at a time, as gorilla's connections require
}

// dial opens a WebSocket to the gateway. It fails with a *channels.SendError.
func dial(ctx context.Context, address string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTimeout}
	conn, resp, err := dialer.DialContext(ctx, withVersion(address), nil)
	if err == nil {
		conn.SetReadLimit(maxFrame)
		// The default answer to a close frame contains its code, and 1000 would end the session.
		conn.SetCloseHandler(func(int, string) error { return nil })
		return &connection{conn: conn}, nil
	}
	why := errors.New("the gateway's connection cannot be opened")
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		why = fmt.Errorf("the gateway's connection cannot be opened: %w", broken)
	}
	if resp != nil {
		_ = resp.Body.Close() // nobody reads the text of the refusal
		why = fmt.Errorf("the gateway's connection cannot be opened: HTTP status %d", resp.StatusCode)
	}
	return nil, &channels.SendError{Fault: channels.Retry, Code: "no_gateway", Err: why}
}

// close ends the connection without a close frame: the codes 1000 and 1001 would end the
// session too.
func (c *connection) close() { _ = c.conn.Close() }

// serve begins the session and passes events to s.Handle until the connection ends. It returns the reason why the
// connection ended.
func (c *connection) serve(ctx context.Context, s *Socket) error {
	ended := make(chan struct{})
	var beside sync.WaitGroup
	defer beside.Wait()
	defer close(ended)
	defer c.close()
	beside.Go(func() {
		select {
		case <-ctx.Done():
			c.close() // ends the reader
		case <-ended:
		}
	})
	if err := c.beginOrResume(s); err != nil {
		s.session.url = "" // other gateway servers know the session too
		return err
	}
	beside.Go(func() { c.sendHeartbeats(ended) })
	limit := time.Now().Add(beginTimeout)
	for {
		if err := c.setReadDeadline(limit); err != nil {
			return err
		}
		f, err := c.read()
		if err != nil {
			return s.handleClose(ctx, err)
		}
		if ended, err := c.handleFrame(ctx, s, f); ended {
			return err
		}
	}
}

// beginOrResume waits for the gateway's hello, then asks it to begin a session, or to resume the one that the
// Socket remembers.
func (c *connection) beginOrResume(s *Socket) error {
	_ = c.conn.SetReadDeadline(time.Now().Add(s.HelloTimeout)) // fails only if reading fails too
	f, err := c.read()
	if err != nil {
		return &channels.SendError{Fault: channels.Retry, Code: "no_hello", Err: errors.New("the gateway says nothing")}
	}
	var hello struct {
		Interval int `json:"heartbeat_interval"` // milliseconds
	}
	if f.Op != opHello || json.Unmarshal(f.Data, &hello) != nil || hello.Interval <= 0 {
		return &channels.SendError{Fault: channels.Retry, Code: "no_hello", Err: errors.New("the gateway did not say hello")}
	}
	c.heartbeatInterval = time.Duration(hello.Interval) * time.Millisecond
	c.heartbeatAnswered.Store(true)
	c.seq.Store(s.session.seq)
	if s.session.id != "" {
		return c.send(opResume, map[string]any{"token": "Bot " + s.Token, "session_id": s.session.id, "seq": s.session.seq})
	}
	return c.send(opIdentify, map[string]any{
		"token": "Bot " + s.Token, "intents": s.Intents,
		"properties": map[string]string{"os": "linux", "browser": "parley", "device": "parley"},
	})
}

// setReadDeadline limits the next read: a connection that delivers nothing, not even answers to heartbeats, is
// dead. Until the session has begun, limit applies to the read too.
func (c *connection) setReadDeadline(limit time.Time) error {
	deadline := time.Now().Add(c.heartbeatInterval + min(c.heartbeatInterval, maxHeartbeatGrace))
	if !c.sessionBegun && limit.Before(deadline) {
		deadline = limit
	}
	if err := c.conn.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("bound a read: %w", err)
	}
	return nil
}

// read reads one frame. A frame that is not JSON gets Op -1, so that it is skipped: reading it again would not
// help.
func (c *connection) read() (frame, error) {
	_, data, err := c.conn.ReadMessage()
	if err != nil {
		return frame{}, err //nolint:wrapcheck // handleClose reads it
	}
	var f frame
	if json.Unmarshal(data, &f) != nil {
		return frame{Op: -1}, nil
	}
	return f, nil
}

// handleFrame does what a frame asks for. ended is true if the connection is over; err then says why.
func (c *connection) handleFrame(ctx context.Context, s *Socket, f frame) (ended bool, err error) {
	switch f.Op {
	case opDispatch:
		return c.handleEvent(ctx, s, f)
	case opHeartbeat:
		return false, c.sendHeartbeat()
	case opHeartbeatAck:
		c.heartbeatAnswered.Store(true)
	case opReconnect:
		return true, errors.New("told to reconnect")
	case opInvalidSession:
		var resumable bool
		if json.Unmarshal(f.Data, &resumable) != nil || !resumable {
			s.forgetSession()
		}
		return true, errors.New("the session is no longer known")
	case -1:
		s.Log.LogAttrs(ctx, slog.LevelError, "what the gateway brought cannot be read and is left out")
	}
	return false, nil
}

// handleEvent passes an event to s.Handle and remembers its number, after which a resumed session continues. ended
// reports that the connection is of no use, because what Discord says of its session can't be read.
func (c *connection) handleEvent(ctx context.Context, s *Socket, f frame) (ended bool, err error) {
	switch f.Type {
	case Ready:
		if err := s.storeSession(f.Data); err != nil {
			s.forgetSession()
			return true, err
		}
		c.sessionBegun = true
		s.reportReached(ctx)
	case Resumed:
		c.sessionBegun = true
		s.reportReached(ctx)
	}
	s.Handle(ctx, Event{f.Type, f.Data})
	if f.Seq > 0 {
		s.session.seq = f.Seq
		c.seq.Store(f.Seq)
	}
	return false, nil
}

// sendHeartbeats sends heartbeats until the connection ends. The first one comes at a random time, so that bots
// that lost their connections together do not send heartbeats together. If a heartbeat is not answered before the
// next one is due, the connection is dead, and is closed.
func (c *connection) sendHeartbeats(ended <-chan struct{}) {
	wait := time.NewTimer(rand.N(c.heartbeatInterval))
	defer wait.Stop()
	for {
		select {
		case <-ended:
			return
		case <-wait.C:
		}
		if !c.heartbeatAnswered.Swap(false) || c.sendHeartbeat() != nil {
			c.close() // ends the reader
			return
		}
		wait.Reset(c.heartbeatInterval)
	}
}

// sendHeartbeat sends one heartbeat with the number of the last event.
func (c *connection) sendHeartbeat() error {
	if seq := c.seq.Load(); seq > 0 {
		return c.send(opHeartbeat, seq)
	}
	return c.send(opHeartbeat, nil)
}

// send writes one frame.
func (c *connection) send(op int, data any) error {
	body, err := plainjson.Marshal(map[string]any{"op": op, "d": data})
	if err != nil {
		return fmt.Errorf("encode a frame: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return fmt.Errorf("bound a write: %w", err)
	}
	if err := c.conn.WriteMessage(websocket.TextMessage, body); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
