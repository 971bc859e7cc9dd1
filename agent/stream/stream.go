// Package stream turns what a model says as it says it into events, many small deltas into few.
package stream

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/llm"
	"parley/bus"
)

const deltaSize = 512 // bytes of text that do not wait for more

// How long text may wait for more of it. A watcher sees each word as it comes, but for where so
// many answers come at once that their words would be too many events.
const (
	leastWait   = 2 * time.Millisecond
	mostWait    = 40 * time.Millisecond
	waitForEach = 40 * time.Microsecond // of the answers that come
)

// A Pace is what the streams of a process share: how many there are.
type Pace struct{ open atomic.Int64 }

func (p *Pace) wait() time.Duration {
	return min(max(time.Duration(p.open.Load())*waitForEach, leastWait), mostWait)
}

// A Stream is one answer as it comes. It may be used by many at once.
type Stream struct {
	pace  *Pace
	emit  func(bus.Event)
	first int // the turn's number of the answer's first block
	// begin gives what takes the secrets out of one block's text.
	begin func() func(piece string, last bool) string

	mu    sync.Mutex
	open  bool
	block int
	kind  llm.BlockKind
	clean func(piece string, last bool) string // of the open block
	text  strings.Builder
	flush *time.Timer
	last  time.Time
}

// New makes the stream of an answer whose first block has that number in its turn. Whoever
// makes it closes it.
// Begin gives for each block what its text passes: it may hold some of it back, and gives
// that on with what follows, or with last.
func New(pace *Pace, first int, emit func(bus.Event), begin func() func(piece string, last bool) string) *Stream {
	pace.open.Add(1)
	return &Stream{pace: pace, emit: emit, first: first, begin: begin}
}

// Close says that nothing more comes. What waits is not sent.
func (s *Stream) Close() { s.pace.open.Add(-1) }

// Delta takes in a piece of the answer.
func (s *Stream) Delta(d llm.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || d.Block != s.block {
		s.closeBlock()
		s.open, s.block, s.kind, s.clean = true, d.Block, d.Kind, s.begin()
		s.emit(bus.Event{Type: bus.BlockStart, Block: s.first + d.Block, Kind: string(d.Kind), Tool: d.Name})
	}
	if d.Text == "" {
		return
	}
	s.text.WriteString(s.clean(d.Text, false))
	if wait := s.pace.wait() - time.Since(s.last); wait > 0 && s.text.Len() < deltaSize {
		if s.flush == nil {
			s.flush = time.AfterFunc(wait, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.send()
			})
		}
		return
	}
	s.send()
}

func (s *Stream) send() {
	if s.flush != nil {
		s.flush.Stop()
		s.flush = nil
	}
	if s.text.Len() == 0 {
		return
	}
	s.emit(bus.Event{Type: bus.BlockDelta, Block: s.first + s.block, Kind: string(s.kind), Delta: s.text.String()})
	s.text.Reset()
	s.last = time.Now()
}

func (s *Stream) closeBlock() {
	if s.open {
		s.text.WriteString(s.clean("", true))
	}
	s.send()
	if s.open {
		s.emit(bus.Event{Type: bus.BlockStop, Block: s.first + s.block, Kind: string(s.kind)})
	}
	s.open = false
}

// End closes the answer's last block.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeBlock()
}

// Reset voids what was said: the model is asked again.
func (s *Stream) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
	s.send()
	s.open = false
	s.emit(bus.Event{Type: bus.BlockReset, Block: s.first})
}
