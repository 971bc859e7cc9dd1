package chat

import (
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// A model writes the title of a conversation if the operator has named one, and usage counts its calls. If the process
// is killed meanwhile, the title stays the first words of the conversation, and no process asks the model again.
func TestAModelMakesTitles(t *testing.T) {
	t.Parallel()
	const words, title = "How do I bake bread?", "Baking bread at home"
	for _, c := range []struct {
		at, title string
		asked     int64
	}{{"", title, 1}, {"title:ask", words, 0}, {"title:made", words, 1}} {
		t.Run("killed at "+c.at, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
				if strings.Contains(string(r.Body), `"namer"`) {
					asked.Add(1)
					return agenttest.Reply(title)
				}
				return agenttest.Reply("you said " + r.Said())
			}, "[agents.main]\ntitles = \"namer\"\n")
			w.Telegram.Say(2, 2, words)
			if c.at != "" {
				w.Serve("PARLEY_KILL_AT=" + c.at).WaitKilled()
			}
			p := w.Serve()
			w.WaitSaid(2, 1)
			parleytest.WaitFor(t, "the bus to be empty", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM message") == 0 })
			w.Telegram.Say(2, 2, "and butter?")
			w.WaitSaid(2, 2)
			p.Stop()
			if out, errs, code := w.Run("sessions", "--channel", "telegram"); code != 0 || !strings.Contains(out, "  "+c.title+"\n") {
				t.Errorf("%d %q %q, without the title %q", code, out, errs, c.title)
			}
			if out, errs, code := w.Run("usage", "--by", "model"); code != 0 || strings.Contains(out, "namer") != (c.asked > 0) {
				t.Errorf("%d %q %q, and the model for titles was asked %d times", code, out, errs, c.asked)
			}
			if asked.Load() != c.asked {
				t.Errorf("the model for titles was asked %d times, want %d", asked.Load(), c.asked)
			}
			if out, errs, code := w.Run("forget", "--user", "telegram:2", "--yes"); code != 0 {
				t.Errorf("%d %q %q", code, out, errs)
			}
			if out, _, _ := w.Run("sessions"); strings.Contains(out, "read") {
				t.Errorf("after forget there is %q", out)
			}
		})
	}
}
