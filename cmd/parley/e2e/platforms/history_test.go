package platforms

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

// An askedHistory is a model that reads the chats that people ask about: "read ARGS".
type askedHistory struct {
	mu      sync.Mutex
	results []string
	bodies  []string
}

func (m *askedHistory) answer(r agenttest.Request) agenttest.Response {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bodies = append(m.bodies, string(r.Body))
	said := r.Said()
	_, arguments, found := strings.Cut(said, "read ")
	if found && r.Rounds() == 0 {
		return agenttest.Calls(agenttest.ToolCall{Name: "chat_history", Args: arguments})
	}
	if found {
		m.results = append(m.results, strings.Join(r.Results(), "\n"))
		return agenttest.Reply(fmt.Sprint("that was reading ", len(m.results)))
	}
	return agenttest.Reply("you said something")
}

func (m *askedHistory) result(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.results[n-1]
}

// The bot reads another channel for a person who is a member of it, and for nobody else. Only the model of that turn
// sees what was read, and no file of the home contains it.
func TestReadingAChannelForSomebodyWhoIsInIt(t *testing.T) {
	t.Parallel()
	m := &askedHistory{}
	w, sl := parleytest.NewSlack(t, m.answer)
	for _, user := range []string{"U1", "U2"} {
		sl.AddUser(slacktest.User{ID: user, Name: "Member " + user})
	}
	sl.Join("C2", "U2")
	sl.Say("C2", "U2", "xyzzy-root about the outage")
	root := sl.Say("C2", "U2", "xyzzy-thread")
	sl.Reply("C2", root, "U2", "xyzzy-reply")
	p := w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	n := 0
	ask := func(user, arguments string) string {
		t.Helper()
		n++
		chat := "D" + user
		before := len(sl.Sent(chat))
		sl.Say(chat, user, "read "+arguments)
		if got := parleytest.SlackSaid(t, sl, chat, before+1)[before].Text; got != fmt.Sprint("that was reading ", n) {
			t.Fatalf("the answer is %q", got)
		}
		return m.result(n)
	}
	got := ask("U2", `{"chat": "#name-of-c2", "since": "today"}`)
	if at := strings.Index(got, "xyzzy-root"); at < 0 || !strings.Contains(got[at:], "xyzzy-thread") || !strings.Contains(got, "xyzzy-reply") || !strings.Contains(got, "Member U2") {
		t.Errorf("the model reads %s", got)
	}
	if got := ask("U2", `{"chat": "C2", "limit": 1}`); strings.Contains(got, "xyzzy-root") || !strings.Contains(got, "xyzzy-reply") || !strings.Contains(got, `"older":true`) {
		t.Errorf("of one message the model reads %s", got)
	}
	for _, arguments := range []string{`{"chat": "#name-of-c2"}`, `{"chat": "C2"}`, `{"chat": "#nowhere"}`, `{"channel": "slack", "chat": "DU2"}`} {
		if got := ask("U1", arguments); !strings.Contains(got, "permission_denied") || strings.Contains(got, "xyzzy") {
			t.Errorf("who is not in it reads with %s: %s", arguments, got)
		}
	}
	if got := ask("U1", `{}`); !strings.Contains(got, "slack:DU1") || strings.Contains(got, "xyzzy") || strings.Count(got, "read {") < 2 {
		t.Errorf("in the own chat the model reads %s", got)
	}
	if got := ask("U1", `{"since": "someday"}`); !strings.Contains(got, "invalid_args") || !strings.Contains(got, "yesterday") {
		t.Errorf("a wrong time gives %s", got)
	}
	m.mu.Lock()
	m.bodies = nil
	m.mu.Unlock()
	before := len(sl.Sent("DU2"))
	sl.Say("DU2", "U2", "what was it?")
	parleytest.SlackSaid(t, sl, "DU2", before+1)
	p.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, body := range m.bodies {
		if strings.Contains(body, "xyzzy") || !strings.Contains(body, "is not kept") {
			t.Errorf("in a later turn the model is shown %s", body)
		}
	}
	if found := parleytest.FilesWith(t, w.Home, "xyzzy"); len(found) > 0 {
		t.Errorf("what was read is in %v", found)
	}
}

// A turn that was interrupted after it read a channel continues, and the model is told to read the channel again.
func TestATurnThatIsCutOffReadsAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var results []string
	w, sl := parleytest.NewSlack(t, func(r agenttest.Request) agenttest.Response {
		mu.Lock()
		defer mu.Unlock()
		results = append(results, strings.Join(r.Results(), "\n"))
		if r.Rounds() == 1 {
			// By the time that this call runs, the result of the read is on disk, and the bot dies.
			return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path": "notes.txt", "content": "x"}`})
		}
		if r.Rounds() < 3 && !strings.Contains(strings.Join(r.Results(), ""), "xyzzy") {
			return agenttest.Calls(agenttest.ToolCall{Name: "chat_history", Args: `{"chat": "C2"}`})
		}
		return agenttest.Reply("done")
	})
	sl.AddUser(slacktest.User{ID: "U1", Name: "Member"})
	sl.Join("C2", "U1")
	sl.Say("C2", "U1", "xyzzy")
	tokens := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_APP_TOKEN=" + parleytest.SlackApp}
	p := w.Serve(append(tokens, "PARLEY_KILL_AT=c4:held/2")...)
	parleytest.WaitFor(t, "Slack", func() bool { return sl.Sockets() == 2 })
	sl.Say("DU1", "U1", "hello")
	p.WaitKilled()
	p = w.Serve(tokens...)
	if got := parleytest.SlackSaid(t, sl, "DU1", 1)[0].Text; got != "done" {
		t.Errorf("the answer is %q", got)
	}
	p.Stop()
	mu.Lock()
	defer mu.Unlock()
	if len(results) != 4 || !strings.Contains(results[1], "xyzzy") || !strings.Contains(results[2], "not kept") || strings.Contains(results[2], "xyzzy") || !strings.Contains(results[3], "xyzzy") {
		t.Errorf("the model was shown %q", results)
	}
	if found := parleytest.FilesWith(t, w.Home, "xyzzy"); len(found) > 0 {
		t.Errorf("what was read is in %v", found)
	}
}

// Telegram gives bots no history, so the bot reads the conversation's own log.
func TestReadingOnTelegramIsReadingTheLog(t *testing.T) {
	t.Parallel()
	m := &askedHistory{}
	w := parleytest.New(t, m.answer, "")
	w.Serve()
	w.Telegram.Say(2, 2, "plugh")
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, `read {}`)
	w.WaitSaid(2, 2)
	if got := m.result(1); !strings.Contains(got, "plugh") || !strings.Contains(got, "doesn't show bots earlier messages") || !strings.Contains(got, "you said something") {
		t.Errorf("the model reads %s", got)
	}
	w.Telegram.Say(2, 2, `read {"chat": "-100"}`)
	w.WaitSaid(2, 3)
	if got := m.result(2); !strings.Contains(got, "permission_denied") || !strings.Contains(got, "doesn't show bots earlier messages") {
		t.Errorf("of another chat the model reads %s", got)
	}
}
