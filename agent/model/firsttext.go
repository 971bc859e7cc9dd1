package model

import (
	"slices"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/agent/turn"
)

// A firstText measures after which time people see the first text of an answer.
type firstText struct {
	came time.Time // zero if none has come
}

// note notes when the first text of an answer comes.
func (f *firstText) note(d llm.Delta) {
	switch {
	case d.Void:
		f.came = time.Time{}
	case f.came.IsZero() && d.Kind == llm.BlockText && strings.TrimSpace(d.Text) != "":
		f.came = time.Now()
	}
}

// after returns after how many milliseconds of the turn the first text of an answer came; 0 if it has no text. A
// model that does not stream has just answered.
func (f *firstText) after(t *turn.Turn, answer *llm.Answer) int64 {
	hasText := func(b llm.Block) bool { return b.Kind == llm.BlockText && strings.TrimSpace(b.Text) != "" }
	if !slices.ContainsFunc(answer.Blocks, hasText) {
		return 0
	}
	came := f.came
	if came.IsZero() {
		came = time.Now()
	}
	return max(1, (came.Sub(t.Started) - t.WaitingTime()).Milliseconds())
}
