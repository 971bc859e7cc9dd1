package notifications

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
)

// These tests run the example configuration for notifications: it sends alerts and builds to three platforms, without a
// model.

// unpaced is a channel setting for the tests' own servers, which accept any number of messages.
const unpaced = `rate_limit = "none"`

// volume returns how many alerts each of eight senders posts. If PARLEY_FULL is set, these are 10,000 in all.
func volume() int {
	if os.Getenv("PARLEY_FULL") != "" {
		return 1250
	}
	return 75
}

func TestAlertsReachAllPlatformsOnceThroughKills(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	s := o.alerts(8, volume())
	for n := range 4 {
		s.wait(t, (n+1)*8*s.each/5)
		p.Kill()
		p = o.Up()
	}
	<-s.done
	for part := range 10 {
		want := 8 * s.each * (part + 1) / 10
		parleytest.WaitFor(t, fmt.Sprintf("%d alerts to arrive", want), func() bool {
			return o.slack.Sends() >= want && o.discord.Sends() >= want && o.Telegram.Sends() >= want
		})
	}
	o.settled(3 * 8 * s.each)
	p.Stop()
	cut := o.interruptedOn("telegram")
	s.check(t, "Slack", parleytest.SlackTexts(o.slack.Sent(alertsSlack)), 0)
	s.check(t, "Discord", parleytest.DiscordTexts(o.discord.Sent(alertsDiscord)), 0)
	s.check(t, "Telegram", parleytest.Texts(o.Telegram.Sent(alertsTelegram)), cut)
	t.Logf("%d sends to Telegram were cut off", cut)
	o.silent()
}

// settled waits until this many messages have an outcome. A send to Telegram that was interrupted and repeated counts
// as delivered.
func (o *ops) settled(messages int) {
	o.T.Helper()
	parleytest.WaitFor(o.T, "an outcome of everything", func() bool {
		return o.Count(home.StoreFile, "SELECT count(*) FROM parts WHERE state = 'sent'") >= messages
	})
}

// interruptedOn returns the number of interrupted sends through a channel, of which nobody knows whether they arrived.
func (o *ops) interruptedOn(channel string) int {
	o.T.Helper()
	return o.Count("sessions.db", "SELECT sum(interrupted) FROM parts JOIN sends ON sends.id = parts.send WHERE sends.channel = '"+channel+"'")
}

// An outage can take a platform down and bring it back.
type outage struct {
	name       string
	begin, end func(t *testing.T, o *ops)
}

func outages() []outage {
	start := func(t *testing.T, start func(string) (string, error), address string) {
		t.Helper()
		if _, err := start(address); err != nil {
			t.Fatal(err)
		}
	}
	return []outage{
		{
			name:  "Discord refuses connections",
			begin: func(_ *testing.T, o *ops) { _ = o.discord.Close() },
			end:   func(t *testing.T, o *ops) { start(t, o.discord.Start, o.at["channels.ops-discord"]) },
		},
		{
			name:  "Telegram refuses connections",
			begin: func(_ *testing.T, o *ops) { _ = o.Telegram.Close() },
			end:   func(t *testing.T, o *ops) { start(t, o.Telegram.Start, o.at["channels.telegram"]) },
		},
		{
			name:  "Slack answers 500",
			begin: func(_ *testing.T, o *ops) { o.slack.Fail("", "", 0, slacktest.Status(500, "oops")) },
			end:   func(_ *testing.T, o *ops) { o.slack.ClearFaults() },
		},
		{
			name:  "Slack takes everything and answers nothing",
			begin: func(_ *testing.T, o *ops) { o.slack.Fail("chat.postMessage", "", 0, slacktest.Cut(true)) },
			end:   func(_ *testing.T, o *ops) { o.slack.ClearFaults() },
		},
		{
			name:  "Discord takes everything and answers nothing",
			begin: func(_ *testing.T, o *ops) { o.discord.Fail("POST messages", "", 0, discordtest.Cut(true)) },
			end:   func(_ *testing.T, o *ops) { o.discord.ClearFaults() },
		},
		{
			name: "Telegram answers 500",
			begin: func(_ *testing.T, o *ops) {
				o.Telegram.Fail(telegramtest.Fault{Act: telegramtest.Refuse, Status: 500, Description: "Internal Server Error"})
			},
			end: func(_ *testing.T, o *ops) { o.Telegram.ClearFaults() },
		},
	}
}

