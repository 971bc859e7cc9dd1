package console_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/channels/console"
	"parley/channels/console/past"
)

// On return, the person sees the end of the conversation, dimmed, and only as much as fits.
func TestTheEndOfTheConversationIsShownOnReturn(t *testing.T) {
	var all []past.Exchange
	for n := range 9 {
		all = append(all, past.Exchange{Said: fmt.Sprintf("question %d", n), Answer: fmt.Sprintf("It **is** %d.", n) + strings.Repeat("\n\nmore", 40)})
	}
	all[8].Said = strings.Repeat("long ", 200)
	d := startTerminalWith(t, console.Config{Banner: "Parley", EarlierExchanges: append(all, past.Exchange{Said: "a \x1b]0;owned\apear"})})
	onScreen := d.awaitText(t, "› a ]0;ownedpear")
	for what, want := range map[string]bool{"Parley": true, "· earlier in this conversation:": true, "question 6": false, "question 7": true, "It is 8.": true, "long long": true} {
		if strings.Contains(onScreen, what) != want {
			t.Errorf("%q is shown: %t, in\n%s", what, !want, onScreen)
		}
	}
	if n := strings.Count(onScreen, "\n"); n > 30 {
		t.Errorf("%d lines are shown:\n%s", n, onScreen)
	}
	if shown := d.output.String(); !strings.Contains(shown, "\x1b[2mIt is 8.\x1b[0m") {
		t.Errorf("the past is not dimmed: %q", shown)
	}
}
