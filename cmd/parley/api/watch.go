package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/bus"
)

// watchSession streams the events of a session until the watcher leaves.
func (a *API) watchSession(w *response, r *http.Request) error {
	key, err := readableSession(w, r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil // a stream without a body never ends
	}
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	may := func() error { return a.checkStillAllowed(r, w.caller, key) }
	release, ok := a.streams.add(&watcher{cancel: leave, check: may})
	if !ok {
		return &refusal{status: http.StatusServiceUnavailable, code: "unavailable", retry: retryUnavailable, message: "the server is shutting down: come again"}
	}
	defer release()
	// From here on Recheck knows this stream; what changed before is seen now.
	if err := may(); err != nil {
		return err
	}
	v := &viewer{key: key.text, snapshots: a.snapshots, out: newStream(w, a.cfg.Timeouts, leave)}
	defer v.out.close()
	news, err := v.begin(ctx, a.cfg.Events, r.Header.Get("Last-Event-ID"))
	if err != nil {
		if w.status == 0 {
			return err
		}
		return nil // the watcher will come again
	}
	// From here on an error is the end of the stream; the watcher comes again
	// and goes on where it was cut off.
	_ = v.follow(ctx, news)
	return nil
}

// A viewer sends a session's events to one watcher.
//
// A watcher that was cut off names the last event that it has. If the events since then are not
// held any more, the viewer sends a snapshot of the session's newest turns in their place. It
// subscribes first and reads the log then, so nothing is missed between the two; what both have
// is dropped by the number of its block. The log does not have the answer that the model is
// giving at that moment. If the beginning of that answer was missed, the turn has a hole: its
// events go out without an id, so that a stream that is cut off begins with a snapshot again. The
// hole ends when the answer begins anew, or is over; then a second snapshot has all of it.
type viewer struct {
	key       string
	snapshots *snapshotCache
	out       *stream

	snapshotBlocks map[string]int  // how many blocks of each turn the last snapshot had; nil before one was needed
	holes          map[string]bool // the turns of whose current answer the watcher missed the beginning
	ended          []string        // the newest turns whose end was sent
}

// knownEnds is how many of the newest turns that ended a viewer knows.
const knownEnds = 64

// endedBefore reports whether an event says of a turn that it has ended, which the watcher knows: who
// takes a session over says it again if the log does not tell that the answer is published.
func (v *viewer) endedBefore(e bus.Event) bool {
	if e.Type != bus.TurnComplete && e.Type != bus.TurnError {
		return false
	}
	if slices.Contains(v.ended, e.Turn) {
		return true
	}
	v.ended = append(v.ended[max(0, len(v.ended)+1-knownEnds):], e.Turn)
	return false
}

// begin subscribes to the session's events after the one with lastID, and sends a snapshot if
// some of them are not held any more.
func (v *viewer) begin(ctx context.Context, events bus.Events, lastID string) (iter.Seq2[bus.Event, error], error) {
	feed := bus.SessionFeed(v.key)
	if after, err := strconv.ParseUint(lastID, 10, 64); err == nil && after > 0 {
		news, err := events.Subscribe(ctx, feed, after)
		if !errors.Is(err, bus.ErrGone) {
			if err != nil {
				return nil, fmt.Errorf("follow session %s: %w", v.key, err)
			}
			return news, v.out.open()
		}
	}
	news, err := events.Subscribe(ctx, feed, 0)
	if err != nil {
		return nil, fmt.Errorf("follow session %s: %w", v.key, err)
	}
	return news, v.sendSnapshot(ctx)
}

// sendSnapshot sends a snapshot of the session, and notes that of each turn that runs the current
// answer's beginning is missing.
func (v *viewer) sendSnapshot(ctx context.Context) error {
	told, err := v.snapshots.get(ctx, v.key)
	if err != nil {
		return fmt.Errorf("read session %s for a snapshot: %w", v.key, err)
	}
	v.snapshotBlocks, v.holes = told.blockCounts, map[string]bool{}
	for _, turn := range told.runningTurns {
		v.holes[turn] = true
	}
	return v.out.write(told.frame)
}

