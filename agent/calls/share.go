package calls

import (
	"sync"

	"parley/agent/transcript"
	"parley/agent/turn"
)

const (
	// maxResult is the greatest part of a result that a model is shown, in bytes.
	maxResult = 65536
	// leastResult is the part that is shown of each, however many results a step has.
	leastResult = 256
)

// A Share shares, among the calls of one step, what the model is shown of their results: a
// quarter of the window for all of them together. Several long results would otherwise fill a small
// window at once, and each step would need a summary of those before it. What short results leave
// goes to those that come after them. It is safe for concurrent use.
type Share struct {
	mu    sync.Mutex
	left  int // bytes
	calls int // number of calls that have no result yet
}

// ShareOf returns the share of the calls of a turn's newest step that have no result yet.
func ShareOf(s *turn.Session, t *turn.Turn) *Share {
	share := &Share{left: s.Room * transcript.BytesPerToken / 4}
	if len(t.Steps) == 0 {
		return share
	}
	for _, c := range t.Steps[len(t.Steps)-1].Calls {
		if c.Result == nil {
			share.calls++
			continue
		}
		share.left -= len(c.Result.Content)
	}
	return share
}

// Take returns how many bytes the model is shown of a result of that size.
func (s *Share) Take(size int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := min(maxResult, max(s.left/max(s.calls, 1), leastResult))
	s.left -= min(size, limit)
	s.calls--
	return limit
}
