package platforms

import (
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

// The agent is told what people do on Slack besides writing messages, if they may talk to the agent.
func TestTeamSlackBesideMessages(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, parleytest.EchoModel)
	sl.AddUser(slacktest.User{ID: "UGUEST", Name: "Guest", Guest: true})
	w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	parleytest.WaitFor(t, "sockets", func() bool { return sl.Sockets() == 2 })

	sl.OpenHome("U1", "home")
	sl.OpenHome("UGUEST", "home")
	parleytest.WaitFor(t, "homes", func() bool { return sl.Home("U1") != "" && sl.Home("UGUEST") != "" })
	if got := sl.Home("U1"); !strings.Contains(got, "read the files in our conversation's folder") || strings.Contains(got, "run programs") || !strings.Contains(got, "`!stop`") {
		t.Errorf("a member's home shows %q", got)
	}
	if got := sl.Home("UGUEST"); !strings.HasPrefix(got, "You can't talk to me yet") || strings.Contains(got, "files") {
		t.Errorf("a guest's home shows %q", got)
	}

	pane, guests := sl.OpenPane("U1", ""), sl.OpenPane("UGUEST", "")
	parleytest.WaitFor(t, "prompts", func() bool { return len(sl.Pane("D1", pane).Prompts) > 0 })
	sl.Reply("D1", pane, "U1", "from the pane")
	parleytest.WaitFor(t, "a title", func() bool { return sl.Pane("D1", pane).Title == "from the pane" })
	if got := parleytest.SlackSaid(t, sl, "D1", 2)[1]; got.Thread != pane || !strings.Contains(got.Text, "from the pane") { // the first message begins the pane's thread
		t.Errorf("the pane got %+v", got)
	}
	if p := sl.Pane("DGUEST", guests); len(p.Prompts) > 0 {
		t.Errorf("a guest's pane shows %+v", p)
	}

	root := sl.Say("C1", "U2", "the deploy has failed")
	sl.Command("C1", "U1", "how are you?")
	if got := parleytest.SlackSaid(t, sl, "C1", 1)[0]; got.Thread != "" || !strings.Contains(got.Text, "how are you?") {
		t.Errorf("the command got %+v", got)
	}
	sl.Ask("C1", "U1", root, "ask")
	if got := parleytest.SlackSaid(t, sl, "C1", 2)[1]; got.Thread != root {
		t.Errorf("the shortcut got %+v", got)
	}
	sl.Command("C1", "UGUEST", "xyzzy-guest")
	sl.Ask("C1", "UGUEST", root, "ask")
	parleytest.WaitFor(t, "a refusal", func() bool { return len(sl.Whispers()) > 0 })
	if got := sl.Whispers()[0]; got.User != "UGUEST" || !strings.Contains(got.Text, "I don't know you") {
		t.Errorf("the guest is told %+v", got)
	}
	if found := parleytest.FilesWith(t, w.Home, "xyzzy-guest"); len(found) > 0 {
		t.Errorf("what a guest said is in %v", found)
	}
	sl.Command("C1", "U1", "last")
	last := parleytest.SlackSaid(t, sl, "C1", 3)[2]
	w.WaitBooked(last.TS)
	sl.React("C1", "U2", last.TS, "+1", false)
	sl.React("C1", "UGUEST", last.TS, "-1", false)
	parleytest.WaitFor(t, "the reactions to be acknowledged", func() bool { return sl.Unacked() == 0 })
	var log string
	parleytest.WaitFor(t, "the thumb in the session", func() bool {
		log, _, _ = w.Run("sessions", "main:slack:C1")
		return strings.Contains(log, "👍 from slack:U2 for the answer to slack:"+slacktest.Team+":C1:command:U1:")
	})
	if strings.Contains(log, "👎") {
		t.Errorf("the session reads %s", log)
	}
}

// If a person calls the bot into a thread, the bot knows the earlier messages of the thread.
func TestTeamSlackReadsTheThread(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, func(r agenttest.Request) agenttest.Response {
		all := r.Messages()
		shown := all[len(all)-1].Content
		for _, quoted := range []string{`<quote kind="earlier" from="slack:U2"`, "the deploy has failed", "disk full"} {
			if !strings.Contains(shown, quoted) {
				return agenttest.Reply("nothing of " + quoted)
			}
		}
		return agenttest.Reply("seen")
	})
	w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	parleytest.WaitFor(t, "sockets", func() bool { return sl.Sockets() == 2 })
	root := sl.Say("C1", "U2", "the deploy has failed")
	sl.Reply("C1", root, "U3", "disk full")
	sl.Reply("C1", root, "U1", "<@"+slacktest.Bot+"> what now?")
	if got := parleytest.SlackSaid(t, sl, "C1", 1)[0].Text; got != "seen" {
		t.Errorf("the model was shown %s", got)
	}
}
