package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
)

// The bot tells its owners on Telegram when Slack goes down and comes back, when a message is given up, and when no
// dead letter is left. Each notice arrives once, even if the process is killed before or after it records the notice.
func TestOwnersHearWhatIsWrongAndWhenItIsOver(t *testing.T) {
	t.Parallel()
	sl := slacktest.New(parleytest.SlackBot, parleytest.SlackApp)
	api, err := sl.Start("127.0.0.1:0")
	parleytest.Must(t, err)
	t.Cleanup(func() { _ = sl.Close() })
	const ops = 50
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf(`
[notices]
to = ["telegram:%d"]
after = "1s"
[channels.slack]
api_url = %q
bot_token = %q
app_token = %q
access = "open"
rate_limit = "none"
introduce = "never"
`, ops, api, parleytest.SlackBot, parleytest.SlackApp))
	p := w.Serve()
	parleytest.WaitFor(t, "Slack", func() bool { return sl.Sockets() == 2 })
	parleytest.Must(t, sl.Close())
	parleytest.WaitFor(t, "the trouble to be noted", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM notes WHERE subject = 'concern'") == 1
	})
	p.Kill()
	p = w.Serve()
	if got := w.WaitSaid(ops, 1)[0]; !strings.Contains(got, "slack has been down") {
		t.Errorf("owners are told %q", got)
	}
	p.Kill()
	_, err = sl.Start(strings.Split(api, "/")[2])
	parleytest.Must(t, err)
	p = w.Serve()
	parleytest.WaitFor(t, "word that it is back", func() bool {
		return slices.ContainsFunc(parleytest.Texts(w.Telegram.Sent(ops)), func(s string) bool { return strings.Contains(s, "slack is back") })
	})

	w.Telegram.Fail(telegramtest.Fault{Chat: 77, Act: telegramtest.Refuse, Status: 400, Description: "Bad Request: chat not found"})
	w.Run("send", "--to", "telegram:77", "hello")
	told := func(what string) func() bool {
		return func() bool {
			return slices.ContainsFunc(parleytest.Texts(w.Telegram.Sent(ops)), func(s string) bool { return strings.Contains(s, what) })
		}
	}
	parleytest.WaitFor(t, "word of the dead letter", told("for you to look at: 1"))
	if _, errs, code := w.Run("dead-letters", "drop", "--all", "--yes"); code != 0 {
		t.Fatalf("drop: %d %s", code, errs)
	}
	parleytest.WaitFor(t, "word that none is left", told("All the messages I'd given up on"))
	p.Stop()
	for _, what := range []string{"slack has been down", "slack is back", "for you to look at", "All the messages"} {
		n := 0
		for _, s := range parleytest.Texts(w.Telegram.Sent(ops)) {
			if strings.Contains(s, what) {
				n++
			}
		}
		if n != 1 && n-w.InterruptedSends() > 1 {
			t.Errorf("%q was told %d times: %q", what, n, parleytest.Texts(w.Telegram.Sent(ops)))
		}
	}
	if n := w.Count("sessions.db", "SELECT count(*) FROM notes WHERE subject = 'concern'"); n != 0 {
		t.Errorf("%d concerns are left", n)
	}
}
