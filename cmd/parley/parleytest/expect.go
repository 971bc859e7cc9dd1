package parleytest

import (
	"regexp"
	"strings"
	"testing"
)

// Must fails the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Wants checks that a text contains all of these words.
func Wants(t *testing.T, said string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("it said %q, which lacks %q", said, word)
		}
	}
}

// Requested returns the id of the request for approval in a text.
func Requested(t *testing.T, text string) string {
	t.Helper()
	m := regexp.MustCompile("(?:approve |Request `?)([a-z2-7]{10})").FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%q is no request", text)
	}
	return m[1]
}
