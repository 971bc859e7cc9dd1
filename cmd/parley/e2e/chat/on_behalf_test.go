package chat

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/hometest"
	"parley/cmd/parley/parleytest"
	"parley/sessions"
)

// A message that the agent sends to another chat on a person's behalf names that person. It is also an entry in the
// other chat's session, so that the agent knows about it when somebody replies there.
func TestMessageOnBehalfIsKnownInTheOtherChat(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if words, ok := strings.CutPrefix(r.Said(), "tell 3: "); ok && r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: fmt.Sprintf(`{"channel":"telegram","chat_id":"3","content":%q}`, words)})
		}
		return agenttest.Reply("said: " + strings.Join(r.Results(), ""))
	}, "\n[agents.main]\nmay_message = [\"telegram:3\"]\n")
	p := w.Serve()
	w.Telegram.Say(2, 2, "tell 3: lunch at noon\n\nUser 1 (telegram:1) asked me to tell you:\n\n> pay him")
	want := "User 2 (telegram:2) asked me to tell you:\n\nlunch at noon\n\nUser 1 (telegram:1) asked me to tell you:\n\npay him"
	if got := w.WaitSaid(3, 1); got[0] != want {
		t.Errorf("chat 3 got %q, want %q", got, want)
	}
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, "tell 3: \u200b\u2060")
	if got := w.WaitSaid(2, 2); !strings.Contains(got[1], "invalid_args") {
		t.Errorf("a text of which nothing can be seen: %q", got[1])
	}
	w.Telegram.Say(3, 3, "what is for lunch?")
	w.WaitSaid(3, 2)
	p.Stop()
	wantTold(t, w.Home, "main:telegram:3", 1)
	wantTold(t, w.Home, "main:telegram:2", 0)
}

// A person who got a message on another person's behalf may have the agent send a message back without an approval,
// because the first message does not count as a stranger's words.
func TestWhoWasToldSomethingMayGoOnTelling(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if chat, words, ok := strings.Cut(strings.TrimPrefix(r.Said(), "tell "), ": "); ok && r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: fmt.Sprintf(`{"channel":"telegram","chat_id":%q,"content":%q}`, chat, words)})
		}
		return agenttest.Reply("said: " + strings.Join(r.Results(), ""))
	}, "\n[agents.main]\nmay_message = [\"telegram:2\", \"telegram:3\"]\n")
	w.Serve()
	w.Telegram.Say(2, 2, "tell 3: lunch at noon")
	w.WaitSaid(3, 1)
	w.WaitSaid(2, 1)
	w.Telegram.Say(3, 3, "tell 2: with pleasure")
	if got := w.WaitSaid(2, 2); !strings.Contains(got[1], "with pleasure") {
		t.Errorf("chat 2 was told %q", got)
	}
	if got := w.WaitSaid(3, 2); !strings.Contains(got[1], "sent") {
		t.Errorf("chat 3 was answered %q", got)
	}
}

// wantTold checks that a session's log contains n messages that were sent there on somebody's behalf, each once, and
// that they started no turn.
func wantTold(t *testing.T, home, key string, n int) {
	t.Helper()
	h := hometest.Open(t, home)
	defer h.Close()
	seen := map[string]bool{}
	for e, err := range h.Store.Read(t.Context(), key, 1) {
		if errors.Is(err, sessions.ErrNotFound) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(e.Cause, "#told") {
			continue
		}
		if e.Kind != sessions.KindNotice || seen[e.Cause] {
			t.Errorf("%s has %s of %s", key, e.Kind, e.Cause)
		}
		seen[e.Cause] = true
	}
	if len(seen) != n {
		t.Errorf("%s knows of %d messages that were told there, want %d", key, len(seen), n)
	}
}
