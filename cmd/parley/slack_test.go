package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
)

const (
	slackBot = "xoxb-1-parley-test"
	slackApp = "xapp-1-parley-test"
)

// newSlackWorld is a world whose platform is Slack, with the configuration of a
// company of 200 people as it is handed out.
func newSlackWorld(t *testing.T, script agenttest.Script) (*world, *slacktest.Server) {
	t.Helper()
	w := newWorld(t, script, "")
	sl := slacktest.New(slackBot, slackApp)
	api, err := sl.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sl.Close() })
	given, err := os.ReadFile("config/testdata/team-slack.toml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(given), "[channels.slack]\n", fmt.Sprintf("[channels.slack]\napi_url = %q\nrate_limit = \"none\"\n", api), 1)
	text = strings.Replace(text, "[model]\n", fmt.Sprintf("[model]\nbase_url = %q\napi_key = \"none\"\n", w.model.Start(t)), 1)
	if err := os.WriteFile(w.file, []byte(text+"\n[http]\nlisten = \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, sl
}

func slackSaid(t *testing.T, sl *slacktest.Server, channel string, n int) []slacktest.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	sent, err := sl.WaitSent(ctx, channel, n)
	if err != nil {
		t.Fatalf("channel %s has %+v, want %d messages: %v", channel, sent, n, err)
	}
	return sent
}

func TestTeamSlack(t *testing.T) {
	t.Parallel()
	w, sl := newSlackWorld(t, echoModel)
	for n := range 200 {
		sl.AddUser(slacktest.User{ID: fmt.Sprintf("U%03d", n), Name: fmt.Sprint("Member ", n)})
	}
	sl.AddUser(slacktest.User{ID: "UGUEST", Name: "Guest", Guest: true})
	tokens := []string{"SLACK_BOT_TOKEN=" + slackBot, "SLACK_APP_TOKEN=" + slackApp}
	p := w.serve(tokens...)

	// Everybody's direct messages are answered; each has a conversation of their own.
	for n := range 200 {
		sl.Say(fmt.Sprintf("D%03d", n), fmt.Sprintf("U%03d", n), fmt.Sprint("hello ", n))
	}
	for n := range 200 {
		if got := slackSaid(t, sl, fmt.Sprintf("D%03d", n), 1)[0].Text; !strings.Contains(got, fmt.Sprint("hello ", n)) {
			t.Errorf("member %d got %q", n, got)
		}
	}
	// In a channel it takes a mention; then the thread goes on without one.
	sl.Say("C1", "U001", "not for the bot")
	root := sl.Say("C1", "U001", "<@"+slacktest.Bot+"> first")
	if got := slackSaid(t, sl, "C1", 1)[0]; got.Thread != root || !strings.Contains(got.Text, "first") {
		t.Errorf("the mention got %+v", got)
	}
	sl.Reply("C1", root, "U002", "second")
	if got := slackSaid(t, sl, "C1", 2)[1]; got.Thread != root || !strings.Contains(got.Text, "second") {
		t.Errorf("the thread got %+v", got)
	}
	// A guest is told why not, and leaves no trace.
	sl.Say("DGUEST", "UGUEST", "xyzzy-guest")
	if got := slackSaid(t, sl, "DGUEST", 1)[0].Text; strings.Contains(got, "you said") {
		t.Errorf("a guest got %q", got)
	}
	if found := filesWith(t, w.home, "xyzzy-guest"); len(found) > 0 {
		t.Errorf("what a guest said is in %v", found)
	}
	waitFor(t, "every event to be acknowledged", func() bool { return sl.Unacked() == 0 })

	// What is said while nobody serves is answered by the next who does, once.
	p.stop()
	sl.Say("D005", "U005", "while you were away")
	w.serve(tokens...)
	got := slackSaid(t, sl, "D005", 2)
	if !strings.Contains(got[1].Text, "while you were away") {
		t.Errorf("after the restart member 5 has %+v", got)
	}
	sl.Say("D006", "U006", "still there")
	slackSaid(t, sl, "D006", 2)
	for n := range 200 {
		want := 1
		if n == 5 || n == 6 {
			want = 2
		}
		if got := sl.Sent(fmt.Sprintf("D%03d", n)); len(got) != want {
			t.Errorf("member %d has %d answers, want %d", n, len(got), want)
		}
	}
}

// An answer that takes a while is shown while it is made, in one message.
func TestSlackShowsTheAnswerBeingMade(t *testing.T) {
	t.Parallel()
	const half = "a beginning that is long enough to be worth showing before the rest of it is there"
	rest := make(chan struct{})
	w, sl := newSlackWorld(t, func(agenttest.Request) agenttest.Response {
		r := agenttest.Raw(
			`data: {"choices":[{"index":0,"delta":{"content":"`+half+`"}}]}`+"\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":", and the end"}}]}`+"\n\n"+
				`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n",
		)
		r.Parts[1].Wait = rest
		return r
	})
	w.serve("SLACK_BOT_TOKEN="+slackBot, "SLACK_APP_TOKEN="+slackApp)
	said := sl.Say("D001", "U001", "tell me")
	if got := slackSaid(t, sl, "D001", 1)[0].Text; !strings.Contains(got, half) {
		t.Errorf("meanwhile it says %q", got)
	}
	close(rest)
	waitFor(t, "the whole answer", func() bool { return strings.Contains(sl.Sent("D001")[0].Text, "and the end") })
	waitFor(t, "the mark that it is answered", func() bool { return len(sl.Reactions("D001", said)) > 0 })
	if got := sl.Sent("D001"); len(got) != 1 || got[0].Edits == 0 {
		t.Errorf("the chat has %+v, want one message that was edited", got)
	}
}
