package webhook_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"parley/bus"
	"parley/bus/bustest"
	"parley/channels/webhook"
	"parley/channels/webhook/events"
)

// newAgentRig makes a webhook with the agent "ops".
func newAgentRig(t testing.TB, s testConfig) *rig {
	t.Helper()
	s.agent = true
	return newRig(t, s)
}

// takeEvents removes the messages that wait for agents, and returns them by session.
func (d *rig) takeEvents() map[string][]bus.Inbound {
	d.Helper()
	all := map[string][]bus.Inbound{}
	for _, m := range bustest.Take(d, d.bus, bus.InboundTopic) {
		in, err := bus.DecodeInbound(m.Body)
		if err != nil {
			d.Fatal(err)
		}
		all[m.Key] = append(all[m.Key], in)
	}
	return all
}

// A post is passed to the agent as an untrusted quote, and nothing is sent to people.
func TestAnEventIsPassedToTheAgent(t *testing.T) {
	d := newAgentRig(t, testConfig{kind: webhook.Alertmanager})
	a := d.mustAccept(d.request("", notificationBody("+a@26")))
	all := d.takeEvents()
	const session = "ops:webhook:hook:%7B%7D%3A%7B%7D"
	if len(all) != 1 || len(all[session]) != 1 {
		t.Fatalf("the agent is told %+v", all)
	}
	in := all[session][0]
	if in.ID != a.ID || in.From.ID != "webhook:hook" || in.From.Owner || !in.IsPosted() || in.Quotes[0].From.ID != "" || !strings.Contains(in.Quotes[0].Text, `"fingerprint": "a"`) {
		t.Errorf("it is told %+v", in)
	}
	if strings.Contains(in.Text, "fingerprint") {
		t.Errorf("what was posted stands in the words themselves: %s", in.Text)
	}
	if len(a.Destinations) != 1 || a.Destinations[0].Address != "webhook:hook/{}:{}" {
		t.Errorf("the answer is %+v", a)
	}
	if n := len(d.takeOutbound()); n != 0 {
		t.Errorf("people are sent %d messages", n)
	}
	p, err := d.outbox.Find(t.Context(), a.ID)
	if err != nil || len(p.Destinations) != 2 || p.Destinations[1].Chat != "CI" {
		t.Errorf("its answer goes to %+v, %v", p.Destinations, err)
	}
}

// TestTwinsStartOneTurn posts the same event from replicas, repeatedly, and after a restart.
func TestTwinsStartOneTurn(t *testing.T) {
	d := newAgentRig(t, testConfig{kind: webhook.Alertmanager})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { d.mustAccept(d.request("", notificationBody("+a@20"))) })
	}
	wg.Wait()
	d.restart()
	d.mustAccept(d.request("", notificationBody("+a@20")))
	all := d.takeEvents()
	if n := len(all["ops:webhook:hook:%7B%7D%3A%7B%7D"]); n != 1 {
		t.Errorf("the agent is told %d times", n)
	}
}

// A storm of events of one group is accepted, far beyond the number of messages that a person may have waiting.
func TestAStormOfEventsIsAccepted(t *testing.T) {
	d := newAgentRig(t, testConfig{kind: webhook.Alertmanager})
	for i := range 20 + bus.UrgentBeyond {
		d.mustAccept(d.request("", notificationBody(fmt.Sprintf("+a%d@26", i))))
	}
	if a := d.send(d.request("", notificationBody("+b@26"))); a.status != http.StatusServiceUnavailable || a.Error.Code != "mailbox_full" {
		t.Errorf("what is too much is answered %+v", a)
	}
	if all := d.takeEvents(); len(all) != 1 {
		t.Errorf("the sessions are %d", len(all))
	}
	d.mustAccept(d.request("", notificationBody("+b@26"))) // the same notification again
	if all := d.takeEvents(); len(all) != 1 {
		t.Errorf("after it came again the sessions are %d", len(all))
	}
}

