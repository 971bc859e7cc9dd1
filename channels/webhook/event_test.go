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

// newAgentRig is a webhook whose agent is "ops".
func newAgentRig(t testing.TB, s setting) *rig {
	t.Helper()
	s.agent = true
	return newRig(t, s)
}

// said is what waits for agents, by session, and is taken.
func (d *rig) said() map[string][]bus.Inbound {
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

// What is posted is said to the agent, as a quote that nobody vouches for, and nothing
// is sent to people.
func TestAnEventIsSaidToTheAgent(t *testing.T) {
	d := newAgentRig(t, setting{kind: webhook.Alertmanager})
	a := d.mustAccept(d.request("", note("+a@26")))
	all := d.said()
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
	if n := len(d.mail()); n != 0 {
		t.Errorf("people are sent %d messages", n)
	}
	p, err := d.outbox.Find(t.Context(), a.ID)
	if err != nil || len(p.Destinations) != 2 || p.Destinations[1].Chat != "CI" {
		t.Errorf("its answer goes to %+v, %v", p.Destinations, err)
	}
}

// TestTwinsStartOneTurn: replicas, repeats of a delivery, and a restart in between.
func TestTwinsStartOneTurn(t *testing.T) {
	d := newAgentRig(t, setting{kind: webhook.Alertmanager})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { d.mustAccept(d.request("", note("+a@20"))) })
	}
	wg.Wait()
	d.restart()
	d.mustAccept(d.request("", note("+a@20")))
	all := d.said()
	if n := len(all["ops:webhook:hook:%7B%7D%3A%7B%7D"]); n != 1 {
		t.Errorf("the agent is told %d times", n)
	}
}

// A storm of one group is taken, well beyond what a person may have waiting.
func TestAStormIsTaken(t *testing.T) {
	d := newAgentRig(t, setting{kind: webhook.Alertmanager})
	for i := range 20 + bus.UrgentBeyond {
		d.mustAccept(d.request("", note(fmt.Sprintf("+a%d@26", i))))
	}
	if a := d.do(d.request("", note("+b@26"))); a.status != http.StatusServiceUnavailable || a.Error.Code != "mailbox_full" {
		t.Errorf("what is too much is answered %+v", a)
	}
	if all := d.said(); len(all) != 1 {
		t.Errorf("the sessions are %d", len(all))
	}
	d.mustAccept(d.request("", note("+b@26"))) // it comes again
	if all := d.said(); len(all) != 1 {
		t.Errorf("after it came again the sessions are %d", len(all))
	}
}

func TestGroups(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		kind, group, event, body string
		want                     string // the thread of the session
	}{
		"an alert's group":       {webhook.Alertmanager, "", "", note("+a@26"), "{}:{}"},
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
			d := newAgentRig(t, setting{kind: c.kind, group: c.group})
			d.mustAccept(d.request(c.event, c.body))
			for key, all := range d.said() {
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

// What a template prints nothing for starts nothing, and a route may lead elsewhere.
func TestWhatStartsATurn(t *testing.T) {
	d := newAgentRig(t, setting{
		kind: webhook.JSON, template: "{{ if .bad }}it is bad{{ end }}",
		routes: []webhook.Route{{Match: map[string]string{"team": "x"}, To: []string{"oncall"}}, {Match: map[string]string{"team": "y"}, To: []string{}}},
	})
	for _, body := range []string{`{"a":1}`, `{"bad":true,"team":"y"}`} {
		if a := d.mustAccept(d.request("", body)); len(a.Destinations) != 0 || len(d.said()) != 0 {
			t.Errorf("%s starts %+v", body, a)
		}
	}
	a := d.mustAccept(d.request("", `{"bad":true,"team":"x"}`))
	if n := len(d.said()); n != 1 {
		t.Errorf("%d sessions are told", n)
	}
	if p, err := d.outbox.Find(t.Context(), a.ID); err != nil || p.Destinations[1].Chat != "ONCALL" {
		t.Errorf("its answer goes to %+v, %v", p.Destinations, err)
	}
}

// events is the events of events of a rig.
func (d *rig) events() *events.Channel {
	return &events.Channel{
		Bus: d.bus, Events: d.bus, Book: d.book, Now: d.clock.now,
		Webhooks: func(name string) (events.Webhook, bool) {
			return events.Webhook{Agent: "ops", To: []bus.Address{{Channel: "slack", Chat: "CI"}}}, name == "hook"
		},
	}
}
