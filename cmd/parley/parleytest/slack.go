package parleytest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
)

// SlackBot and SlackApp are the tokens of a Slack app.
const (
	SlackBot = "xoxb-1-parley-test"
	SlackApp = "xapp-1-parley-test"
)

// NewSlack makes a world whose platform is Slack, with the example configuration for a company of 200 people.
func NewSlack(t *testing.T, script agenttest.Script) (*World, *slacktest.Server) {
	t.Helper()
	w := New(t, script, "")
	sl := slacktest.New(SlackBot, SlackApp)
	api, err := sl.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sl.Close() })
	given := ReadSource(t, "cmd/parley/config/testdata/team-slack.toml")
	text := strings.Replace(given, "[channels.slack]\n", fmt.Sprintf("[channels.slack]\napi_url = %q\nrate_limit = \"none\"\nintroduce = \"never\"\n", api), 1)
	text = strings.Replace(text, "[model]\n", fmt.Sprintf("[model]\nbase_url = %q\napi_key = \"none\"\nprice_input = 0\n", w.Model.Start(t)), 1)
	if err := os.WriteFile(w.File, []byte(text+"\n[http]\nlisten = \"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, sl
}

// SlackSaid waits until the bot has sent n messages to a channel, and returns them.
func SlackSaid(t *testing.T, sl *slacktest.Server, channel string, n int) []slacktest.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	sent, err := sl.WaitSent(ctx, channel, n)
	if err != nil {
		t.Fatalf("channel %s has %+v, want %d messages: %v", channel, sent, n, err)
	}
	return sent
}

// SlackTexts returns the texts of messages.
func SlackTexts(sent []slacktest.Message) []string {
	var all []string
	for _, m := range sent {
		all = append(all, m.Text)
	}
	return all
}
