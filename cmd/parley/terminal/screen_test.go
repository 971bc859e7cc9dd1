package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"parley/channels/console"
)

// evil is a text that attacks a terminal: it sets a title and a color, draws over a line, uses C1 controls, and
// reverses text.
const evil = "a\x1b]0;owned\a\x1b[31mred\rover\u009b2Jclear\u202ereversed\u2066isolated\x7f"

func TestScreen(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		evil:                        "a]0;owned[31mredover2Jclearreversedisolated",
		"two\nlines\tand ä ☺ 中 👩‍💻": "two\nlines\tand ä ☺ 中 👩‍💻",
		"\xff\x9b[2J":               "\uFFFD\uFFFD[2J",
	} {
		for size := 1; size < 9; size++ { // wherever the text is cut
			var out bytes.Buffer
			s := &Screen{To: &out}
			for rest := []byte(given); len(rest) > 0; {
				n, err := s.Write(rest[:min(size, len(rest))])
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if out.String() != want {
				t.Errorf("%q in pieces of %d shows %q, want %q", given, size, out.String(), want)
			}
		}
	}
	raw, err := json.MarshalIndent(map[string]string{"text": evil}, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := (&Screen{To: &out, JSON: true}).Write(raw); err != nil {
		t.Fatal(err)
	}
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["text"] != evil || strings.ContainsFunc(out.String(), console.IsTerminalControl) {
		t.Errorf("as JSON it is %q, %v", out.String(), err)
	}
	if got := Cell("a\nb\tc" + evil); strings.ContainsAny(got, "\n\t\x1b") || !strings.HasPrefix(got, "a b ca]0;") {
		t.Errorf("as a cell it is %q", got)
	}
}
