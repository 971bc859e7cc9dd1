// Package stream turns the pieces of an answer into events for watchers: many small
// deltas into few events.
package stream

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/blocks"
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
	// begin returns a function that takes the secrets out of the text of one block of that kind.
	begin func(kind llm.BlockKind) func(piece string, last bool) string

	mu    sync.Mutex
	open  bool
	block int
	clean func(piece string, last bool) string // takes secrets out of the open block
	shown []shown                              // what watchers were told of the blocks so far
	// not sent yet
	text  strings.Builder
	flush *time.Timer
	// when an event was sent last
	last time.Time
}

// A shown is what watchers were told of a block.
type shown struct {
	kind llm.BlockKind // "" if they were told nothing
	tool string
	size int    // bytes of its text
	sum  uint64 // of its text
}

// New opens the stream of an answer. first is the number of the answer's first block in
// its turn. The caller must close the stream. begin is called for each block. It returns
// a function through which the block's text passes; that function may hold back some of
// the text, and returns it with later text or, at the latest, when last is true.
func New(counter *Counter, first int, emit func(bus.Event), begin func(llm.BlockKind) func(piece string, last bool) string) *Stream {
	counter.open.Add(1)
	return &Stream{counter: counter, emit: emit, first: first, begin: begin}
}

// Close says that no more of the answer comes. Text that waits is dropped.
func (s *Stream) Close() { s.counter.open.Add(-1) }

// Delta takes the next piece of the answer from the model, and sends it to watchers, soon
// and perhaps together with the pieces that follow. A piece of an earlier block is left out:
// Written tells watchers of it.
func (s *Stream) Delta(d llm.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.Void {
		s.reset()
		return
	}
	if !s.open || d.Block != s.block {
		if d.Block < len(s.shown) {
			return
		}
		s.beginBlock(d)
	}
	if d.Text == "" || s.isEnough() {
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

// beginBlock tells watchers of a new block, with which the one before it ends.
func (s *Stream) beginBlock(d llm.Delta) {
	s.closeBlock()
	s.open, s.block, s.clean = true, d.Block, s.begin(d.Kind)
	s.shown = append(s.shown, make([]shown, d.Block+1-len(s.shown))...)
	s.shown[d.Block] = shown{kind: d.Kind, tool: d.Name, sum: fnvBasis}
	s.tell(bus.BlockStart, d.Name, "")
}

// isEnough reports whether watchers see nothing more of the open block while it grows, because it is
// the input of a call and long.
func (s *Stream) isEnough() bool {
	b := &s.shown[s.block]
	return b.kind == llm.BlockToolUse && b.size+s.text.Len() >= blocks.MostOfCall
}

// tell sends an event about the open block. It is not inlined: an event is large, and the callers'
// copies of it would make the stack grow of each turn that reads an answer.
//
//go:noinline
func (s *Stream) tell(event, tool, text string) {
	s.emit(bus.Event{Type: event, Block: s.first + s.block, Kind: string(s.shown[s.block].kind), Tool: tool, Delta: text})
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
	text, b := s.text.String(), &s.shown[s.block]
	s.text.Reset()
	if room := max(0, blocks.MostOfCall-b.size); b.kind == llm.BlockToolUse && len(text) > room {
		if text = strings.ToValidUTF8(text[:room], ""); text == "" {
			return
		}
	}
	b.size, b.sum = b.size+len(text), addSum(b.sum, text)
	s.tell(bus.BlockDelta, "", text)
	s.last = time.Now()
}

// closeBlock sends the rest of the open block.
func (s *Stream) closeBlock() {
	if s.open {
		s.text.WriteString(s.clean("", true))
	}
	s.send()
	s.open = false
}

// End sends what is left of the answer.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeBlock()
}

// Written tells watchers that the log has the answer, which has ended: these are its blocks. Where
// watchers were told something else, they are told this.
func (s *Stream) Written(logged []blocks.Block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range logged {
		b.Number = s.first + i
		var was shown
		if i < len(s.shown) {
			was = s.shown[i]
		}
		if was.kind != "" && (string(was.kind) != b.Kind || was.tool != b.Tool) {
			s.emit(bus.Event{Type: bus.BlockReset, Block: b.Number})
			s.shown, was = s.shown[:i], shown{}
		}
		rest, goesOn := was.restOf(b.Text)
		switch {
		case was.kind == "" || !goesOn && was.kind != llm.BlockToolUse:
			b.Say(s.emit)
		default:
			b.SayText(rest, s.emit)
			b.SayStop(s.emit)
		}
	}
	if len(s.shown) > len(logged) {
		s.emit(bus.Event{Type: bus.BlockReset, Block: s.first + len(logged)})
	}
}

// restOf returns what follows in a text what watchers were told of it; false if it begins with
// something else.
func (b shown) restOf(text string) (string, bool) {
	if len(text) < b.size || addSum(fnvBasis, text[:b.size]) != b.sum {
		return "", false
	}
	return text[b.size:], true
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
	s.open, s.shown = false, nil
	s.emit(bus.Event{Type: bus.BlockReset, Block: s.first})
}

// The numbers of FNV-1a.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// addSum adds a text to a sum of the texts before it.
func addSum(sum uint64, text string) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * fnvPrime
	}
	return sum
}
