package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// contents returns the whole text of a request to the model, without its tools.
func contents(r agenttest.Request) string {
	var all []string
	for _, m := range r.Messages() {
		all = append(all, m.Content)
	}
	return strings.Join(all, "\n\n")
}

// messagesOf returns the JSON of a request's messages, without the last bracket.
func messagesOf(t *testing.T, body []byte) string {
	t.Helper()
	var r struct{ Messages json.RawMessage }
	parleytest.Must(t, json.Unmarshal(body, &r))
	return strings.TrimSuffix(string(r.Messages), "]")
}

// shared returns which percentage of a request the next request begins with.
func shared(before, after string) int {
	n := 0
	for n < min(len(before), len(after)) && before[n] == after[n] {
		n++
	}
	return 100 * n / max(1, len(before))
}

// A talk is a conversation with a model that makes the calls it is told to make. The test measures the model's
// requests.
type talk struct {
	*parleytest.World
	t    *testing.T
	mu   sync.Mutex
	last []string // the messages of the requests since say last returned
	said int
}

func (k *talk) model(r agenttest.Request) agenttest.Response {
	k.mu.Lock()
	k.last = append(k.last, messagesOf(k.t, r.Body))
	k.mu.Unlock()
	tool, args, calls := strings.Cut(strings.TrimPrefix(r.Said(), "do "), " ")
	if calls && strings.HasPrefix(r.Said(), "do ") && r.Rounds() == 0 {
		return agenttest.Calls(agenttest.ToolCall{Name: tool, Args: args})
	}
	return agenttest.Reply(strings.Repeat("That is well said, and here is a long answer to it. ", 20))
}

// say says something to the agent, and returns the requests of its turn.
func (k *talk) say(text string) []string {
	k.t.Helper()
	k.said++
	k.Telegram.Say(1, 1, text)
	k.WaitSaid(1, k.said)
	k.mu.Lock()
	defer k.mu.Unlock()
	requests := k.last
	k.last = nil
	return requests
}

// A memory that is added costs only its own length: the next request still begins with nearly all of the previous one,
// even after a restart. A memory that was erased or overwritten is in no later request.
func TestWhatIsRememberedCostsOnlyWhatFollows(t *testing.T) {
	t.Parallel()
	k := &talk{t: t}
	place := sqldbtest.New(t)
	k.World = parleytest.New(t, k.model, fmt.Sprintf("[store]\nurl = %q\n[workspace]\nroot = %q\n", place, t.TempDir()))
	book, err := sqlbook.Open(t.Context(), place)
	parleytest.Must(t, err)
	t.Cleanup(func() { parleytest.Must(t, book.Close()) })
	p := k.Serve()
	p.WaitServing()
	for scope, owner := range map[string]string{channels.ScopePerson: "telegram:1", channels.ScopeAgent: "main"} {
		parleytest.Must(t, book.Remember(t.Context(), scope, owner, scope, true, false, func(string) (string, error) { return "from the beginning: " + scope, nil }))
	}
	var last string
	for i := range 6 {
		for _, request := range k.say(fmt.Sprint("let us talk, ", i)) {
			if n := shared(last, request); last != "" && n < 98 {
				t.Errorf("request %d begins with %d %% of the last one", i, n)
			}
			last = request
		}
	}
	for i, scope := range []string{"session", "person", "agent", "session"} {
		if i == 3 {
			parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
			parleytest.Must(t, <-p.Ended)
			p = k.Serve()
			p.WaitServing()
		}
		note := fmt.Sprintf("note %d: likes tea of the kind %d", i, i)
		requests := append(k.say(fmt.Sprintf(`do memory_write {"scope":%q,"content":%q}`, scope, note)), k.say("what next?")...)
		if len(requests) != 3 {
			t.Fatalf("there were %d requests", len(requests))
		}
		for _, request := range requests {
			if n := shared(last, request); n < 95 {
				t.Errorf("scope %s: a request begins with %d %% of the last one", scope, n)
			}
			last = request
		}
		if _, found, _ := strings.Cut(last, "what next?"); !strings.Contains(last, "\\n"+note+"\\n\\u003c/remembered") && !strings.Contains(last, "\\n"+note+"\\n</remembered") {
			t.Errorf("the next turn is not told of %q: %s", note, found)
		}
	}
	parleytest.Must(t, book.Forget(t.Context(), channels.ScopePerson, "telegram:1"))
	parleytest.Must(t, book.Remember(t.Context(), channels.ScopeAgent, "main", "new", true, false, func(string) (string, error) { return "all is new", nil }))
	for i := range 3 {
		for _, request := range k.say(fmt.Sprint("and now, ", i)) {
			if i > 0 && shared(last, request) < 98 {
				t.Errorf("long after it was forgotten a request begins with %d %% of the last one", shared(last, request))
			}
			last = request
			if n := strings.Count(request, "all is new"); n != 1 || strings.Contains(request, "from the beginning") {
				t.Errorf("what was forgotten is in a request, or the new text is there %d times: %s", n, request)
			}
		}
	}
}
