package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
)

const signingSecret = "0123456789abcdef0123456789abcdef"

// Slack makes requests: each message is answered once, in its chat's order, also through
// kills, and no app token is needed.
func TestSlackOverHTTPThroughKills(t *testing.T) {
	t.Parallel()
	w, sl := newSlackWorld(t, parleytest.EchoModel)
	address := freeAddress(t)
	text, err := os.ReadFile(w.File)
	must(t, err)
	changed := strings.NewReplacer(
		"app_token = \"${SLACK_APP_TOKEN}\"", "receive = \"http\"\nsigning_secret = \"${SLACK_SIGNING_SECRET}\"\npublic_url = \"http://bot.example\"",
		"[http]\nlisten = \"\"", fmt.Sprintf("[http]\nlisten = %q", address),
	).Replace(string(text))
	must(t, os.WriteFile(w.File, []byte(changed), 0o600))
	env := []string{"SLACK_BOT_TOKEN=" + parleytest.SlackBot, "SLACK_SIGNING_SECRET=" + signingSecret}
	t.Cleanup(sl.PostTo("http://"+address+"/channels/slack", signingSecret))

	const chats, each = 5, 6
	p := w.Serve(env...)
	for i := range each {
		for chat := range chats {
			sl.Say(fmt.Sprint("D", chat), fmt.Sprint("U", chat), fmt.Sprintf("number %d", i))
		}
		if i%2 == 1 {
			slackSaid(t, sl, "D0", i)
			p.Kill()
			p = w.Serve(env...)
		}
	}
	for chat := range chats {
		said := func() (all string) {
			for _, m := range sl.Sent(fmt.Sprint("D", chat)) {
				all += m.Text + "\n"
			}
			return all
		}
		parleytest.WaitFor(t, "every answer", func() bool { return strings.Contains(said(), fmt.Sprint("number ", each-1)) })
		last := -1
		for i := range each {
			at := strings.Index(said(), fmt.Sprint("number ", i))
			if n := strings.Count(said(), fmt.Sprint("number ", i)); n != 1 || at < last {
				t.Errorf("chat %d: number %d is answered %d times, or out of order: %s", chat, i, n, said())
			}
			last = at
		}
	}
	parleytest.WaitFor(t, "every event to be acknowledged", func() bool { return sl.Unacked() == 0 })
	if n := sl.Calls("apps.connections.open"); n != 0 {
		t.Errorf("%d sockets were asked for", n)
	}
}
