package api

import (
	"context"
	"net/http"
	"sync"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
)

// watching serves the events of sessions while they happen.
type watching struct {
	events    bus.Events
	access    Access
	snapshots *snapshotCache
	streams   *streams
	timeouts  Timeouts
}

// watch streams the events of a session until the watcher leaves.
func (a watching) watch(w *exchange.Answer, r *http.Request) error {
	key, err := readableSession(w, r)
	if err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		return nil // a stream without a body never ends
	}
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	may := func() error { return a.checkStillAllowed(r, w.Caller, key) }
	release, ok := a.streams.add(&watcher{cancel: leave, check: may})
	if !ok {
		return exchange.Unavailable("unavailable", "the server is shutting down: come again")
	}
	defer release()
	// From here on Recheck knows this stream; what changed before is seen now.
	if err := may(); err != nil {
		return err
	}
	v := &viewer{key: key.text, snapshots: a.snapshots, out: newStream(w, a.timeouts, leave)}
	defer v.out.close()
	news, err := v.begin(ctx, a.events, r.Header.Get("Last-Event-ID"))
	if err != nil {
		if w.Status() == 0 {
			return err
		}
		return nil // the watcher will come again
	}
	// From here on an error is the end of the stream; the watcher comes again
	// and goes on where it was cut off.
	_ = v.follow(ctx, news)
	return nil
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

// recheck ends the streams of callers who may not watch any more.
func (s *streams) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.open {
		if w.check() != nil {
			w.cancel()
		}
	}
}

// checkStillAllowed returns why a caller who began to watch as was may not watch a session any
// more: the token is gone, belongs to another name now, or has lost the scope. It returns nil if
// the caller may.
func (a watching) checkStillAllowed(r *http.Request, was exchange.Caller, key sessionKey) error {
	is, err := a.access.identify(r)
	switch {
	case err != nil:
		return err
	case is.Name != was.Name || !is.MayWatch() || !is.MayReadAll() && !key.belongsTo(is):
		return exchange.Forbidden("this token may not watch this session any more")
	}
	return nil
}