// follow sends the events until ctx is done or the watcher is gone.
func (v *viewer) follow(ctx context.Context, news iter.Seq2[bus.Event, error]) error {
	for e, err := range news {
		switch {
		case errors.Is(err, bus.ErrGone): // it was too slow
			err = v.sendSnapshot(ctx)
		case err == nil:
			err = v.sendEvent(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendEvent sends an event, unless the last snapshot has it already, or it ends a turn again.
func (v *viewer) sendEvent(ctx context.Context, e bus.Event) error {
	if v.endedBefore(e) {
		return nil
	}
	if v.snapshotBlocks != nil {
		old, err := v.inSnapshot(ctx, e)
		if old || err != nil {
			return err
		}
	}
	id := ""
	if len(v.holes) == 0 {
		id = strconv.FormatUint(e.ID, 10)
	}
	return v.out.send(id, e.Type, eventData(e))
}

// inSnapshot reports whether the last snapshot already has what an event says. If the event ends
// a hole, inSnapshot sends a new snapshot, which has the whole answer.
func (v *viewer) inSnapshot(ctx context.Context, e bus.Event) (old bool, err error) {
	next := v.snapshotBlocks[e.Turn]
	switch e.Type {
	case bus.BlockDelta, bus.BlockStop:
		return e.Block < next, nil
	case bus.BlockStart, bus.BlockReset:
		if e.Block == next { // an answer begins, or will begin anew
			delete(v.holes, e.Turn)
		}
		return e.Block < next, nil
	case bus.ToolStart, bus.ToolEnd, bus.TurnParked, bus.TurnComplete, bus.TurnError:
		// What was said before these is in the log, and what comes after them
		// comes to us.
		if v.holes[e.Turn] {
			err = v.sendSnapshot(ctx)
			delete(v.holes, e.Turn)
		}
	}
	return false, err
}

// eventData returns what is sent to watchers of an event; it has a block's number only if the
// event is about a block.
func eventData(e bus.Event) any {
	switch e.Type {
	case bus.BlockStart, bus.BlockDelta, bus.BlockStop, bus.BlockReset:
		return e
	case bus.Retried:
		if e.Retry == nil {
			break
		}
		return struct {
			Turn string `json:"turn"`
			*bus.Retry
		}{e.Turn, e.Retry}
	case bus.Compacted:
		if e.Compaction == nil {
			break
		}
		return struct {
			Turn string `json:"turn"`
			*bus.Compaction
		}{e.Turn, e.Compaction}
	case bus.Used:
		if e.Usage == nil {
			break
		}
		return struct {
			Turn string `json:"turn"`
			*bus.Usage
		}{e.Turn, e.Usage}
	case bus.Asked, bus.AskResolved:
		if e.Ask == nil {
			break
		}
		if e.Type == bus.Asked {
			return askOf(*e.Ask)
		}
		return resolvedAskOf(*e.Ask, e.Turn)
	}
	return struct {
		bus.Event
		Block int `json:"block,omitempty"`
	}{Event: e}
}

// A stream is a response of server-sent events to one watcher. When nothing was sent for a while
// it sends a heartbeat; it cuts off a watcher that reads too slowly.
type stream struct {
	w       *response
	quiet   time.Duration
	timeout time.Duration
	leave   func()

	mu        sync.Mutex
	closed    bool
	heartbeat *time.Timer
}

func newStream(w *response, t Timeouts, leave func()) *stream {
	// Streams that begin together do not send their heartbeats together.
	quiet := t.Quiet + rand.N(t.Quiet/2+1)
	return &stream{w: w, quiet: quiet, timeout: t.Write, leave: leave}
}

// open sends the header of the response.
func (s *stream) open() error { return s.write([]byte(": watching\n\n")) }

// send sends an event. If id is "", the watcher keeps the last id that it has, from which it goes
// on after a cut.
func (s *stream) send(id, kind string, data any) error {
	frame, err := frameOf(id, kind, data)
	if err != nil {
		return err
	}
	return s.write(frame)
}

// frameOf returns an event in the form that goes over the wire.
func frameOf(id, kind string, data any) ([]byte, error) {
	var buf bytes.Buffer
	if id != "" {
		buf.WriteString("id: " + id + "\n")
	}
	buf.WriteString("event: " + kind + "\ndata: ")
	enc := json.NewEncoder(&buf) // it ends with a newline, and has none within
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return nil, fmt.Errorf("encode an event: %w", err)
	}
	buf.WriteByte('\n')
	return buf.Bytes(), nil
}

// write sends a frame: an event or a comment as it goes over the wire. If the watcher does not
// take it in time, the stream ends.
func (s *stream) write(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return http.ErrServerClosed
	}
	if s.w.status == 0 {
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	_ = s.w.control.SetWriteDeadline(time.Now().Add(s.timeout)) // a writer that cannot have a deadline cannot hang
	_, err := s.w.Write(frame)
	if err == nil {
		err = s.w.control.Flush()
	}
	if err != nil {
		s.closed = true
		s.leave()
		return fmt.Errorf("write to a watcher: %w", err)
	}
	if s.heartbeat == nil {
		s.heartbeat = time.AfterFunc(s.quiet, s.sendHeartbeat)
	} else {
		s.heartbeat.Reset(s.quiet)
	}
	return nil
}

// sendHeartbeat sends a comment, so that proxies do not take a quiet stream for dead.
func (s *stream) sendHeartbeat() { _ = s.write([]byte(":\n\n")) }

// close ends the stream: after it has returned, nothing writes to the response.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.heartbeat != nil {
		s.heartbeat.Stop()
	}
}

// streams holds all open streams, so that they can be ended when the server stops or a token is
// withdrawn.
type streams struct {
	mu    sync.Mutex
	ended bool
	open  map[*watcher]struct{}
}

// A watcher is an open stream.
type watcher struct {
	cancel func()       // ends it
	check  func() error // returns why its caller may not watch any more; nil if the caller may
}

func newStreams() *streams { return &streams{open: map[*watcher]struct{}{}} }

// add registers a stream until release is called; ok is false once end was called.
func (s *streams) add(w *watcher) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.open[w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, w)
	}, true
}

// end ends all streams, and lets no new ones begin.
func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for w := range s.open {
		w.cancel()
	}
}

// Recheck ends the streams of callers who may not watch any more. It is called when the
// tokens have changed.
func (a *API) Recheck() {
	a.streams.mu.Lock()
	defer a.streams.mu.Unlock()
	for w := range a.streams.open {
		if w.check() != nil {
			w.cancel()
		}
	}
}

// checkStillAllowed returns why a caller who began to watch as was may not watch a session any
// more: the token is gone, belongs to another name now, or has lost the scope. It returns nil if
// the caller may.
func (a *API) checkStillAllowed(r *http.Request, was caller, key sessionKey) error {
	is, err := a.identify(r)
	switch {
	case err != nil:
		return err
	case is.name != was.name || !is.mayWatch() || !is.mayReadAll() && !key.belongsTo(is):
		return forbidden("this token may not watch this session any more")
	}
	return nil
}
