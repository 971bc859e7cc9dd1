package background

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

const (
	eventToken   = "webhook-token-0000000000"
	onCall       = int64(-10077) // the chat to which reports go
	hookSettings = `
[webhooks.alerts]
kind = "alertmanager"
token = "` + eventToken + `"
to = "telegram:-10077"
agent = "main"
`
)

// An eventWorld is a world in which alerts start turns.
type eventWorld struct{ *parleytest.HTTPWorld }

// newEventWorld returns an event world; more is appended to its configuration.
func newEventWorld(t *testing.T, script agenttest.Script, more string) eventWorld {
	t.Helper()
	return eventWorld{parleytest.ListenHTTP(parleytest.New(t, script, hookSettings+more))}
}

// event posts an alert of a group until the server accepts it, because programs post again if they get no answer. It
// calls down whenever the server does not answer.
func (o eventWorld) event(group, name string, began time.Time, down func()) {
	o.T.Helper()
	body := fmt.Sprintf(`{"receiver":"r","groupKey":%q,"status":"firing","alerts":[{"status":"firing","labels":{"alertname":%q},"startsAt":%q,"fingerprint":%q}]}`,
		group, name, began.Format(time.RFC3339), name)
	parleytest.WaitFor(o.T, "the alert to be accepted", func() bool {
		got, err := o.TryAsk("POST", "/webhooks/alerts", body, parleytest.Bearer(eventToken)...)
		if err != nil && down != nil {
			down()
		}
		return err == nil && got.Status == http.StatusAccepted
	})
}

// looksInto plays a model that examines an event with a tool and then reports.
func looksInto(r agenttest.Request) agenttest.Response {
	if r.Rounds() == 0 {
		return agenttest.Calls(agenttest.ToolCall{Name: "memory_write", Args: `{"content":"looked into it"}`})
	}
	return agenttest.Reply("the disk is full")
}

// If the process is killed at any step between the post and the report, the report arrives once. Only on Telegram may
// it arrive twice, because Telegram cannot tell whether an interrupted send arrived.
func TestAnEventKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, at := range []string{
		"event:recorded", "event:started", "c1:before", "c1", "c3", "c4", "c5", "c6:before", "c6", "c7:published", "c7", "settled",
		"send:begun", "send:held", "send:sent", "send:marked", "send:settled", "send:begun/2", "send:sent/2", "send:settled/2",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			o := newEventWorld(t, looksInto, "")
			first := o.Up("PARLEY_KILL_AT=" + at)
			p, began := first, time.Now()
			down := func() {
				if p == first && first.HasEnded() {
					p = o.Up()
				}
			}
			o.event("g", "DiskFull", began, down)
			parleytest.WaitFor(t, "the kill", first.HasEnded)
			down()
			o.event("g", "DiskFull", began, nil) // the same event posted again
			o.WaitSaid(onCall, 1)
			p.Stop()
			got := parleytest.Texts(o.Telegram.Sent(onCall))
			if len(got) > 1+o.InterruptedSends() {
				t.Errorf("the report was sent %d times, and %d sends were cut off: %q", len(got), o.InterruptedSends(), got)
			}
			if !strings.Contains(got[0], "the disk is full") || !strings.Contains(got[0], "alerts") {
				t.Errorf("the report reads %q", got[0])
			}
			if n := o.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'turn_started'"); n != 1 {
				t.Errorf("%d turns were begun", n)
			}
		})
	}
}

