package server

import (
	"fmt"
	"slices"
	"testing"
)

// All texts of a call are looked at, in whatever order its arguments come.
func TestTextsOfACall(t *testing.T) {
	args := map[string]any{"path": "notes.md", "more": []any{"a", map[string]any{"x": "b"}}, "n": 1.0}
	for i := range 5000 {
		args[fmt.Sprint(i)] = fmt.Sprint("word ", i)
	}
	texts := textsIn(args, nil)
	for _, want := range []string{"notes.md", "a", "b", "word 4999"} {
		if !slices.Contains(texts, want) {
			t.Errorf("%q is not among the texts", want)
		}
	}
}
