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
)

// version is that of the gateway's protocol, and of the REST API.
const version = "9"

const (
	dialTimeout  = 20 * time.Second
	beginTimeout = 60 * time.Second // from there to the session
	writeTimeout = 10 * time.Second
	// mostGrace is how long after a heartbeat was due a connection that brings nothing
	// counts as dead.
	mostGrace = 10 * time.Second
	maxFrame  = 64 << 20 // a large server is told of in one piece
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

// A frame is one message of the protocol.
type frame struct {
	Op   int             `json:"op"`
	Type string          `json:"t,omitempty"`
	Seq  int64           `json:"s,omitempty"`
	Data json.RawMessage `json:"d"`
}

// A connection is one WebSocket to the gateway.
type connection struct {
	conn     *websocket.Conn
	interval time.Duration // of heartbeats
	seq      atomic.Int64  // of the last event, for heartbeats
	answered atomic.Bool   // the last heartbeat was answered
	begun    bool          // the session has begun, or goes on

	mu sync.Mutex // one writer at a time, as gorilla's connections demand
}

// dial opens a connection. Its error is a *channels.SendError.
func dial(ctx context.Context, address string) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTimeout}
	conn, resp, err := dialer.DialContext(ctx, withVersion(address), nil)
	if err == nil {
		conn.SetReadLimit(maxFrame)
		// The usual answer to a close frame has its code, and 1000 would end the session.
		conn.SetCloseHandler(func(int, string) error { return nil })
		return &connection{conn: conn}, nil
	}
	why := errors.New("the gateway's connection cannot be opened")
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		why = fmt.Errorf("the gateway's connection cannot be opened: %w", broken)
	}
	if resp != nil {
		_ = resp.Body.Close() // the refusal's text says nothing that we could use
		why = fmt.Errorf("the gateway's connection cannot be opened: HTTP status %d", resp.StatusCode)
	}
	return nil, &channels.SendError{Fault: channels.Retry, Code: "no_gateway", Err: why}
}

// close ends the connection without a close frame: codes 1000 and 1001 would end the
// session too.
func (c *connection) close() { _ = c.conn.Close() }

// serve greets Discord and hands on events until the connection ends. It returns why.
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
	if err := c.greet(s); err != nil {
		s.session.url = "" // other servers know the session as well
		return err
	}
	beside.Go(func() { c.beat(ended) })
	limit := time.Now().Add(beginTimeout)
	for {
		if err := c.expect(limit); err != nil {
			return err
		}
		f, err := c.read()
		if err != nil {
			return s.refused(ctx, err)
		}
		if ended, err := c.take(ctx, s, f); ended {
			return err
		}
	}
}

// greet waits for the server's hello and begins the session, or goes on with it.
func (c *connection) greet(s *Socket) error {
	_ = c.conn.SetReadDeadline(time.Now().Add(s.Hello)) // fails only where reading does
	f, err := c.read()
	if err != nil {
		return &channels.SendError{Fault: channels.Retry, Code: "no_hello", Err: errors.New("the gateway says nothing")}
	}
	var hello struct {
		Interval int `json:"heartbeat_interval"` // milliseconds
	}
	if f.Op != opHello || json.Unmarshal(f.Data, &hello) != nil || hello.Interval <= 0 {
		return &channels.SendError{Fault: channels.Retry, Code: "no_hello", Err: errors.New("the gateway does not say hello")}
	}
	c.interval = time.Duration(hello.Interval) * time.Millisecond
	c.answered.Store(true)
	c.seq.Store(s.session.seq)
	if s.session.id != "" {
		return c.send(opResume, map[string]any{"token": "Bot " + s.Token, "session_id": s.session.id, "seq": s.session.seq})
	}
	return c.send(opIdentify, map[string]any{
		"token": "Bot " + s.Token, "intents": s.Intents,
		"properties": map[string]string{"os": "linux", "browser": "parley", "device": "parley"},
	})
}

// expect bounds the next read: a connection that brings nothing, answers to
// heartbeats neither, is dead. Until the session has begun limit bounds it too.
func (c *connection) expect(limit time.Time) error {
	deadline := time.Now().Add(c.interval + min(c.interval, mostGrace))
	if !c.begun && limit.Before(deadline) {
		deadline = limit
	}
	if err := c.conn.SetReadDeadline(deadline); err != nil {
		return fmt.Errorf("bound a read: %w", err)
	}
	return nil
}

// read reads a frame. One that is no JSON is passed over: nothing that is tried again
// would make it readable.
func (c *connection) read() (frame, error) {
	_, data, err := c.conn.ReadMessage()
	if err != nil {
		return frame{}, err //nolint:wrapcheck // refused reads it
	}
	var f frame
	if json.Unmarshal(data, &f) != nil {
		return frame{Op: -1}, nil
	}
	return f, nil
}

// take does what a frame asks for, and tells whether the connection has ended by it.
func (c *connection) take(ctx context.Context, s *Socket, f frame) (ended bool, err error) {
	switch f.Op {
	case opDispatch:
		return c.dispatch(ctx, s, f)
	case opHeartbeat:
		return false, c.heartbeat()
	case opHeartbeatAck:
		c.answered.Store(true)
	case opReconnect:
		return true, errors.New("told to connect anew")
	case opInvalidSession:
		var resumable bool
		if json.Unmarshal(f.Data, &resumable) != nil || !resumable {
			s.forget()
		}
		return true, errors.New("the session is not known any more")
	case -1:
		s.Log.LogAttrs(ctx, slog.LevelError, "what the gateway brought cannot be read and is left out")
	}
	return false, nil
}

// dispatch hands on an event.
func (c *connection) dispatch(ctx context.Context, s *Socket, f frame) (ended bool, err error) {
	switch f.Type {
	case Ready:
		if err := s.begun(f.Data); err != nil {
			s.forget()
			return true, err
		}
		c.begun = true
		s.reached(ctx)
	case Resumed:
		c.begun = true
		s.reached(ctx)
	}
	s.Handle(ctx, Event{f.Type, f.Data})
	if f.Seq > 0 {
		s.session.seq = f.Seq
		c.seq.Store(f.Seq)
	}
	return false, nil
}

// beat sends heartbeats until the connection ends, the first at a random moment, so
// that bots cut off together do not beat together. One that was not answered by the
// time of the next says that the connection is dead.
func (c *connection) beat(ended <-chan struct{}) {
	wait := time.NewTimer(rand.N(c.interval))
	defer wait.Stop()
	for {
		select {
		case <-ended:
			return
		case <-wait.C:
		}
		if !c.answered.Swap(false) || c.heartbeat() != nil {
			c.close() // ends the reader
			return
		}
		wait.Reset(c.interval)
	}
}

func (c *connection) heartbeat() error {
	if seq := c.seq.Load(); seq > 0 {
		return c.send(opHeartbeat, seq)
	}
	return c.send(opHeartbeat, nil)
}

func (c *connection) send(op int, data any) error {
	body, err := json.Marshal(map[string]any{"op": op, "d": data})
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
