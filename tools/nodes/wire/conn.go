package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"parley/tools/plainjson"
)

// ErrTooLarge is returned for a frame of more than MaxFrame bytes. It was not sent, and the link can still be used.
var ErrTooLarge = errors.New("the frame is too large")

// Timing says how long the ends of a link wait for each other. Zero fields have defaults.
type Timing struct {
	Step    time.Duration // for each step of the beginning; 15 s
	Write   time.Duration // for a small frame; a large one gets more; 30 s
	Ping    time.Duration // between two pings; 30 s
	Silence time.Duration // a link without a byte from the other end for this long is dead; 90 s
	// Answer is how long a ping may stay unanswered. If it takes longer, together with the time between two pings, data
	// was held back on the way, and the link ends instead of reading it. Zero means no limit.
	Answer time.Duration
}

func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		set   *time.Duration
		usual time.Duration
	}{{&t.Step, 15 * time.Second}, {&t.Write, 30 * time.Second}, {&t.Ping, 30 * time.Second}, {&t.Silence, 90 * time.Second}} {
		if *d.set <= 0 {
			*d.set = d.usual
		}
	}
	return t
}

// minBytesPerSecond is the number of bytes per second that a link must take at least.
const minBytesPerSecond = 16 << 10

// A Conn is a link between a node and a server. Any number of goroutines may write, and one may read.
type Conn struct {
	ws     *websocket.Conn
	timing Timing

	writeMu sync.Mutex // gorilla's connections allow one writer at a time

	pingMu     sync.Mutex
	pingsSent  uint64      // how many pings were sent
	unanswered []time.Time // the times of the last pings that were not answered

	closing sync.Once
	closed  chan struct{}
	pings   sync.WaitGroup
}

func newConn(ws *websocket.Conn, t Timing) *Conn {
	return &Conn{ws: ws, timing: t.withDefaults(), closed: make(chan struct{})}
}

// begin makes the connection a link: from now on it is pinged, and ends if the other end is silent.
func (c *Conn) begin() {
	c.ws.SetReadLimit(MaxFrame)
	c.ws.SetPongHandler(func(data string) error { c.answered(data); return c.extendDeadline() })
	answer := c.ws.PingHandler()
	c.ws.SetPingHandler(func(data string) error { return errors.Join(c.extendDeadline(), answer(data)) })
	c.pings.Go(func() {
		every := time.NewTicker(c.timing.Ping)
		defer every.Stop()
		for {
			select {
			case <-c.closed:
				return
			case <-every.C:
				// If the ping cannot be sent, the next write fails too, or the silence ends the link.
				_ = c.ws.WriteControl(websocket.PingMessage, c.ping(), time.Now().Add(c.timing.Write))
			}
		}
	})
}

// ping returns the content of the next ping: its number.
func (c *Conn) ping() []byte {
	c.pingMu.Lock()
	defer c.pingMu.Unlock()
	c.pingsSent++
	if c.timing.Answer > 0 {
		c.unanswered = append(c.unanswered, time.Now())
	}
	return strconv.AppendUint(nil, c.pingsSent, 10)
}

// answered records that a ping was answered, and all before it.
func (c *Conn) answered(ping string) {
	c.pingMu.Lock()
	defer c.pingMu.Unlock()
	n, err := strconv.ParseUint(ping, 10, 64)
	if left := c.pingsSent - n; err == nil && n <= c.pingsSent && left < uint64(len(c.unanswered)) {
		c.unanswered = c.unanswered[uint64(len(c.unanswered))-left:]
	}
}

// errHeldBack is returned if the link is too slow: see Timing.Answer.
var errHeldBack = errors.New("the other end answers too late")

// isHeldBack reports whether the oldest unanswered ping is too old.
func (c *Conn) isHeldBack() bool {
	c.pingMu.Lock()
	defer c.pingMu.Unlock()
	return c.timing.Answer > 0 && len(c.unanswered) > 0 && time.Since(c.unanswered[0]) > c.timing.Answer
}

// extendDeadline records that the other end is alive.
func (c *Conn) extendDeadline() error { return c.ws.SetReadDeadline(time.Now().Add(c.timing.Silence)) }

// Read waits for the next frame of a type that this package knows. After an error the link can't be used anymore. The
// end of ctx closes the link.
func (c *Conn) Read(ctx context.Context) (Frame, error) {
	stop := context.AfterFunc(ctx, c.Close)
	defer stop()
	for {
		if err := c.extendDeadline(); err != nil {
			return Frame{}, c.readError(ctx, err)
		}
		f, err := c.receive(c.extendDeadline)
		if err == nil && c.isHeldBack() {
			err = errHeldBack
		}
		if err != nil {
			return Frame{}, c.readError(ctx, err)
		}
		if isKnownType(f.Type) {
			return f, nil
		}
	}
}

func (c *Conn) readError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	return fmt.Errorf("read from the link: %w", err)
}

// receive reads one message, and calls progress after each part of it: a large one may take long on a slow link.
func (c *Conn) receive(progress func() error) (f Frame, err error) {
	_, r, err := c.ws.NextReader()
	if err != nil {
		return f, err //nolint:wrapcheck // the callers say what they did
	}
	raw, err := io.ReadAll(&progressReader{r, progress})
	if err != nil {
		return f, err //nolint:wrapcheck // the callers say what they did
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("the frame is no JSON: %w", err)
	}
	return f, nil
}

// A progressReader is a reader that calls a function after each read.
type progressReader struct {
	io.Reader
	progress func() error
}

func (w *progressReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err == nil && w.progress != nil {
		err = w.progress()
	}
	return n, err //nolint:wrapcheck // io.EOF must stay as it is
}

// Write sends a frame. It returns before the frame has arrived. After any error except ErrTooLarge, the link can't be
// used anymore.
func (c *Conn) Write(f Frame) error {
	raw, err := plainjson.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode a frame: %w", err)
	}
	if len(raw) > MaxFrame {
		return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(raw))
	}
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	limit := c.timing.Write + time.Duration(len(raw)/minBytesPerSecond)*time.Second
	if err := c.ws.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return fmt.Errorf("bound a write: %w", err)
	}
	if err := c.ws.WriteMessage(websocket.TextMessage, raw); err != nil {
		return fmt.Errorf("write to the link: %w", err)
	}
	return nil
}

// Close ends the link, and all reads and writes on it.
func (c *Conn) Close() {
	c.closing.Do(func() {
		close(c.closed)
		_ = c.ws.Close() // an error loses nothing that isn't lost already
	})
	c.pings.Wait()
}

// readStep waits for a frame of one of those types during the handshake. Unlike Read, it waits for Timing.Step in
// total, whatever else the other end sends, and accepts only that many bytes.
func (c *Conn) readStep(limit int64, types ...string) (Frame, error) {
	c.ws.SetReadLimit(limit)
	if err := c.ws.SetReadDeadline(time.Now().Add(c.timing.Step)); err != nil {
		return Frame{}, fmt.Errorf("bound a step: %w", err)
	}
	for {
		f, err := c.receive(nil)
		if err != nil {
			return Frame{}, fmt.Errorf("wait for %s: %w", types[0], err)
		}
		if slices.Contains(types, f.Type) {
			return f, nil
		}
		if isKnownType(f.Type) {
			return Frame{}, fmt.Errorf("got the frame %s instead of %s", f.Type, types[0])
		}
	}
}

func isKnownType(kind string) bool {
	switch kind {
	case Hello, Challenge, Proof, Welcome, Refused, Call, Cancel, Ack, Progress, Result, Offer:
		return true
	}
	return false
}