func TestOnePlatformDownDelaysNoOther(t *testing.T) {
	t.Parallel()
	for _, out := range outages() {
		t.Run(out.name, func(t *testing.T) {
			t.Parallel()
			o := newOps(t, "", unpaced)
			out.begin(t, o)
			p := o.Up()
			s := o.alerts(4, 10)
			s.wait(t, 20)
			p.Kill()
			p = o.Up()
			<-s.done
			arrived := func(n int) func() bool {
				return func() bool {
					have := 0
					for _, sends := range []int{len(o.slack.Sent(alertsSlack)), len(o.discord.Sent(alertsDiscord)), len(o.Telegram.Sent(alertsTelegram))} {
						if sends >= 40 {
							have++
						}
					}
					return have >= n
				}
			}
			parleytest.WaitFor(t, "the alerts on the other platforms", arrived(2))
			out.end(t, o)
			parleytest.WaitFor(t, "the rest of the alerts", arrived(3))
			p.Stop()
			s.check(t, "Slack", parleytest.SlackTexts(o.slack.Sent(alertsSlack)), 0)
			s.check(t, "Discord", parleytest.DiscordTexts(o.discord.Sent(alertsDiscord)), 0)
			s.check(t, "Telegram", parleytest.Texts(o.Telegram.Sent(alertsTelegram)), o.interruptedOn("telegram"))
		})
	}
}

// A message that a platform refuses for good goes to the fallback channel once, and the state of the message says so.
func TestWhatIsRefusedGoesToTheFallback(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	o.slack.Fail("chat.postMessage", alertsSlack, 0, slacktest.Refuse("channel_not_found"))
	p := o.Up()
	id := o.alert(alertOf("DiskFull", "critical", "firing", time.Now())).ID()
	told := o.WaitSaid(fallbackChat, 1)[0]
	if !strings.Contains(told, "DiskFull") || !strings.Contains(told, "slack:"+alertsSlack) {
		t.Errorf("the fallback was told %q", told)
	}
	o.WaitSaid(alertsTelegram, 1)
	var state parleytest.Answer
	parleytest.WaitFor(t, "the fallback in its state", func() bool { // slightly after the failure
		state = o.delivered(id)
		return strings.Contains(state.Body, `"fallback":{"address":"telegram:42","state":"sent"}`)
	})
	if !strings.Contains(state.Body, `"state":"failed"`) || strings.Count(state.Body, `"sent"`) != 3 {
		t.Errorf("its state is %s", state.Body)
	}
	p.Stop()
	if n := len(o.Telegram.Sent(fallbackChat)); n != 1 {
		t.Errorf("the fallback was told %d times", n)
	}
}

// The bot keeps to the rate limit of each platform.
func TestPaceOfEachPlatform(t *testing.T) {
	t.Parallel()
	const alerts = 8
	o := newOps(t, "", "")
	p := o.Up()
	s := o.alerts(1, alerts)
	<-s.done
	o.WaitSaid(alertsTelegram, alerts)
	p.Stop()
	var slackTimes, discordTimes, telegramTimes []time.Time
	for _, m := range o.slack.Sent(alertsSlack) {
		slackTimes = append(slackTimes, slackTime(m))
	}
	for _, m := range o.discord.Sent(alertsDiscord) {
		discordTimes = append(discordTimes, m.At)
	}
	for _, m := range o.Telegram.Sent(alertsTelegram) {
		telegramTimes = append(telegramTimes, m.At)
	}
	paced(t, "Slack", slackTimes, alerts, time.Second, 3)
	paced(t, "Discord", discordTimes, alerts, 1250*time.Millisecond, 2)
	paced(t, "Telegram, in a group", telegramTimes, alerts, 3*time.Second, 5)
}

