package recall

import (
	"fmt"
	"strings"
	"testing"

	"parley/tools/recall"
)

// People are shown all that was found for them: with what is remembered and known, these are more than the hits.
func TestAnAnswerShowsAllThatWasFound(t *testing.T) {
	var a recall.Answer
	for i := range maxShown + 2*maxNotes {
		a.Found = append(a.Found, recall.Passage{Text: fmt.Sprintf("passage %d.", i)})
	}
	text := answerText(a)
	for _, p := range a.Found {
		if !strings.Contains(text, p.Text) {
			t.Errorf("%q is not in %q", p.Text, text)
		}
	}
}
