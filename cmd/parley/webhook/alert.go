package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/cmd/parley/post"
)

// window is how long after a notification another one that says the same is its
// twin, and how far apart the starts of their alerts may be. Replicas of
// Alertmanager that cannot hear each other notify within seconds; what repeats a
// notification on purpose comes after hours.
const window = 10 * time.Minute

// An alert is what identifies a notification of Alertmanager's.
type alert struct {
	group    string    // receiver and group key
	identity string    // status, and every alert's fingerprint and status
	starts   string    // every alert's start, exactly
	newest   time.Time // the latest start
	quiet    bool      // something in it has ended: it is news of an earlier notification
}

func readAlert(data map[string]any) alert {
	group := plain(data["groupKey"])
	if group == "" {
		group = plain(data["groupLabels"])
	}
	a := alert{
		group: digest(plain(data["receiver"]), group),
		quiet: plain(data["status"]) == "resolved",
	}
	var who, starts []string
	for _, item := range list(data["alerts"]) {
		one, _ := item.(map[string]any)
		name, status := plain(one["fingerprint"]), plain(one["status"])
		if name == "" { // of before Alertmanager 0.20
			name = plain(one["labels"])
		}
		who = append(who, digest(name, status))
		starts = append(starts, digest(name, plain(one["startsAt"])))
		a.quiet = a.quiet || status == "resolved"
		if at, err := time.Parse(time.RFC3339Nano, plain(one["startsAt"])); err == nil && at.After(a.newest) {
			a.newest = at
		}
	}
	slices.Sort(who)
	slices.Sort(starts)
	a.identity = digest(append(who, plain(data["status"]))...)
	a.starts = digest(starts...)
	return a
}

// acceptAlert hands over a notification once, however many Alertmanagers send it.
//
// Twins have the receiver, group key, status and alerts in common, their alerts
// start within ten minutes of each other, and they come within ten minutes of
// each other, with no other notification of the group in between. Without the
// last two, the repeats that Alertmanager sends while an alert fires, and an
// alert that fires again soon after its end, would never be seen. (A
// repeat_interval under ten minutes therefore acts like one of ten.)
//
// The handler remembers each group's last notification. When it does not,
// because the process is new, or another one took the first twin, the book does:
// the key of a notification holds its alerts' exact starts and a span of ten
// minutes. Each is tried under the key of the span before, and then, where that
// was used for something older, under its own: two that come close together have
// a key in common even where a span ends between them.
func (h *Handler) acceptAlert(ctx context.Context, r post.Request, d delivery) (post.Status, error) {
	a := readAlert(d.data)
	defer h.twins.lock(a.group)()
	now := h.config.Now()
	last, known := h.twins.last(a.group)
	if known && last.identity == a.identity && last.near(a) && now.Sub(last.at) < window {
		r.Key, r.Digest, r.Subject = last.key, last.key, last.subject
		return h.config.Office.Accept(ctx, r)
	}
	keys := a.keys(now)
	if known {
		// For what says the same as a notification before the last one.
		keys = append(keys, digest(keys[len(keys)-1], last.key))
	}
	for i, key := range keys {
		r.Key, r.Digest, r.Subject = key, key, a.subject(last, known, key, now)
		status, err := h.config.Office.Accept(ctx, r)
		if err != nil {
			return status, err
		}
		stands, err := h.config.Office.Find(ctx, status.ID)
		if err != nil {
			return status, fmt.Errorf("look at the notification that stands: %w", err)
		}
		current := now.Sub(stands.At) < window && !(known && stands.At.Before(last.at))
		if current || i == len(keys)-1 {
			h.twins.keep(a.group, sent{identity: a.identity, newest: a.newest, at: stands.At, key: key, subject: r.Subject})
			return status, nil
		}
	}
	panic("a notification has no key")
}

// keys are those of the span before and of this one.
func (a alert) keys(now time.Time) []string {
	span := now.UnixNano() / int64(window)
	var keys []string
	for _, n := range []int64{span - 1, span} {
		keys = append(keys, digest(a.group, a.identity, a.starts, strconv.FormatInt(n, 10)))
	}
	return keys
}

// subject ties the end of an alert to its beginning: there it edits the message
// or goes into its thread. What fires is always a message of its own, which
// somebody notices: an edit rings nowhere.
func (a alert) subject(last sent, known bool, key string, now time.Time) string {
	first := digest(a.group, a.newest.UTC().Format(time.RFC3339))
	same := known && last.near(a)
	switch {
	case a.quiet && same:
		return last.subject
	case a.quiet:
		return first
	case same, now.Sub(a.newest) > window: // a repeat
		return digest(first, key)
	}
	return first
}

// A sent notification is the last of its group.
type sent struct {
	identity string
	newest   time.Time
	at       time.Time // when it was accepted
	key      string
	subject  string
}

// near says that the alerts of both start within the window.
func (s sent) near(a alert) bool { return s.newest.Sub(a.newest).Abs() <= window }

// mostGroups bounds what twins remembers, twice.
const mostGroups = 5000

// twins remembers the last notification of each group, as long as there are not
// too many: the oldest go when twice as many have come.
type twins struct {
	mu       sync.Mutex
	now, old map[string]sent
	groups   [256]sync.Mutex // notifications of one group wait for each other
}

func newTwins() *twins { return &twins{now: map[string]sent{}} }

// lock makes the notifications of a group wait for this one.
func (t *twins) lock(group string) (unlock func()) {
	n, err := strconv.ParseUint(group[:2], 16, 8)
	if err != nil {
		panic(err) // it is a digest
	}
	t.groups[n].Lock()
	return t.groups[n].Unlock
}

func (t *twins) last(group string) (sent, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.now[group]; ok {
		return s, true
	}
	s, ok := t.old[group]
	return s, ok
}

func (t *twins) keep(group string, s sent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now) >= mostGroups {
		t.now, t.old = map[string]sent{}, t.now
	}
	t.now[group] = s
}
