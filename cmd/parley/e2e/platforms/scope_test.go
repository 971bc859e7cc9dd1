package platforms

import (
	"os"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

// rememberModel plays a model that answers with everything that people have said in the conversation.
func rememberModel(r agenttest.Request) agenttest.Response {
	var said []string
	for _, word := range []string{"apple", "berry", "cherry", "date"} {
		if strings.Contains(string(r.Body), ">"+word) || strings.Contains(string(r.Body), `\u003e`+word) || strings.Contains(string(r.Body), `\n`+word) {
			said = append(said, word)
		}
	}
	return agenttest.Reply("I know of " + strings.Join(said, ", "))
}

// Depending on the configuration, two people in one thread have separate conversations, or all threads of a channel are
// one conversation. The server logs at its start that this setting was changed.
func TestWhoseConversationItIs(t *testing.T) {
	t.Parallel()
	w, sl := parleytest.NewSlack(t, rememberModel)
	for _, user := range []string{"U1", "U2"} {
		sl.AddUser(slacktest.User{ID: user, Name: "Member " + user})
	}
	text, err := os.ReadFile(w.File)
	if err != nil {
		t.Fatal(err)
	}
	const mention, changed = "<@" + slacktest.Bot + "> ", "conversations on this channel begin anew"
	serve := func(scope string) *parleytest.Process {
		t.Helper()
		file := strings.Replace(string(text), "[channels.slack]\n", "[channels.slack]\nsession = \""+scope+"\"\n", 1)
		if err := os.WriteFile(w.File, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		return w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
	}
	want := func(channel string, n int, knows string) {
		t.Helper()
		if got := parleytest.SlackSaid(t, sl, channel, n)[n-1].Text; got != "I know of "+knows {
			t.Errorf("answer %d in %s is %q, want %q", n, channel, got, knows)
		}
	}

	p := serve("user")
	root := sl.Say("C1", "U1", mention+"apple")
	want("C1", 1, "apple")
	sl.Reply("C1", root, "U2", "berry")
	want("C1", 2, "berry")
	sl.Reply("C1", root, "U1", "cherry")
	want("C1", 3, "apple, cherry")
	sl.Say("D1", "U1", "date")
	want("D1", 1, "date")
	if got := sl.Sent("C1"); got[1].Thread != root || got[2].Thread != root {
		t.Errorf("answers are %+v", got)
	}
	p.Stop()
	out, _, _ := w.Run("sessions")
	for _, key := range []string{"main:slack:C1:" + root + ":U1", "main:slack:C1:" + root + ":U2", "main:slack:D1"} {
		if !strings.Contains(out, key) {
			t.Errorf("there is no session %s:\n%s", key, out)
		}
	}
	if out, errs, code := w.Run("sessions", "main:slack:C1:"+root+":U1"); code != 0 || !strings.Contains(out, "cherry") || strings.Contains(out, "berry\n") {
		t.Errorf("the session is %d %s%s", code, out, errs)
	}
	if out, _, code := w.Run("forget", "--user", "slack:U1", "--yes"); code != 0 || !strings.Contains(out, "sessions erased entirely") {
		t.Errorf("forget says %d %s", code, out)
	}
	if found := parleytest.FilesWith(t, w.Home, "apple"); len(found) > 0 {
		t.Errorf("what was forgotten is in %v", found)
	}

	p = serve("channel")
	parleytest.WaitFor(t, "word of the change", func() bool { return strings.Contains(p.Stderr.String(), changed) })
	root = sl.Say("C2", "U1", mention+"apple")
	want("C2", 1, "apple")
	sl.Say("C2", "U2", mention+"berry")
	want("C2", 2, "apple, berry")
	if got := sl.Sent("C2"); got[0].Thread != root || got[1].Thread == root {
		t.Errorf("answers are %+v", got)
	}
	p.Stop()
	p = serve("channel")
	p.WaitServing()
	sl.Say("C2", "U2", mention+"cherry")
	want("C2", 3, "apple, berry, cherry")
	p.Stop()
	if strings.Contains(p.Stderr.String(), changed) {
		t.Error("a change is told that was not made")
	}
}
