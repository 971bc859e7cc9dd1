package webhook_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/webhook"
)

// notificationBody returns a notification, given in short: "+a" means that alert a fires, "-a" that it has
// ended, and a number is the minute of its start.
func notificationBody(alerts ...string) string {
	var all []string
	status := "resolved"
	for _, a := range alerts {
		name, start, _ := strings.Cut(a[1:], "@")
		var minute int
		if _, err := fmt.Sscan(start, &minute); err != nil {
			panic(err)
		}
		one := "resolved"
		if a[0] == '+' {
			one, status = "firing", "firing"
		}
		at := time.Date(2046, 3, 14, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
		all = append(all, fmt.Sprintf(`{"status":%q,"labels":{"alertname":%q},"startsAt":%q,"fingerprint":%q}`, one, name, at.Format(time.RFC3339), name))
	}
	return fmt.Sprintf(`{"receiver":"r","groupKey":"{}:{}","status":%q,"alerts":[%s]}`, status, strings.Join(all, ","))
}

// TestTwins plays sequences of notifications, beginning at 9:27. Each step says how much later it arrives than
// the step before, and whether it is sent.
func TestTwins(t *testing.T) {
	type step struct {
		after   time.Duration
		note    string
		sent    bool
		restart bool
	}
	const s, m, h = time.Second, time.Minute, time.Hour
	for name, story := range map[string][]step{
		"two replicas":                {{0, notificationBody("+a@26", "+b@27"), true, false}, {15 * s, notificationBody("+b@27", "+a@26"), false, false}},
		"they disagree on the start":  {{0, notificationBody("+a@26"), true, false}, {15 * s, notificationBody("+a@22"), false, false}},
		"starts far apart":            {{0, notificationBody("+a@10"), true, false}, {0, notificationBody("+a@26"), true, false}},
		"the end is no twin":          {{0, notificationBody("+a@26"), true, false}, {m, notificationBody("-a@26"), true, false}, {15 * s, notificationBody("-a@26"), false, false}},
		"another alert joins":         {{0, notificationBody("+a@26"), true, false}, {m, notificationBody("+a@26", "+b@28"), true, false}},
		"one of two ends":             {{0, notificationBody("+a@26", "+b@26"), true, false}, {m, notificationBody("+a@26", "-b@26"), true, false}},
		"the repeat after hours":      {{0, notificationBody("+a@26"), true, false}, {4 * h, notificationBody("+a@26"), true, false}, {15 * s, notificationBody("+a@26"), false, false}, {4 * h, notificationBody("+a@26"), true, false}},
		"the repeat after 10 minutes": {{0, notificationBody("+a@26"), true, false}, {10 * m, notificationBody("+a@26"), true, false}, {10 * m, notificationBody("+a@26"), true, false}},
		"it fires again at once":      {{0, notificationBody("+a@26"), true, false}, {m, notificationBody("-a@26"), true, false}, {m, notificationBody("+a@28"), true, false}, {15 * s, notificationBody("+a@28"), false, false}, {m, notificationBody("-a@28"), true, false}},
		"as if it had not ended":      {{0, notificationBody("+a@26"), true, false}, {m, notificationBody("-a@26"), true, false}, {m, notificationBody("+a@26"), true, false}, {m, notificationBody("-a@26"), true, false}},
		"a restart between twins":     {{0, notificationBody("+a@26"), true, false}, {15 * s, notificationBody("+a@26"), false, true}, {15 * s, notificationBody("+a@26"), false, true}},
		"and where a span ends":       {{149 * s, notificationBody("+a@29"), true, false}, {2 * s, notificationBody("+a@29"), false, true}, {9 * m, notificationBody("+a@29"), false, true}},
		"a restart between repeats":   {{0, notificationBody("+a@26"), true, false}, {11 * m, notificationBody("+a@26"), true, true}, {11 * m, notificationBody("+a@26"), true, true}, {10 * s, notificationBody("+a@26"), false, true}},
		"it fires again past restart": {{0, notificationBody("+a@26"), true, false}, {m, notificationBody("-a@26"), true, true}, {m, notificationBody("+a@28"), true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t, testConfig{kind: webhook.Alertmanager})
			last := ""
			for i, step := range story {
				d.advance(step.after)
				if step.restart {
					d.restart()
				}
				a := d.mustAccept(d.request("", step.note))
				if sent := len(d.takeOutbound()) == 1; sent != step.sent {
					t.Errorf("step %d: sent = %v", i, sent)
				}
				if (a.ID == last) == step.sent {
					t.Errorf("step %d: it is %s, after %s", i, a.ID, last)
				}
				last = a.ID
			}
		})
	}
}

// Notifications that replicas post at the same moment are twins too.
func TestTwinsAtOnce(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.Alertmanager})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { d.mustAccept(d.request("", notificationBody(fmt.Sprintf("+a@%d", 20+i%5)))) })
	}
	wg.Wait()
	d.onlyMessage()
}