func TestGroups(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		kind, group, event, body string
		want                     string // the thread in the session's key
	}{
		"an alert's group":       {webhook.Alertmanager, "", "", notificationBody("+a@26"), "{}:{}"},
		"an alert without a key": {webhook.Alertmanager, "", "", `{"alerts":[{}],"groupLabels":{"a":"b"}}`, `{"a":"b"}`},
		"a pull request":         {webhook.GitHub, "", "pull_request", `{"number":7,"repository":{"full_name":"o/r"}}`, "o/r#7"},
		"an issue's comment":     {webhook.GitHub, "", "issue_comment", `{"issue":{"number":8},"repository":{"full_name":"o/r"}}`, "o/r#8"},
		"a run of one":           {webhook.GitHub, "", "workflow_run", `{"workflow_run":{"head_branch":"x","pull_requests":[{"number":9}]},"repository":{"full_name":"o/r"}}`, "o/r#9"},
		"a run of a branch":      {webhook.GitHub, "", "workflow_run", `{"workflow_run":{"head_branch":"x","pull_requests":[]},"repository":{"full_name":"o/r"}}`, "o/r@x"},
		"a push":                 {webhook.GitHub, "", "push", `{"ref":"refs/heads/main","repository":{"full_name":"o/r"}}`, "o/r@main"},
		"a star":                 {webhook.GitHub, "", "star", `{"repository":{"full_name":"o/r"}}`, "o/r"},
		"JSON":                   {webhook.JSON, "{{ .build.id }}", "", `{"build":{"id":"*7*"}}`, "*7*"},
		"JSON of none":           {webhook.JSON, "{{ .build.id }}", "", `{"a":1}`, ""},
		"JSON without a group":   {webhook.JSON, "", "", `{"a":1}`, ""},
		"a long one":             {webhook.JSON, "{{ .a }}", "", `{"a":"` + long + `"}`, long[:93] + "~c2a6fb"},
		"one that is a line":     {webhook.JSON, "{{ .a }}", "", `{"a":"x\ny"}`, "~"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newAgentRig(t, testConfig{kind: c.kind, group: c.group})
			d.mustAccept(d.request(c.event, c.body))
			for key, all := range d.takeEvents() {
				got := all[0].At.Thread
				if cut, _, short := strings.Cut(c.want, "~"); short {
					if !strings.HasPrefix(got, cut+"~") || len(got) != len(cut)+15 {
						t.Errorf("the group is %q", got)
					}
				} else if got != c.want {
					t.Errorf("the group is %q, want %q", got, c.want)
				}
				if !strings.HasPrefix(key, "ops:webhook:hook") {
					t.Errorf("the session is %s", key)
				}
				return
			}
			t.Error("the agent is told nothing")
		})
	}
}

// A post for which the template prints nothing starts no turn, and a route may lead to another place.
func TestWhichEventsStartATurn(t *testing.T) {
	d := newAgentRig(t, testConfig{
		kind: webhook.JSON, template: "{{ if .bad }}it is bad{{ end }}",
		routes: []webhook.Route{{Match: map[string]string{"team": "x"}, To: []string{"oncall"}}, {Match: map[string]string{"team": "y"}, To: []string{}}},
	})
	for _, body := range []string{`{"a":1}`, `{"bad":true,"team":"y"}`} {
		if a := d.mustAccept(d.request("", body)); len(a.Destinations) != 0 || len(d.takeEvents()) != 0 {
			t.Errorf("%s starts %+v", body, a)
		}
	}
	a := d.mustAccept(d.request("", `{"bad":true,"team":"x"}`))
	if n := len(d.takeEvents()); n != 1 {
		t.Errorf("%d sessions are told", n)
	}
	if p, err := d.outbox.Find(t.Context(), a.ID); err != nil || p.Destinations[1].Chat != "ONCALL" {
		t.Errorf("its answer goes to %+v, %v", p.Destinations, err)
	}
}

// eventsChannel returns the channel that passes a rig's events to the agent.
func (d *rig) eventsChannel() *events.Channel {
	return &events.Channel{
		Bus: d.bus, Events: d.bus, Book: d.book, Now: d.clock.now,
		Webhooks: func(name string) (events.Webhook, bool) {
			return events.Webhook{Agent: "ops", To: []bus.Address{{Channel: "slack", Chat: "CI"}}}, name == "hook"
		},
	}
}
