package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/api/snapshot"
)

// watchHandler serves the events of sessions as they happen.
type watchHandler struct {
	events    bus.Events
	access    Access
	scopes    readScopes
	snapshots *snapshot.Cache
	streams   *streams
	timeouts  Timeouts
}

// watch streams the events of a session until the watcher leaves, or is no longer allowed to watch.
func (a watchHandler) watch(w *exchange.Answer, r *http.Request) error {
	key, err := a.scopes.readable(w, r)
	if err != nil {
		return err
	}
	may := func() error { return a.checkStillAllowed(r, w.Caller, key) }
	return a.serve(w, r, may, func(ctx context.Context, out *stream) error {
		v := &viewer{key: key.text, caller: w.Caller, events: a.events, snapshots: a.snapshots, out: out}
		news, err := v.begin(ctx, r.Header.Get("Last-Event-ID"))
		if err != nil {
			return err
		}
		return v.follow(ctx, news)
	})
}

// serve opens a stream, and lets send send events until the watcher leaves, or may returns an error because the
// caller is no longer allowed to watch.
func (a watchHandler) serve(w *exchange.Answer, r *http.Request, may func() error, send func(context.Context, *stream) error) error {
	if r.Method == http.MethodHead {
		return nil // without a body the stream would never end
	}
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	release, ok := a.streams.add(&watcher{cancel: leave, check: may, endsElsewhere: w.Caller.SignIn != "" || w.Caller.MayReadOwn() && !w.Caller.MayReadAll()})
	if !ok {
		return exchange.Unavailable("unavailable", "the server is shutting down: try again later")
	}
	defer release()
	// From here on Recheck checks this stream; this call of may catches what changed before.
	if err := may(); err != nil {
		return err
	}
	out := newStream(w, a.timeouts, leave, ctx.Err)
	defer out.close()
	if err := send(ctx, out); w.Status() == 0 {
		return err
	}
	// Once something was sent, an error ends the stream; the watcher reconnects and continues where it was cut off.
	return nil
}

// streams holds all open streams, so that they can be ended when the server stops or a token is withdrawn.
type streams struct {
	mu    sync.Mutex
	ended bool
	open  map[*watcher]struct{}
}

// A watcher is an open stream.
type watcher struct {
	cancel func()       // ends the stream
	check  func() error // returns why its caller is no longer allowed to watch; nil if the caller is
	// endsElsewhere says that another process may end what allows the caller to watch: a sign-in, or a link with
	// another account.
	endsElsewhere bool
	nextCheck     *time.Timer // runs until the next check; nil if none is needed
}

// checkEvery is about how long a stream continues at most after another process has ended what allows it.
const checkEvery = time.Minute

func newStreams() *streams { return &streams{open: map[*watcher]struct{}{}} }

// add registers a stream until release is called; ok is false once end was called.
func (s *streams) add(w *watcher) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false
	}
	s.open[w] = struct{}{}
	if w.endsElsewhere {
		w.nextCheck = time.AfterFunc(checkEvery, func() { s.checkAgain(w) })
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, w)
		if w.nextCheck != nil {
			w.nextCheck.Stop()
		}
	}, true
}

// checkAgain ends a stream if its caller is no longer allowed to watch, or else checks again later.
func (s *streams) checkAgain(w *watcher) {
	if w.isRefused() {
		w.cancel()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[w]; open {
		w.nextCheck.Reset(checkEvery)
	}
}

// endAll ends all streams, and lets no new ones begin.
func (s *streams) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for w := range s.open {
		w.cancel()
	}
}

// recheck ends the streams of callers who are no longer allowed to watch. It checks without holding the lock,
// because it may ask the store about each of them, and others begin to watch meanwhile.
func (s *streams) recheck() {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, w := range all {
		if w.isRefused() {
			w.cancel()
		}
	}
}

// isRefused reports whether the watcher's caller is no longer allowed to watch. If the store can't say so now, the
// stream goes on.
func (w *watcher) isRefused() bool {
	return exchange.IsRefusal(w.check())
}

// checkStillAllowed returns why a caller who began to watch as was is no longer allowed to watch a session: the
// token is gone, now belongs to another name, or has lost the scope; or the account that the session belongs to is
// no longer linked. It returns nil if the caller is still allowed to.
func (a watchHandler) checkStillAllowed(r *http.Request, was exchange.Caller, key sessionKey) error {
	is, err := a.access.identify(r)
	if err != nil {
		return err
	}
	err = a.scopes.check(r.Context(), is, key.text)
	if err != nil && !exchange.IsRefusal(err) {
		return err
	}
	if is.Name != was.Name || err != nil {
		return exchange.Forbidden("this token may no longer watch this session")
	}
	return nil
}

// encodeSnapshot returns a snapshot as the event that watchers are sent. It leaves out in which chats people were
// asked, because all watchers get the same event.
func encodeSnapshot(s snapshot.Snapshot) ([]byte, error) {
	shown := struct {
		snapshot.Snapshot
		Asks []Ask `json:"asks,omitempty"`
	}{Snapshot: s}
	for _, a := range s.Asks {
		shown.Asks = append(shown.Asks, askOf(a, exchange.Caller{}))
	}
	return frameOf("", "snapshot", shown)
}