// A hundred alerts of one group start one turn. Alerts that arrive while the turn runs are added to it.
func TestAStormOfAlertsIsOneTurn(t *testing.T) {
	t.Parallel()
	all := make(chan struct{})
	var mu sync.Mutex
	seen := map[string]bool{}
	o := newEventWorld(t, func(r agenttest.Request) agenttest.Response {
		mu.Lock()
		defer mu.Unlock()
		for i := range 100 {
			if name := fmt.Sprintf("Alert%03d", i); strings.Contains(string(r.Body), name) {
				seen[name] = true
			}
		}
		if r.N == 1 {
			return agenttest.Calls(agenttest.ToolCall{Name: "memory_read"}).WaitFor(all)
		}
		return agenttest.Reply("the network is down")
	}, "")
	p := o.Up()
	var posts sync.WaitGroup
	free := make(chan struct{}, 10)
	for i := range 100 {
		posts.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			o.event("storm", fmt.Sprintf("Alert%03d", i), time.Now(), nil)
		})
	}
	posts.Wait()
	close(all)
	o.WaitSaid(onCall, 1)
	p.Stop()
	if got := parleytest.Texts(o.Telegram.Sent(onCall)); len(got) != 1 {
		t.Errorf("people are told %q", got)
	}
	if n := o.Count("sessions.db", "SELECT count(*) FROM entries WHERE kind = 'turn_started'"); n != 1 {
		t.Errorf("%d turns were begun", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 100 {
		t.Errorf("the model was told of %d alerts", len(seen))
	}
}

// If a turn of a webhook wants to act on the outside, the bot asks for approval in the configured chat. If no chat is
// configured, the call is denied and nobody is asked.
func TestAnEventsAsks(t *testing.T) {
	t.Parallel()
	script := func(r agenttest.Request) agenttest.Response {
		var results []string // the results of all calls, whatever messages are between them
		for _, m := range r.Messages() {
			if m.Role == "tool" {
				results = append(results, m.Content)
			}
		}
		if slices.Contains(r.Tools(), "ask_user") {
			return agenttest.Reply("it is offered to ask nobody")
		}
		if len(results) == 0 {
			return agenttest.Calls(
				agenttest.ToolCall{Name: "write_file", Args: `{"path":"a","content":"b"}`},
				agenttest.ToolCall{Name: "ask_user", Args: `{"question":"really?"}`})
		}
		return agenttest.Reply("it came to " + strings.Join(results, " "))
	}
	const rule = "[tools]\nask = [\"write_file\"]\n"
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		o := newEventWorld(t, script, rule)
		p := o.Up()
		o.event("g", "DiskFull", time.Now(), nil)
		got := o.WaitSaid(onCall, 1)[0]
		if !strings.Contains(got, "approvals") || !strings.Contains(got, "Nobody can be asked from here") {
			t.Errorf("the report reads %q", got)
		}
		p.Stop()
	})
	t.Run("elsewhere", func(t *testing.T) {
		t.Parallel()
		o := newEventWorld(t, script, rule+"[approvals]\nto = \"telegram:1\"\n")
		o.Up()
		o.event("g", "DiskFull", time.Now(), nil)
		asked := o.WaitSaid(1, 1)[0]
		if !strings.Contains(asked, "write_file") || !strings.Contains(asked, "webhook:alerts") {
			t.Fatalf("the owner is asked %q", asked)
		}
		o.event("g", "DiskFuller", time.Now(), nil) // the event waits with the turn, and nobody is told so
		o.Telegram.Say(1, 1, "/approve "+parleytest.Requested(t, asked))
		if got := o.WaitSaid(onCall, 1)[0]; !strings.Contains(got, "Successfully wrote") {
			t.Errorf("the first that people are told is %q", got)
		}
	})
}

// The agent understands a reply to a report, because the chat's own session contains the report.
func TestAReportIsKnownWhereItWasSent(t *testing.T) {
	t.Parallel()
	o := newEventWorld(t, func(r agenttest.Request) agenttest.Response {
		if strings.Contains(r.Said(), "why") {
			return agenttest.Reply(fmt.Sprintf("it knows: %v", strings.Contains(string(r.Body), "the disk is full")))
		}
		return agenttest.Reply("the disk is full")
	}, "")
	p := o.Up()
	o.event("g", "DiskFull", time.Now(), nil)
	o.WaitSaid(onCall, 1)
	parleytest.WaitFor(t, "the session to be told", func() bool {
		return o.Count("sessions.db", "SELECT count(*) FROM seen WHERE id LIKE '%#told'") == 1
	})
	o.Telegram.Say(onCall, 2, "@parleybot why?")
	if got := o.WaitSaid(onCall, 2)[1]; !strings.Contains(got, "it knows: true") {
		t.Errorf("the answer is %q", got)
	}
	p.Stop()
}
