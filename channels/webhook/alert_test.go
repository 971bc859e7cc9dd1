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

// A note is a notification in short: "+a" fires, "-a" has ended, and the number
// is the minute of its start.
func note(alerts ...string) string {
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

// TestTwins tells a story: what comes, how much later than what came before, and
// whether it is sent. It begins at 9:27.
func TestTwins(t *testing.T) {
	type step struct {
		after   time.Duration
		note    string
		sent    bool
		restart bool
	}
	const s, m, h = time.Second, time.Minute, time.Hour
	for name, story := range map[string][]step{
		"two replicas":                {{0, note("+a@26", "+b@27"), true, false}, {15 * s, note("+b@27", "+a@26"), false, false}},
		"they disagree on the start":  {{0, note("+a@26"), true, false}, {15 * s, note("+a@22"), false, false}},
		"starts far apart":            {{0, note("+a@10"), true, false}, {0, note("+a@26"), true, false}},
		"the end is no twin":          {{0, note("+a@26"), true, false}, {m, note("-a@26"), true, false}, {15 * s, note("-a@26"), false, false}},
		"another alert joins":         {{0, note("+a@26"), true, false}, {m, note("+a@26", "+b@28"), true, false}},
		"one of two ends":             {{0, note("+a@26", "+b@26"), true, false}, {m, note("+a@26", "-b@26"), true, false}},
		"the repeat after hours":      {{0, note("+a@26"), true, false}, {4 * h, note("+a@26"), true, false}, {15 * s, note("+a@26"), false, false}, {4 * h, note("+a@26"), true, false}},
		"the repeat after 10 minutes": {{0, note("+a@26"), true, false}, {10 * m, note("+a@26"), true, false}, {10 * m, note("+a@26"), true, false}},
		"it fires again at once":      {{0, note("+a@26"), true, false}, {m, note("-a@26"), true, false}, {m, note("+a@28"), true, false}, {15 * s, note("+a@28"), false, false}, {m, note("-a@28"), true, false}},
		"as if it had not ended":      {{0, note("+a@26"), true, false}, {m, note("-a@26"), true, false}, {m, note("+a@26"), true, false}, {m, note("-a@26"), true, false}},
		"a restart between twins":     {{0, note("+a@26"), true, false}, {15 * s, note("+a@26"), false, true}, {15 * s, note("+a@26"), false, true}},
		"and where a span ends":       {{149 * s, note("+a@29"), true, false}, {2 * s, note("+a@29"), false, true}, {9 * m, note("+a@29"), false, true}},
		"a restart between repeats":   {{0, note("+a@26"), true, false}, {11 * m, note("+a@26"), true, true}, {11 * m, note("+a@26"), true, true}, {10 * s, note("+a@26"), false, true}},
		"it fires again past restart": {{0, note("+a@26"), true, false}, {m, note("-a@26"), true, true}, {m, note("+a@28"), true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t, setting{kind: webhook.Alertmanager})
			last := ""
			for i, step := range story {
				d.pass(step.after)
				if step.restart {
					d.restart()
				}
				a := d.mustAccept(d.request("", step.note))
				if sent := len(d.mail()) == 1; sent != step.sent {
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

// Replicas that post in the same moment are twins, too.
func TestTwinsAtOnce(t *testing.T) {
	d := newRig(t, setting{kind: webhook.Alertmanager})
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { d.mustAccept(d.request("", note(fmt.Sprintf("+a@%d", 20+i%5)))) })
	}
	wg.Wait()
	d.only()
}

// TestSubjects: the end of an alert belongs to the message that somebody saw,
// and what fires is a message that somebody sees.
func TestSubjects(t *testing.T) {
	const m = time.Minute
	for name, story := range map[string][]struct {
		after   time.Duration
		note    string
		under   int // the step whose subject it has; its own place is a new one
		restart bool
	}{
		"the end":                      {{0, note("+a@26"), 0, false}, {m, note("-a@26"), 0, false}},
		"the end, after a restart":     {{0, note("+a@26"), 0, false}, {m, note("-a@26"), 0, true}},
		"the end of what was repeated": {{0, note("+a@26"), 0, false}, {240 * m, note("+a@26"), 1, false}, {m, note("-a@26"), 1, false}},
		"a repeat after a restart":     {{0, note("+a@26"), 0, false}, {240 * m, note("+a@26"), 1, true}},
		"it fires again":               {{0, note("+a@26"), 0, false}, {m, note("-a@26"), 0, false}, {m, note("+a@28"), 2, false}, {m, note("-a@28"), 2, false}},
		"another joins":                {{0, note("+a@20"), 0, false}, {10 * m, note("+a@20", "+b@36"), 1, false}, {m, note("+a@20", "-b@36"), 1, false}, {m, note("-a@20"), 0, false}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t, setting{kind: webhook.Alertmanager})
			var subjects []string
			for i, step := range story {
				d.pass(step.after)
				if step.restart {
					d.restart()
				}
				d.mustAccept(d.request("", step.note))
				subjects = append(subjects, d.only().Subject)
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

// A template may leave out the end of an alert. What fires after it is news.
func TestEndsThatAreNotSaid(t *testing.T) {
	d := newRig(t, setting{kind: webhook.Alertmanager, template: `{{ if eq .status "firing" }}fire{{ end }}`})
	for i, step := range []struct {
		note string
		sent int
	}{{note("+a@26"), 1}, {note("-a@26"), 0}, {note("-a@26"), 0}, {note("+a@28"), 1}, {note("+a@28"), 0}, {note("-a@28"), 0}, {note("+a@28"), 1}} {
		d.pass(time.Minute)
		d.mustAccept(d.request("", step.note))
		if n := len(d.mail()); n != step.sent {
			t.Errorf("step %d: %d were sent, want %d", i, n, step.sent)
		}
	}
}

// One place has no room for longer than the window: it gets the alert once there
// is, and the other place, which had room, does not get it again.
func TestFullForLong(t *testing.T) {
	d := newRig(t, setting{kind: webhook.Alertmanager, cap: 1, routes: []webhook.Route{
		{Match: map[string]string{"to": "both"}, To: []string{"ci", "oncall"}}, {To: []string{"oncall"}},
	}})
	both := strings.Replace(note("+a@26"), `"groupKey"`, `"commonLabels":{"to":"both"},"groupKey"`, 1)
	d.mustAccept(d.request("", note("+b@26")))
	for range 5 {
		if a := d.do(d.request("", both)); a.status != 503 || a.Error.Code != "mailbox_full" {
			t.Fatalf("it answers %+v", a)
		}
		d.pass(7 * time.Minute)
	}
	if got := d.mail(); len(got) != 2 || got[0].To == got[1].To {
		t.Fatalf("sent: %+v", got)
	}
	d.mustAccept(d.request("", both))
	if got := d.only(); got.To.Chat != "ONCALL" {
		t.Errorf("sent again: %+v", got)
	}
	d.pass(time.Minute)
	d.mustAccept(d.request("", both)) // the other replica's
	if n := len(d.mail()); n != 0 {
		t.Errorf("%d were sent to a twin", n)
	}
}

// One process fails, and another takes what comes again, in the next span. What
// it leaves behind in the book is not taken for the alert.
func TestAnotherProcessWasFaster(t *testing.T) {
	d := newRig(t, setting{kind: webhook.Alertmanager})
	targets := d.outbox.Targets
	d.outbox.Targets = func() map[string][]bus.Address { return nil }
	if a := d.do(d.request("", note("+a@29"))); a.status != 503 {
		t.Fatalf("it answers %+v", a)
	}
	d.outbox.Targets = targets
	first := d.handler
	d.pass(10 * time.Minute)
	d.restart()
	d.mustAccept(d.request("", note("+a@29")))
	d.only()
	d.handler = first
	if a := d.mustAccept(d.request("", note("+a@29"))); len(a.Destinations) != 1 {
		t.Errorf("the answer: %+v", a)
	}
}

// What one group says hides nothing of another's.
func TestGroupsAreApart(t *testing.T) {
	d := newRig(t, setting{kind: webhook.Alertmanager})
	for range 2 {
		for i := range 20 {
			d.mustAccept(d.request("", strings.Replace(note("+a@26"), "{}:{}", fmt.Sprint(i), 1)))
			d.mustAccept(d.request("", strings.Replace(note("+a@26"), `"receiver":"r"`, fmt.Sprintf(`"receiver":"%d"`, i), 1)))
		}
	}
	if n := len(d.mail()); n != 40 {
		t.Errorf("%d were sent, want 40", n)
	}
}

// BenchmarkPost is one alert of a group of its own, accepted durably.
func BenchmarkPost(b *testing.B) {
	d := newRig(b, setting{kind: webhook.Alertmanager, cap: 10_000_000})
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			body := strings.Replace(note("+a@26"), "{}:{}", fmt.Sprint(n.Add(1)), 1)
			w := httptest.NewRecorder()
			d.handler.ServeHTTP(w, d.request("", body))
			if w.Code != http.StatusAccepted {
				b.Errorf("%d %s", w.Code, w.Body)
				return
			}
		}
	})
}
