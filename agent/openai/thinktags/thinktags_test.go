package thinktags_test

import (
	"strings"
	"testing"

	"parley/agent/openai/thinktags"
)

// splitInPieces returns what a Splitter takes for thinking and for speech in a text that comes in pieces
// of n bytes.
func splitInPieces(text string, n int, assume bool) (thought, said string) {
	var s thinktags.Splitter
	if assume {
		s.Assume()
	}
	var speech strings.Builder
	take := func(p thinktags.Parts) {
		if p.Thinking {
			thought += speech.String()
			speech.Reset()
		}
		if p.Speech {
			speech.WriteString(thought)
			thought = ""
		}
		thought += p.Thought
		speech.WriteString(p.Said)
	}
	for rest := text; rest != ""; {
		cut := min(n, len(rest))
		take(s.Add(rest[:cut], &speech))
		rest = rest[cut:]
	}
	take(s.Flush(false))
	return thought, speech.String()
}

// FuzzSplit cuts a text into pieces of any size: that changes nothing of what is thinking and what is
// said, and what is lost are tags, headers and white space alone.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{
		"Hm.</think>The sky.", "<think>Hm.</think>The sky.", "[THINK]Hm.[/THINK]", "`</think>` or \"</think>\"",
		"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>The sky.<|return|>",
		"Hm.<|end|><|start|>assistant<|channel|>final<|message|>The sky.", "a < b <", "with </think>, then", "Hm. </think> \nThe sky.", "Only.</think> ", "Hm.</think>\xe2", strings.Repeat("`</think>", 40),
	} {
		f.Add(text, 1, false)
		f.Add(text, 3, true)
	}
	f.Fuzz(func(t *testing.T, text string, n int, assume bool) {
		if n < 1 || n > 1000 {
			n = 1
		}
		thought, said := splitInPieces(text, n, assume)
		wholeThought, wholeSaid := splitInPieces(text, len(text)+1, assume)
		if thought != wholeThought || said != wholeSaid {
			t.Errorf("%q in pieces of %d: thought %q and said %q; whole %q and %q", text, n, thought, said, wholeThought, wholeSaid)
		}
		if !strings.ContainsAny(text, "<[◁") && thought+said != text && strings.TrimSpace(text) != "" && !assume {
			t.Errorf("of %q is left %q and %q", text, thought, said)
		}
	})
}
