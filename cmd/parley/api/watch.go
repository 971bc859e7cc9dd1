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
	"strconv"
	"sync"
	"time"

	"parley/bus"
)

// watchSession streams the events of a session until the watcher leaves.
func (a *API) watchSession(w *answer, r *http.Request) error {
	key, err := session(w, r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil // a stream without a body never ends
	}
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	may := func() error { return a.stillWatches(r, w.caller, key) }
	release, ok := a.streams.add(&watcher{leave: leave, may: may})
	if !ok {
		return &refusal{status: http.StatusServiceUnavailable, code: "unavailable", retry: retryLost, message: "the server is shutting down: come again"}
	}
	defer release()
	// From here on Recheck knows this stream; what changed before is seen now.
	if err := may(); err != nil {
		return err
	}
	v := &viewer{key: key.text, views: a.views, out: newStream(w, a.cfg.Timeouts, leave)}
	defer v.out.close()
	news, err := v.begin(ctx, a.cfg.Events, r.Header.Get("Last-Event-ID"))
	if err != nil {
		if w.status == 0 {
			return err
		}
		return nil // it will come again
	}
	// From here on an error is the end of the stream; the watcher comes again
	// and goes on where it was cut off.
	_ = v.follow(ctx, news)
	return nil
}

// A viewer is one who watches a session.
//
// Without a past that is still held, it is given a snapshot: the subscription
// stands first and the log is read then, so nothing falls between the two, and
// what both have is dropped by its block's number. What the log does not have
// yet is the answer that the model is giving just then. Where its beginning was
// missed there is a hole: events go out without an id, so that a stream that is
// cut off begins with a snapshot again, until the answer begins anew or is over,
// when a second snapshot has the whole of it.
type viewer struct {
	key   string
	views *views
	out   *stream

	logged map[string]int  // by turn: blocks that the last snapshot had; nil before one was needed
	holes  map[string]bool // by turn
}

// begin subscribes, and sends a snapshot where one is needed.
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
	return news, v.renew(ctx)
}

// renew sends a snapshot, with a hole in each turn that runs.
func (v *viewer) renew(ctx context.Context) error {
	told, err := v.views.of(ctx, v.key)
	if err != nil {
		return fmt.Errorf("read session %s for a snapshot: %w", v.key, err)
	}
	v.logged, v.holes = told.known, map[string]bool{}
	for _, turn := range told.runs {
		v.holes[turn] = true
	}
	return v.out.write(told.frame)
}

// follow sends what happens until ctx is done or the watcher is gone.
func (v *viewer) follow(ctx context.Context, news iter.Seq2[bus.Event, error]) error {
	for e, err := range news {
		switch {
		case errors.Is(err, bus.ErrGone): // it was too slow
			err = v.renew(ctx)
		case err == nil:
			err = v.event(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *viewer) event(ctx context.Context, e bus.Event) error {
	if v.logged != nil {
		old, err := v.compare(ctx, e)
		if old || err != nil {
			return err
		}
	}
	id := ""
	if len(v.holes) == 0 {
		id = strconv.FormatUint(e.ID, 10)
	}
	return v.out.send(id, e.Type, dataOf(e))
}

// compare holds an event against the snapshot: it says whether the snapshot has
// it, and whether it ends a hole.
func (v *viewer) compare(ctx context.Context, e bus.Event) (old bool, err error) {
	next := v.logged[e.Turn]
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
			err = v.renew(ctx)
			delete(v.holes, e.Turn)
		}
	}
	return false, err
}

// dataOf is what an event's data is: Block only where it is about one.
func dataOf(e bus.Event) any {
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
	case bus.Asked, bus.AskResolved:
		if e.Ask == nil {
			break
		}
		if e.Type == bus.Asked {
			return askOf(*e.Ask)
		}
		return resolvedOf(*e.Ask, e.Turn)
	}
	return struct {
		bus.Event
		Block int `json:"block,omitempty"`
	}{Event: e}
}

// A stream is a response of server-sent events. When nothing was sent for a
// while it says so itself; a watcher that takes too long to read is cut off.
type stream struct {
	w       *answer
	quiet   time.Duration
	timeout time.Duration
	leave   func()

	mu     sync.Mutex
	closed bool
	beat   *time.Timer
}

func newStream(w *answer, t Timeouts, leave func()) *stream {
	// Streams that begin together do not beat together.
	quiet := t.Quiet + rand.N(t.Quiet/2+1)
	return &stream{w: w, quiet: quiet, timeout: t.Write, leave: leave}
}

// open sends the head of the response.
func (s *stream) open() error { return s.write([]byte(": watching\n\n")) }

// send sends an event; one without an id leaves the watcher's last id as it is.
func (s *stream) send(id, kind string, data any) error {
	frame, err := frameOf(id, kind, data)
	if err != nil {
		return err
	}
	return s.write(frame)
}

// frameOf is an event as it goes over the wire.
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
	_ = s.w.control.SetWriteDeadline(time.Now().Add(s.timeout)) // a writer without one cannot hang
	_, err := s.w.Write(frame)
	if err == nil {
		err = s.w.control.Flush()
	}
	if err != nil {
		s.closed = true
		s.leave()
		return fmt.Errorf("write to a watcher: %w", err)
	}
	if s.beat == nil {
		s.beat = time.AfterFunc(s.quiet, s.alive)
	} else {
		s.beat.Reset(s.quiet)
	}
	return nil
}

// alive keeps whoever stands between from taking the stream for dead.
func (s *stream) alive() { _ = s.write([]byte(":\n\n")) }

// close ends the stream: when it returns, nothing writes to the response any more.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.beat != nil {
		s.beat.Stop()
	}
}

// streams knows how to end those that are open.
type streams struct {
	mu    sync.Mutex
	ended bool
	open  map[*watcher]struct{}
}

// A watcher is an open stream.
type watcher struct {
	leave func()       // ends it
	may   func() error // says why its caller may not watch any more
}

func newStreams() *streams { return &streams{open: map[*watcher]struct{}{}} }

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

// end ends all streams, and lets none begin.
func (s *streams) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for w := range s.open {
		w.leave()
	}
}

// Recheck ends the streams of those who may not watch any more. It is called when
// the tokens have changed.
func (a *API) Recheck() {
	a.streams.mu.Lock()
	defer a.streams.mu.Unlock()
	for w := range a.streams.open {
		if w.may() != nil {
			w.leave()
		}
	}
}

// stillWatches says why a caller may not watch a session any more: the token is
// gone, belongs to another name now, or has lost the scope.
func (a *API) stillWatches(r *http.Request, was caller, key sessionKey) error {
	is, err := a.identify(r)
	switch {
	case err != nil:
		return err
	case is.name != was.name || !is.listens() || !is.reads() && !key.belongsTo(is):
		return forbidden("this token may not watch this session any more")
	}
	return nil
}
