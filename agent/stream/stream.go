// Package stream turns the pieces of an answer into events for watchers: many small
// deltas into few events.
package stream

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/llm"
	"parley/bus"
)

const deltaSize = 512 // bytes of text that are sent without waiting for more

// Bounds of how long text waits for more text to share its event. A watcher sees each
// word as it comes, unless so many answers come at once that an event for each word
// would be too many.
const (
	leastWait   = 2 * time.Millisecond
	mostWait    = 40 * time.Millisecond
	waitForEach = 40 * time.Microsecond // for each answer that is being streamed
)

// A Counter counts the open streams of a process, which share it: the more are open, the longer
// text waits.
type Counter struct{ open atomic.Int64 }

// waitTime returns how long text waits, which grows with the number of open streams.
func (p *Counter) waitTime() time.Duration {
	return min(max(time.Duration(p.open.Load())*waitForEach, leastWait), mostWait)
}

// A Stream sends the events of one answer. It is safe for concurrent use.
type Stream struct {
	counter *Counter
	emit    func(bus.Event)
	first   int // the number of the answer's first block in its turn
	// begin returns a function that takes the secrets out of one block's text.
	begin func() func(piece string, last bool) string

	mu    sync.Mutex
	open  bool
	block int
	kind  llm.BlockKind
	clean func(piece string, last bool) string // takes secrets out of the open block
	// not sent yet
	text  strings.Builder
	flush *time.Timer
	// when an event was sent last
	last time.Time
}

// New opens the stream of an answer. first is the number of the answer's first block in
// its turn. The caller must close the stream. begin is called for each block. It returns
// a function through which the block's text passes; that function may hold back some of
// the text, and returns it with later text or, at the latest, when last is true.
func New(counter *Counter, first int, emit func(bus.Event), begin func() func(piece string, last bool) string) *Stream {
	counter.open.Add(1)
	return &Stream{counter: counter, emit: emit, first: first, begin: begin}
}

// Close closes the stream. Text that waits is dropped.
func (s *Stream) Close() { s.counter.open.Add(-1) }

// Delta takes the next piece of the answer from the model, and sends it to watchers, soon
// and perhaps together with the pieces that follow.
func (s *Stream) Delta(d llm.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Void {
		s.reset()
		return
	}
	if !s.open || d.Block != s.block {
		s.closeBlock()
		s.open, s.block, s.kind, s.clean = true, d.Block, d.Kind, s.begin()
		s.tell(bus.BlockStart, d.Name, "")
	}
	if d.Text == "" {
		return
	}
	s.text.WriteString(s.clean(d.Text, false))
	if wait := s.counter.waitTime() - time.Since(s.last); wait > 0 && s.text.Len() < deltaSize {
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

// tell sends an event about the open block. It is not inlined: an event is large, and the callers'
// copies of it would make the stack grow of each turn that reads an answer.
//
//go:noinline
func (s *Stream) tell(event, tool, text string) {
	s.emit(bus.Event{Type: event, Block: s.first + s.block, Kind: string(s.kind), Tool: tool, Delta: text})
}

// send sends the text that waits, if any.
func (s *Stream) send() {
	if s.flush != nil {
		s.flush.Stop()
		s.flush = nil
	}
	if s.text.Len() == 0 {
		return
	}
	s.tell(bus.BlockDelta, "", s.text.String())
	s.text.Reset()
	s.last = time.Now()
}

// closeBlock sends the rest of the open block and the event of its end.
func (s *Stream) closeBlock() {
	if s.open {
		s.text.WriteString(s.clean("", true))
	}
	s.send()
	if s.open {
		s.tell(bus.BlockStop, "", "")
	}
	s.open = false
}

// End sends what is left of the answer, and the event that its last block has ended.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeBlock()
}

// Reset tells watchers that the blocks of this answer are void, because the model is
// asked again.
func (s *Stream) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset()
}

// reset drops what waits, and tells watchers that the blocks of this answer are void.
func (s *Stream) reset() {
	s.text.Reset()
	s.send()
	s.open = false
	s.emit(bus.Event{Type: bus.BlockReset, Block: s.first})
}
