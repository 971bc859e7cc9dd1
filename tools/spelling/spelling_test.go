package spelling_test

import (
	"strings"
	"testing"

	"parley/tools/spelling"
)

func TestNearest(t *testing.T) {
	known := []string{"oncall", "ci", "Builds"}
	for word, want := range map[string]string{
		"oncal": "oncall", "onclal": "oncall", "ONCALL": "oncall", "on-calls": "oncall", "bulids": "Builds",
		"c": "ci", "cd": "ci", "xy": "", "": "", "telephone": "", strings.Repeat("oncall", 20): "",
	} {
		if got := spelling.Nearest(word, known); got != want {
			t.Errorf("the nearest to %.20q is %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "ab", 2}, {"abc", "abd", 1}, {"abc", "acb", 1}, {"abcd", "bd", 2}, {"kitten", "sitting", 3}} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q it is %d, want %d", c.a, c.b, got, c.want)
		}
		if got := spelling.Distance(c.b, c.a); got != c.want {
			t.Errorf("from %q to %q it is %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
