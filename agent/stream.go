package agent

import (
	"strings"
	"sync"
	"time"

	"parley/agent/llm"
	"parley/bus"
)

const (
	deltaEvery = 40 * time.Millisecond // how long text may wait for more of it
	deltaSize  = 512                   // bytes of text that do not wait
)

// A stream turns what a model says as it says it into events, many small deltas
// into few.
type stream struct {
	emit  func(bus.Event)
	first int // the turn's number of the answer's first block

	mu    sync.Mutex
	open  bool
	block int
	kind  llm.BlockKind
	text  strings.Builder
	flush *time.Timer
	last  time.Time
}

func newStream(first int, emit func(bus.Event)) *stream { return &stream{emit: emit, first: first} }

// delta takes in a piece of the answer.
func (s *stream) delta(d llm.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open || d.Block != s.block {
		s.close()
		s.open, s.block, s.kind = true, d.Block, d.Kind
		s.emit(bus.Event{Type: bus.BlockStart, Block: s.first + d.Block, Kind: string(d.Kind), Tool: d.Name})
	}
	if d.Text == "" {
		return
	}
	s.text.WriteString(d.Text)
	if wait := deltaEvery - time.Since(s.last); wait > 0 && s.text.Len() < deltaSize {
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

func (s *stream) send() {
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

func (s *stream) close() {
	s.send()
	if s.open {
		s.emit(bus.Event{Type: bus.BlockStop, Block: s.first + s.block, Kind: string(s.kind)})
	}
	s.open = false
}

// end closes the answer's last block.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// reset voids what was said: the model is asked again.
func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
	s.send()
	s.open = false
	s.emit(bus.Event{Type: bus.BlockReset, Block: s.first})
}
