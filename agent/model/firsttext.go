package model

import (
	"slices"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/agent/turn"
)

// A firstText measures how long it takes until people see the first text of an answer.
type firstText struct {
	arrived time.Time // when the text arrived; zero if none has
}

// note records when the first text of an answer arrives.
func (f *firstText) note(d llm.Delta) {
	switch {
	case d.Void:
		f.arrived = time.Time{}
	case f.arrived.IsZero() && d.Kind == llm.BlockText && strings.TrimSpace(d.Text) != "":
		f.arrived = time.Now()
	}
}

// after returns how many milliseconds into the turn the first text of an answer arrived; 0 if the answer has no
// text. For a model that doesn't stream, it counts until now, because the answer just arrived.
func (f *firstText) after(t *turn.Turn, answer *llm.Answer) int64 {
	hasText := func(b llm.Block) bool { return b.Kind == llm.BlockText && strings.TrimSpace(b.Text) != "" }
	if !slices.ContainsFunc(answer.Blocks, hasText) {
		return 0
	}
	came := f.arrived
	if came.IsZero() {
		came = time.Now()
	}
	return max(1, (came.Sub(t.Started) - t.WaitingTime()).Milliseconds())
}
