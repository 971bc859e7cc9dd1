package search

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions"
)

func TestFuse(t *testing.T) {
	for name, c := range map[string]struct {
		words, meaning, want string
	}{
		"words alone":                      {"a b c", "", "a b c"},
		"meaning alone":                    {"", "a b c", "a b c"},
		"in both goes before in one":       {"a b c d", "d", "d a b c"},
		"a first by meaning is among four": {"a b c d e f", "x", "a b c x d e f"},
		"a first by words stays first":     {"a b c", "x y z a", "a b c x y z"},
		"the same order":                   {"a b", "a b", "a b"},
		"nothing":                          {"", "", ""},
	} {
		got := fuse(ranking{1, strings.Fields(c.words)}, ranking{meaningWeight, strings.Fields(c.meaning)})
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func newTestCandidate(text string, age time.Duration, like float64) candidate {
	return candidate{Entry: sessions.Entry{Kind: sessions.KindUser, At: time.Unix(1e9, 0).Add(-age)}, content: content{text: text}, isNearest: like > 0, likeness: like}
}

func TestOrderByMeaning(t *testing.T) {
	const day = 24 * time.Hour
	found := []candidate{
		newTestCandidate("old", 400*day, 0.60), newTestCandidate("new", day, 0.58), newTestCandidate("far", day, 0.35), newTestCandidate("best", 10*day, 0.70), newTestCandidate("BEST ", day, 0.52), newTestCandidate("no vector", day, 0),
	}
	subtractAverage(found, 0.30)
	var texts []string
	for _, c := range rank(found, nil, nil, time.Unix(1e9, 0), 10) {
		texts = append(texts, c.text)
	}
	if want := []string{"BEST ", "new", "old"}; !slices.Equal(texts, want) {
		t.Errorf("the order is %q, want %q", texts, want)
	}
}