// paced checks that the messages arrived at the rate of one in every interval, with at most a burst ahead of it, and
// that no message waited much longer than necessary.
func paced(t *testing.T, where string, times []time.Time, n int, every time.Duration, burst int) {
	t.Helper()
	// A message that was sent in time may arrive late on a busy machine, and then seems to be too close to the next
	// one.
	const blur = 400 * time.Millisecond
	if len(times) != n {
		t.Fatalf("%s has %d messages, want %d", where, len(times), n)
	}
	for i := range times {
		for j := range i {
			least := time.Duration(i-j+1-burst) * every
			if apart := times[i].Sub(times[j]); apart < least-blur {
				t.Errorf("%s: messages %d and %d came within %v, want %v at least", where, j, i, apart, least)
			}
		}
	}
	if took, must := times[n-1].Sub(times[0]), time.Duration(n-burst)*every; took > must+5*time.Second {
		t.Errorf("%s: it took %v, and %v would have been enough", where, took, must)
	}
}

// payload reads one of the example payloads.
func payload(t *testing.T, name string) string {
	t.Helper()
	return parleytest.ReadSource(t, "channels/webhook/testdata/"+name+".json")
}

func TestTwinsAreSentOnceAndResolvedEdits(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	began := time.Now().Add(-time.Second)
	first := o.alert(alertOf("DiskFull", "critical", "firing", began))
	twin := o.alert(alertOf("DiskFull", "critical", "firing", began))
	if first.Status != http.StatusAccepted || twin.Status != first.Status || twin.ID() != first.ID() {
		t.Errorf("twins were answered %+v and %+v", first, twin)
	}
	// A message that is being sent when its server is killed may be sent to Telegram twice.
	o.delivered(first.ID())
	// A second process sends the rest.
	p.Kill()
	p = o.Up()
	if twin := o.alert(alertOf("DiskFull", "critical", "firing", began)); twin.ID() != first.ID() {
		t.Errorf("after a restart a twin was answered %+v", twin)
	}
	o.alert(alertOf("DiskFull", "critical", "resolved", began))
	o.alert(alertOf("Other", "critical", "firing", began))
	o.everywhere(2)
	p.Stop()
	slack, discord, telegram := o.slack.Sent(alertsSlack), o.discord.Sent(alertsDiscord), o.Telegram.Sent(alertsTelegram)
	for where, text := range map[string]string{"Slack": slack[0].Text, "Discord": discord[0].Text, "Telegram": telegram[0].Text} {
		if !strings.Contains(text, "Resolved") || !strings.Contains(text, "DiskFull") || strings.Contains(text, "firing") {
			t.Errorf("%s shows %q", where, text)
		}
	}
	if slack[0].Edits != 1 || discord[0].Edits != 1 || telegram[0].Edited.IsZero() {
		t.Error("the alert was not edited")
	}
	if len(slack)+len(discord)+len(telegram) != 6 {
		t.Errorf("there are %d, %d and %d messages, want 2 of each", len(slack), len(discord), len(telegram))
	}
}

// delivered waits until a message has an outcome on each platform, and returns its state.
func (o *ops) delivered(id string) (state parleytest.Answer) {
	o.T.Helper()
	parleytest.WaitFor(o.T, "the message to have an outcome everywhere", func() bool {
		state = o.Ask("GET", "/v1/messages/"+id, "", o.OwnerHeader()...)
		return !strings.Contains(state.Body, `"queued"`)
	})
	return state
}

// everywhere waits until each platform has n alerts.
func (o *ops) everywhere(n int) {
	o.T.Helper()
	parleytest.WaitFor(o.T, "the alerts everywhere", func() bool {
		return len(o.slack.Sent(alertsSlack)) >= n && len(o.discord.Sent(alertsDiscord)) >= n && len(o.Telegram.Sent(alertsTelegram)) >= n
	})
}