// TestSubjects checks that the end of an alert belongs to the message that people saw about its beginning, and
// that a firing alert always gets a message of its own.
func TestSubjects(t *testing.T) {
	const m = time.Minute
	for name, story := range map[string][]struct {
		after   time.Duration
		note    string
		under   int // the step whose subject it has; its own number means a new subject
		restart bool
	}{
		"the end":                      {{0, notificationBody("+a@26"), 0, false}, {m, notificationBody("-a@26"), 0, false}},
		"the end, after a restart":     {{0, notificationBody("+a@26"), 0, false}, {m, notificationBody("-a@26"), 0, true}},
		"the end of what was repeated": {{0, notificationBody("+a@26"), 0, false}, {240 * m, notificationBody("+a@26"), 1, false}, {m, notificationBody("-a@26"), 1, false}},
		"a repeat after a restart":     {{0, notificationBody("+a@26"), 0, false}, {240 * m, notificationBody("+a@26"), 1, true}},
		"it fires again":               {{0, notificationBody("+a@26"), 0, false}, {m, notificationBody("-a@26"), 0, false}, {m, notificationBody("+a@28"), 2, false}, {m, notificationBody("-a@28"), 2, false}},
		"another joins":                {{0, notificationBody("+a@20"), 0, false}, {10 * m, notificationBody("+a@20", "+b@36"), 1, false}, {m, notificationBody("+a@20", "-b@36"), 1, false}, {m, notificationBody("-a@20"), 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t, testConfig{kind: webhook.Alertmanager})
			var subjects []string
			for i, step := range story {
				d.advance(step.after)
				if step.restart {
					d.restart()
				}
				d.mustAccept(d.request("", step.note))
				subjects = append(subjects, d.onlyMessage().Subject)
				if j := slices.Index(subjects, subjects[i]); j != i && step.under == i {
					t.Errorf("step %d has the subject of step %d, want its own", i, j)
				}
				if step.under != i && subjects[i] != subjects[step.under] {
					t.Errorf("step %d has a subject of its own, want that of %d", i, step.under)
				}
			}
		})
	}
}

// A template may print nothing for the end of an alert. The next firing alert is new nevertheless.
func TestEndsThatPrintNothing(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.Alertmanager, template: `{{ if eq .status "firing" }}fire{{ end }}`})
	for i, step := range []struct {
		note string
		sent int
	}{{notificationBody("+a@26"), 1}, {notificationBody("-a@26"), 0}, {notificationBody("-a@26"), 0}, {notificationBody("+a@28"), 1}, {notificationBody("+a@28"), 0}, {notificationBody("-a@28"), 0}, {notificationBody("+a@28"), 1}} {
		d.advance(time.Minute)
		d.mustAccept(d.request("", step.note))
		if n := len(d.takeOutbound()); n != step.sent {
			t.Errorf("step %d: %d were sent, want %d", i, n, step.sent)
		}
	}
}

// If one destination has no room for longer than twinWindow, it gets the alert once it has room. The other
// destination, which had room, does not get it again.
func TestAMailboxThatIsFullForLong(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.Alertmanager, cap: 1, routes: []webhook.Route{
		{Match: map[string]string{"to": "both"}, To: []string{"ci", "oncall"}}, {To: []string{"oncall"}},
	}})
	both := strings.Replace(notificationBody("+a@26"), `"groupKey"`, `"commonLabels":{"to":"both"},"groupKey"`, 1)
	d.mustAccept(d.request("", notificationBody("+b@26")))
	for range 5 {
		if a := d.send(d.request("", both)); a.status != 503 || a.Error.Code != "mailbox_full" {
			t.Fatalf("it answers %+v", a)
		}
		d.advance(7 * time.Minute)
	}
	if got := d.takeOutbound(); len(got) != 2 || got[0].To == got[1].To {
		t.Fatalf("sent: %+v", got)
	}
	d.mustAccept(d.request("", both))
	if got := d.onlyMessage(); got.To.Chat != "ONCALL" {
		t.Errorf("sent again: %+v", got)
	}
	d.advance(time.Minute)
	d.mustAccept(d.request("", both)) // the notification of the other replica
	if n := len(d.takeOutbound()); n != 0 {
		t.Errorf("%d were sent to a twin", n)
	}
}

// One process fails, and another accepts the repeated notification, in the next span. What the search for twins
// leaves in the book does not count as the alert.
func TestAnotherProcessAcceptsTheNotificationFirst(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.Alertmanager})
	targets := d.outbox.Targets
	d.outbox.Targets = func() map[string][]bus.Address { return nil }
	if a := d.send(d.request("", notificationBody("+a@29"))); a.status != 503 {
		t.Fatalf("it answers %+v", a)
	}
	d.outbox.Targets = targets
	first := d.handler
	d.advance(10 * time.Minute)
	d.restart()
	d.mustAccept(d.request("", notificationBody("+a@29")))
	d.onlyMessage()
	d.handler = first
	if a := d.mustAccept(d.request("", notificationBody("+a@29"))); len(a.Destinations) != 1 {
		t.Errorf("the answer: %+v", a)
	}
}

// A notification of one group is never a twin of another group's.
func TestGroupsAreIndependent(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.Alertmanager})
	for range 2 {
		for i := range 20 {
			d.mustAccept(d.request("", strings.Replace(notificationBody("+a@26"), "{}:{}", fmt.Sprint(i), 1)))
			d.mustAccept(d.request("", strings.Replace(notificationBody("+a@26"), `"receiver":"r"`, fmt.Sprintf(`"receiver":"%d"`, i), 1)))
		}
	}
	if n := len(d.takeOutbound()); n != 40 {
		t.Errorf("%d were sent, want 40", n)
	}
}

// BenchmarkPost measures one alert of a group of its own, until it is durable.
func BenchmarkPost(b *testing.B) {
	d := newRig(b, testConfig{kind: webhook.Alertmanager, cap: 10_000_000})
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			body := strings.Replace(notificationBody("+a@26"), "{}:{}", fmt.Sprint(n.Add(1)), 1)
			w := httptest.NewRecorder()
			d.handler.ServeHTTP(w, d.request("", body))
			if w.Code != http.StatusAccepted {
				b.Errorf("%d %s", w.Code, w.Body)
				return
			}
		}
	})
}
