package api

import (
	"net/http"
	"sync"
)

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
