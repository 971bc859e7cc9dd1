package platforms

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

// The bot listens only in the channels that the configuration lists, and in one of them to every message. A reload can
// remove a channel without a restart.
func TestABotListensWhereItIsToldTo(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 100)
	w, sl := parleytest.NewSlack(t, func(r agenttest.Request) agenttest.Response {
		asked <- r.Said()
		return parleytest.EchoModel(r)
	})
	sl.AddUser(slacktest.User{ID: "U1", Name: "Member"})
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	listens := func(chats string) {
		t.Helper()
		file := strings.Replace(string(text), "[channels.slack]\n", "[channels.slack]\nchats = "+chats+"\n", 1)
		if err := os.WriteFile(w.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const mention = "<@" + slacktest.Bot + "> "
	listens(`["C1", { chat = "C2", mention = "never" }]`)
	p := w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	sl.Say("C9", "U1", mention+"xyzzy-elsewhere")
	sl.Say("C1", "U1", "xyzzy-talk")
	sl.Say("C1", "U1", mention+"one")
	parleytest.SlackSaid(t, sl, "C1", 1)
	root := sl.Say("C2", "U1", "two")
	if got := parleytest.SlackSaid(t, sl, "C2", 1)[0]; got.Thread != root {
		t.Errorf("what was said to nobody got %+v", got)
	}
	listens(`["C1"]`)
	if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	parleytest.WaitFor(t, "the reload", func() bool { return strings.Contains(p.Stderr.String(), "configuration read again") })
	sl.Reply("C2", root, "U1", mention+"xyzzy-later")
	sl.Say("C1", "U1", mention+"last")
	parleytest.SlackSaid(t, sl, "C1", 2)
	parleytest.WaitFor(t, "every event to be acknowledged", func() bool { return sl.Unacked() == 0 })
	p.Stop()
	if found := parleytest.FilesWith(t, w.Home, "xyzzy"); len(found) > 0 {
		t.Errorf("what was not for the bot is in %v", found)
	}
	close(asked)
	for said := range asked {
		if strings.Contains(said, "xyzzy") {
			t.Errorf("the model was asked %q", said)
		}
	}
	if n := len(sl.Sent("C9")) + len(sl.Sent("C2")); n != 1 {
		t.Errorf("where it does not listen it said %+v, %+v", sl.Sent("C9"), sl.Sent("C2"))
	}
}
