// Package stream turns the pieces of an answer into events for watchers: it combines many small pieces into few
// events.
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

// Limits on how long text waits for more text to share its event. A watcher sees each word as it arrives,
// unless so many answers arrive at once that one event per word would be too many.
const (
	minWait     = 2 * time.Millisecond
	maxWait     = 40 * time.Millisecond
	waitForEach = 40 * time.Microsecond // for each answer that is being streamed
)

// A Counter counts the open streams of a process. All streams share it: the more are open, the longer text
// waits.
type Counter struct{ open atomic.Int64 }

// waitTime returns how long text waits. That grows with the number of open streams.
func (p *Counter) waitTime() time.Duration {
	return min(max(time.Duration(p.open.Load())*waitForEach, minWait), maxWait)
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
	clean func(piece string, last bool) string // takes secrets out of the text of the open block
	shown []shownBlock                         // what watchers were told about each block so far
	// Text that is not sent yet.
	text  strings.Builder
	flush *time.Timer
	// last is when the last event was sent.
	last time.Time
}

// A shownBlock records what watchers were told about a block.
type shownBlock struct {
	kind llm.BlockKind // "" if they were told nothing
	tool string
	size int    // bytes of its text
	sum  uint64 // of its text
}

// New opens the stream of an answer. first is the number of the answer's first block in its turn. The caller
// must close the stream. begin is called for each block. It returns a function that filters the block's text;
// that function may hold back some of the text, and returns it with later text or, at the latest, when last is
// true.
func New(counter *Counter, first int, emit func(bus.Event), begin func(llm.BlockKind) func(piece string, last bool) string) *Stream {
	counter.open.Add(1)
	return &Stream{counter: counter, emit: emit, first: first, begin: begin}
}

// Close stops counting the stream as open. It sends nothing, so the caller calls End before, for the rest of the answer;
// otherwise watchers may still get text that waits, or may not.
func (s *Stream) Close() { s.counter.open.Add(-1) }

// Delta takes the next piece of the answer from the model, and sends it to watchers, soon and perhaps combined
// with the pieces that follow. It ignores a piece of an earlier block: Written sends that block to watchers.
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
	if d.Text == "" || s.isShownEnough() {
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

// beginBlock ends the current block, and tells watchers that a new one begins.
func (s *Stream) beginBlock(d llm.Delta) {
	s.closeBlock()
	s.open, s.block, s.clean = true, d.Block, s.begin(d.Kind)
	s.shown = append(s.shown, make([]shownBlock, d.Block+1-len(s.shown))...)
	s.shown[d.Block] = shownBlock{kind: d.Kind, tool: d.Name, sum: fnvBasis}
	s.emitEvent(bus.BlockStart, d.Name, "")
}

// isShownEnough reports whether watchers are shown nothing more of the open block while it grows, because it is
// the input of a call and already long.
func (s *Stream) isShownEnough() bool {
	b := &s.shown[s.block]
	return b.kind == llm.BlockToolUse && b.size+s.text.Len() >= blocks.MostOfCall
}

// emitEvent sends an event about the open block. It is not inlined, because an event is large, and copies of it
// in the callers would grow the stack of each turn that reads an answer.
//
//go:noinline
func (s *Stream) emitEvent(event, tool, text string) {
	s.emit(bus.Event{Type: event, Block: s.first + s.block, Kind: string(s.shown[s.block].kind), Tool: tool, Delta: text})
}

// send sends the waiting text, if there is any.
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
	s.emitEvent(bus.BlockDelta, "", text)
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

// End sends the rest of the answer.
func (s *Stream) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeBlock()
}

// Written tells watchers that the answer has ended and is in the log, with these blocks. Where watchers were
// shown something else, it corrects that.
func (s *Stream) Written(logged []blocks.Block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, b := range logged {
		b.Number = s.first + i
		var was shownBlock
		if i < len(s.shown) {
			was = s.shown[i]
		}
		if was.kind != "" && (string(was.kind) != b.Kind || was.tool != b.Tool) {
			s.emit(bus.Event{Type: bus.BlockReset, Block: b.Number})
			s.shown, was = s.shown[:i], shownBlock{}
		}
		rest, goesOn := was.restOf(b.Text)
		switch {
		case was.kind == "" || !goesOn && was.kind != llm.BlockToolUse:
			b.Emit(s.emit)
		default:
			b.EmitText(rest, s.emit)
			b.EmitStop(s.emit)
		}
	}
	if len(s.shown) > len(logged) {
		s.emit(bus.Event{Type: bus.BlockReset, Block: s.first + len(logged)})
	}
}

// restOf returns the part of a text that follows what watchers were shown; false if the text begins with
// something else.
func (b shownBlock) restOf(text string) (string, bool) {
	if len(text) < b.size || addSum(fnvBasis, text[:b.size]) != b.sum {
		return "", false
	}
	return text[b.size:], true
}

// Reset tells watchers that the blocks of this answer are void, because the model is being asked again.
func (s *Stream) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset()
}

// reset drops the waiting text, and tells watchers that the blocks of this answer are void.
func (s *Stream) reset() {
	s.text.Reset()
	s.send()
	s.open, s.shown = false, nil
	s.emit(bus.Event{Type: bus.BlockReset, Block: s.first})
}

// The constants of FNV-1a.
const (
	fnvBasis = 14695981039346656037
	fnvPrime = 1099511628211
)

// addSum adds a text to the checksum of the texts before it.
func addSum(sum uint64, text string) uint64 {
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * fnvPrime
	}
	return sum
}
