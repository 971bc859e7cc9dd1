package quote

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNobodyHidesLetters(t *testing.T) {
	t.Parallel()
	raw := json.RawMessage("{\"command\":\"ls \u202e\U000e0041x\"}")
	if got, want := string(EscapeHidden(raw)), `{"command":"ls \u202e\udb40\udc41x"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var read struct{ Command string }
	if err := json.Unmarshal(EscapeHidden(raw), &read); err != nil || read.Command != "ls \u202e\U000e0041x" {
		t.Errorf("it reads as %q, %v", read.Command, err)
	}
}

func TestNoQuotationEndsEarly(t *testing.T) {
	t.Parallel()
	if got := Arguments(json.RawMessage("\"```\\n\"")); !strings.HasPrefix(got, "````\n") || !strings.HasSuffix(got, "\n````") {
		t.Errorf("the fence can be closed from inside: %s", got)
	}
	long := json.RawMessage(strings.Repeat("é", mostOfCall))
	if got := Arguments(long); !strings.Contains(got, "and 2500 bytes more") {
		t.Errorf("what is cut is not said: %s", got[len(got)-100:])
	}
	if got := Reason("no\n" + strings.Repeat("é", mostOfReason)); !strings.HasPrefix(got, "> no\n> é") || !strings.HasSuffix(got, "é …") {
		t.Errorf("got %q", got)
	}
	if got := Inline("a`b"); got != "a'b" {
		t.Errorf("got %q", got)
	}
}
