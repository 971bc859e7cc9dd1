package chat

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/agent/agenttest"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// A turn knows what another process has written to a memory before the turn began. It knows the person's own memory
// only in a private chat.
func TestWhatAnotherProcessRemembersIsKnownToTheNextTurn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	shown := map[string]string{} // by message: everything that its turn was shown
	place := sqldbtest.New(t)
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		said := strings.TrimPrefix(r.Said(), "@parleybot ")
		mu.Lock()
		shown[said] = contents(r)
		mu.Unlock()
		return agenttest.Reply("you said " + said)
	}, fmt.Sprintf("[store]\nurl = %q\n[workspace]\nroot = %q\n", place, t.TempDir()))
	w.Serve().WaitServing()
	other, err := sqlbook.Open(t.Context(), place)
	parleytest.Must(t, err)
	t.Cleanup(func() { parleytest.Must(t, other.Close()) })
	remember := func(scope, owner, text string) {
		t.Helper()
		parleytest.Must(t, other.Remember(t.Context(), scope, owner, text, true, false, func(string) (string, error) { return text, nil }))
	}
	const group = -10099
	answers := map[int64]int{}
	remembered := func(chat int64, said string) string {
		t.Helper()
		answers[chat]++
		w.Telegram.Say(chat, 2, said)
		w.WaitSaid(chat, answers[chat])
		mu.Lock()
		defer mu.Unlock()
		_, memory, _ := strings.Cut(shown[strings.TrimPrefix(said, "@parleybot ")], "<remembered of=")
		return memory
	}
	if got := remembered(2, "first"); got != "" {
		t.Errorf("without a memory a turn remembers %q", got)
	}
	for i := range 4 {
		ofPerson, ofAgent := fmt.Sprintf("likes \"tea\" № %d of them\nand {[,]} \\u0000", i), fmt.Sprintf("deploys on day %d of the week", i)
		remember(channels.ScopePerson, "telegram:2", ofPerson)
		remember(channels.ScopeAgent, "main", ofAgent)
		got := remembered(2, fmt.Sprint("again ", i))
		if !strings.Contains(got, ofPerson) || !strings.Contains(got, ofAgent) || strings.Contains(got, fmt.Sprintf("№ %d", i-1)) {
			t.Errorf("turn %d remembers %q", i, got)
		}
		if got := remembered(group, fmt.Sprint("@parleybot in the group ", i)); strings.Contains(got, "№") || !strings.Contains(got, ofAgent) {
			t.Errorf("in a group turn %d remembers %q", i, got)
		}
	}
	parleytest.Must(t, other.Forget(t.Context(), channels.ScopePerson, "telegram:2"))
	if got := remembered(2, "last"); strings.Contains(got, "№") || !strings.Contains(got, "deploys") {
		t.Errorf("after the memory was erased, a turn remembers %q", got)
	}
}
