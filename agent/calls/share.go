package calls

import (
	"sync"

	"parley/agent/transcript"
	"parley/agent/turn"
)

const (
	// maxResultBytes is the most that a model is shown of one result, in bytes.
	maxResultBytes = 65536
	// minResultBytes is how much is shown of each result, however many results a step has.
	minResultBytes = 256
)

// A Share divides among the calls of one step how much of their results the model is shown: a quarter of the
// window for all of them together. Otherwise several long results would fill a small window at once, and each
// step would need a summary of the steps before it. What short results leave over goes to those that come after
// them. A Share is safe for concurrent use.
type Share struct {
	mu        sync.Mutex
	bytesLeft int // bytes
	calls     int // number of calls that have no result yet
}

// ShareOf returns the Share for those calls of a turn's newest step that have no result yet.
func ShareOf(s *turn.Session, t *turn.Turn) *Share {
	share := &Share{bytesLeft: s.MessageRoom * transcript.BytesPerToken / 4}
	for _, c := range stepOf(t) {
		if c.Result == nil {
			share.calls++
			continue
		}
		share.bytesLeft -= len(c.Result.Content)
	}
	return share
}

// Take returns how many bytes of a result of that size the model is shown at most, and takes them from the
// Share.
func (s *Share) Take(size int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := min(maxResultBytes, max(s.bytesLeft/max(s.calls, 1), minResultBytes))
	s.bytesLeft -= min(size, limit)
	s.calls--
	return limit
}
