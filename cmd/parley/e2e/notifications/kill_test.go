package notifications

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
)

// If the process is killed at any point where a send can be interrupted, no alert is lost, and none arrives twice
// except on Telegram, where a send that the book records as interrupted may be repeated.
func TestNotificationsKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"send:begun", "send:held", "send:sent", "send:marked", "send:tied", "send:settled",
		"send:begun/3", "send:held/3", "send:sent/2", "send:sent/3", "send:marked/3", "send:tied/3", "send:sent/4", "send:sent/6",
		"send:failed", "send:elsewhere",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			o := newOps(t, "", unpaced)
			refused := strings.HasPrefix(at, "send:failed") || strings.HasPrefix(at, "send:elsewhere")
			if refused {
				o.slack.Fail("chat.postMessage", alertsSlack, 0, slacktest.Refuse("is_archived"))
			}
			began := time.Now()
			first := o.Up("PARLEY_KILL_AT=" + at)
			p := first
			for _, status := range []string{"firing", "resolved"} { // the second alert edits the message of the first
				body := alertOf("DiskFull", "critical", status, began)
				parleytest.WaitFor(t, "the alert to be accepted", func() bool { // a sender without an answer posts again
					if p == first && first.HasEnded() {
						p = o.Up()
					}
					got, err := o.TryAsk("POST", "/webhooks/alertmanager", body, parleytest.Bearer(opsSecrets["alertmanager"])...)
					return err == nil && got.Status == http.StatusAccepted
				})
			}
			parleytest.WaitFor(t, "the kill", first.HasEnded)
			if p == first {
				p = o.Up()
			}
			p.Stop()
			cut := o.interruptedOn("telegram")
			slack, discord, telegram := parleytest.SlackTexts(o.slack.Sent(alertsSlack)), parleytest.DiscordTexts(o.discord.Sent(alertsDiscord)), parleytest.Texts(o.Telegram.Sent(alertsTelegram))
			want := 1
			if refused {
				want = 0
				if n := len(o.Telegram.Sent(fallbackChat)); n < 1 || n > 2+cut {
					t.Errorf("the fallback has %q", parleytest.Texts(o.Telegram.Sent(fallbackChat)))
				}
			}
			if len(slack) != want || len(discord) != 1 || len(telegram) < 1 || len(telegram) > 1+cut {
				t.Fatalf("Slack has %q, Discord %q, Telegram %q; %d sends were cut off", slack, discord, telegram, cut)
			}
			for _, last := range append(append(slack, discord...), telegram[len(telegram)-1]) {
				if !strings.Contains(last, "Resolved") {
					t.Errorf("the last word is %q", last)
				}
			}
		})
	}
}