func TestGitHubDeliveries(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	push := payload(t, "github.push")
	if got := o.github("ping", "d0", `{"zen": "Keep it logically awesome.", "hook_id": 1}`); got.Status != http.StatusAccepted {
		t.Errorf("a ping was answered %+v", got)
	}
	first, again := o.github("push", "d1", push), o.github("push", "d1", push)
	if first.Status != http.StatusAccepted || again.Status != first.Status || first.ID() == "" || first.ID() != again.ID() {
		t.Errorf("a delivery and its repetition were answered %+v and %+v", first, again)
	}
	if got := o.github("push", "d1", payload(t, "github.issues")); got.Status != http.StatusConflict {
		t.Errorf("another body under the same id was answered %+v", got)
	}
	wrong := o.Ask("POST", "/webhooks/github", push, "X-GitHub-Event", "push", "X-GitHub-Delivery", "d2",
		"X-Hub-Signature-256", "sha256="+strings.Repeat("0", 64))
	if wrong.Status != http.StatusUnauthorized || wrong.Code() != "unauthorized" {
		t.Errorf("a wrong signature was answered %+v", wrong)
	}
	o.github("issues", "d3", payload(t, "github.issues"))
	parleytest.WaitFor(t, "both deliveries", func() bool { return len(o.slack.Sent(buildsSlack)) >= 2 })
	p.Stop()
	got := parleytest.SlackTexts(o.slack.Sent(buildsSlack))
	if len(got) != 2 || !strings.Contains(got[0], "force-pushed") || !strings.Contains(got[0], "octocat/Hello-World") {
		t.Errorf("builds has %q", got)
	}
	if n := o.sends(); n != 2 {
		t.Errorf("%d messages were sent", n)
	}
}

func TestPlainJSONAndFailingTemplates(t *testing.T) {
	t.Parallel()
	const more = `
[webhooks.deploys]
kind = "json"
token = "deploys-token-00000000000000"
to = "ci"
routes = [{ match = { "env.name" = "prod" }, to = "telegram:42" }]
template = "**{{ .title }}** is {{ .state }} {{ .missing.field }}"
[webhooks.broken]
kind = "json"
token = "broken-token-00000000000000"
to = "ci"
template = "{{ index .list 7 }}"
`
	o := newOps(t, "", unpaced)
	text, err := os.ReadFile(o.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.File, append(text, more...), 0o600); err != nil {
		t.Fatal(err)
	}
	p := o.Up()
	deploys := parleytest.Bearer("deploys-token-00000000000000")
	o.Ask("POST", "/webhooks/deploys", `{"title": "api*gw", "state": "up", "env": {"name": "test"}}`, deploys...)
	o.Ask("POST", "/webhooks/deploys", `{"title": "web", "state": "down", "env": {"name": "prod"}}`, deploys...)
	if got := o.Ask("POST", "/webhooks/broken", `{"list": [1, 2], "who": "nobody @channel"}`, parleytest.Bearer("broken-token-00000000000000")...); got.Status != http.StatusAccepted {
		t.Errorf("a failing template was answered %+v", got)
	}
	if got := o.WaitSaid(fallbackChat, 1)[0]; !strings.Contains(got, "web is down") {
		t.Errorf("the route's chat has %q", got)
	}
	parleytest.WaitFor(t, "the other two", func() bool { return len(o.slack.Sent(buildsSlack)) >= 2 })
	p.Stop()
	got := parleytest.SlackTexts(o.slack.Sent(buildsSlack))
	slices.Sort(got)
	if !strings.Contains(got[0], "api*gw") || !strings.Contains(got[1], "broken") || !strings.Contains(got[1], "nobody") {
		t.Errorf("builds has %q", got)
	}
	for _, m := range o.slack.Sent(buildsSlack) {
		if m.NotifiesEverybody {
			t.Errorf("%q calls everybody", m.Text)
		}
	}
}
