package recall

import (
	"fmt"
	"strings"
	"testing"

	"parley/tools/recall"
)

// People are shown everything that was found for them: with memories and knowledge, that is more than the hits.
func TestAnAnswerShowsEverythingFound(t *testing.T) {
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
