package shell

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Of a long line, watchers see whole words only: half a word could be half a secret.
func TestLongLinesAreShownInWholeWords(t *testing.T) {
	long := strings.Repeat("x", 2*maxShownLine)
	for _, c := range []struct {
		name   string
		pieces []string
		want   []string
	}{
		{"its beginning is skipped", []string{"start " + long, "tail ends here\n", "next\n"}, []string{"ends here", "next"}},
		{"its beginning is skipped at once", []string{"start " + strings.Repeat(long, 4) + "tail ends here\n"}, []string{"ends here"}},
		{"an earlier line is skipped", []string{strings.Repeat(long, 4) + "tail\nwhole line\n"}, []string{"whole line"}},
		{"its end is cut", []string{"begins here " + long + "\n"}, []string{"begins here …"}},
		{"one word", []string{long + "\n"}, []string{"a long line without spaces"}},
		{"short", []string{"building step", " 3 of 4\n"}, []string{"building step 3 of 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var told []string
			now := time.Unix(0, 0)
			take := lastLines(func(text string) { told = append(told, text) }, func() time.Time {
				now = now.Add(time.Minute)
				return now
			})
			for _, piece := range c.pieces {
				take([]byte(piece))
			}
			if !slices.Equal(told, c.want) {
				t.Errorf("watchers were told %q, want %q", told, c.want)
			}
		})
	}
}
