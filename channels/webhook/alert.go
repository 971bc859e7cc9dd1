package webhook

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/channels/outbox"
)

// twinWindow is how soon after a notification a second one that says the same counts as its twin
// (the same, sent by another Alertmanager), and how far apart the starts of their alerts may be.
// Two Alertmanagers that cannot reach each other both notify within seconds; a repetition on
// purpose comes after hours.
const twinWindow = 10 * time.Minute

// A notification has the features by which one of Alertmanager's notifications is told from
// others.
type notification struct {
	group    string    // hash of receiver and group key
	identity string    // status, and every alert's fingerprint and status
	starts   string    // every alert's start, exactly
	newest   time.Time // the latest start
	hasEnded bool      // an alert in it has ended, so it is about an earlier notification
}

// readNotification finds the features of a notification in what was posted.
func readNotification(data map[string]any) notification {
	group := plainText(data["groupKey"])
	if group == "" {
		group = exactText(data["groupLabels"])
	}
	a := notification{
		group:    digest(plainText(data["receiver"]), group),
		hasEnded: plainText(data["status"]) == "resolved",
	}
	var who, starts []string
	for _, item := range list(data["alerts"]) {
		one, _ := item.(map[string]any)
		name, status := plainText(one["fingerprint"]), plainText(one["status"])
		if name == "" { // Alertmanager before 0.20 sends none
			name = exactText(one["labels"])
		}
		who = append(who, digest(name, status))
		starts = append(starts, digest(name, plainText(one["startsAt"])))
		a.hasEnded = a.hasEnded || status == "resolved"
		if at, err := time.Parse(time.RFC3339Nano, plainText(one["startsAt"])); err == nil && at.After(a.newest) {
			a.newest = at
		}
	}
	slices.Sort(who)
	slices.Sort(starts)
	a.identity = digest(append(who, plainText(data["status"]))...)
	a.starts = digest(starts...)
	return a
}

// acceptNotification passes a notification to the outbox once, however many Alertmanagers
// send it.
//
// Twins have the receiver, group key, status and alerts in common, their alerts
// start within ten minutes of each other, and they come within ten minutes of
// each other, with no other notification of the group in between. Without the
// last two, the repeats that Alertmanager sends while an alert fires, and an
// alert that fires again soon after its end, would never be seen. (A
// repeat_interval under ten minutes therefore acts like one of ten.)
//
// The handler remembers each group's last notifications. When it does not,
// because the process is new, or another one took the first twin, the book does:
// the key of a notification holds its alerts' exact starts and the span of ten
// minutes in which it came. The span before is looked at, too.
func (h *Handler) acceptNotification(ctx context.Context, out Outbox, r outbox.Request, d delivery) (outbox.Status, error) {
	a := readNotification(d.data)
	defer h.recent.lock(a.group)()
	now := h.config.Now()
	last := h.recent.last(a.group)
	if last.startsNear(a) && last.identity == a.identity && now.Sub(last.at) < twinWindow {
		r.Key, r.Digest, r.Subject = last.key, last.key, last.subject
		return out.Accept(ctx, r)
	}
	// A notification that could not be accepted before is tried again as of the time of the
	// first attempt: its key, which depends on the time, stays the same.
	began, again := now, false
	if t := last.tried; t.identity == a.identity && t.starts == a.starts && now.Sub(t.at) < maxRetryTime {
		began, again = t.at, true
	}
	status, s, err := h.acceptNew(ctx, out, r, a, last, began)
	if err != nil {
		// It may be accepted at some destinations and not at others. The next attempt
		// uses the same key, so it does not repeat those.
		last.tried = attempt{identity: a.identity, starts: a.starts, at: began}
		h.recent.keep(a.group, last)
		return status, err
	}
	if again {
		s.at = now // the window for its twin begins with the attempt that succeeded
	}
	h.recent.keep(a.group, s)
	return status, nil
}

// acceptNew passes a notification, of which this process knows no twin, to the outbox. last is
// the notification of the group before, and began is when this one was first tried. It returns
// what to remember as the group's last one.
func (h *Handler) acceptNew(ctx context.Context, out Outbox, r outbox.Request, a notification, last lastNotification, began time.Time) (outbox.Status, lastNotification, error) {
	span := began.UnixNano() / int64(twinWindow)
	at, key := began, a.key(span)
	switch {
	case last.hasSaid(a):
		// It says the same as a notification before the last one.
		key = digest(key, last.key)
	case a.beganIn(span):
		// The alert is so new that no notification of it can have come in the span before.
	default:
		// The outbox has no method that looks a key up. So this records a post without
		// destinations under the key, which is sent nowhere. If a twin used the key before,
		// Record returns the twin's post, which is recognised by its time.
		r.Key = a.key(span - 1)
		r.Digest = r.Key
		before, err := out.Record(ctx, r, nil)
		if err != nil {
			return outbox.Status{}, lastNotification{}, fmt.Errorf("look for a twin: %w", err)
		}
		if before.At.UnixNano()/int64(twinWindow) == span-1 && began.Sub(before.At) < twinWindow {
			at, key = before.At, r.Key
		}
	}
	r.Key, r.Digest, r.Subject = key, key, a.subject(last, key, began)
	status, err := out.Accept(ctx, r)
	if err == nil && len(status.Destinations) == 0 {
		// The key has the post without destinations that another process recorded when it
		// looked for a twin in the span after this one. So another key is used.
		key = digest(key, "sent")
		r.Key, r.Digest = key, key
		status, err = out.Accept(ctx, r)
	}
	return status, lastNotification{identity: a.identity, newest: a.newest, at: at, key: key, subject: r.Subject, earlier: last.history(a)}, err
}

// rememberUnsent records a notification for which the template printed nothing, so that
// the next one is not taken for a repeat of the one before.
func (h *Handler) rememberUnsent(d delivery) {
	a := readNotification(d.data)
	defer h.recent.lock(a.group)()
	now, last := h.config.Now(), h.recent.last(a.group)
	key := digest("nothing", a.key(now.UnixNano()))
	h.recent.keep(a.group, lastNotification{
		identity: a.identity, newest: a.newest, at: now, key: key, subject: a.subject(last, key, now), earlier: last.history(a),
	})
}

// key returns the key under which the book has a notification that comes in a span. A span is a
// window of time as long as twinWindow, numbered from 1970.
func (a notification) key(span int64) string {
	return digest(a.group, a.identity, a.starts, strconv.FormatInt(span, 10))
}

// maxSkew is how far the clock of the program that sets an alert's start may be ahead of
// ours.
const maxSkew = time.Minute

// beganIn reports whether the newest of the notification's alerts began in that span.
func (a notification) beganIn(span int64) bool {
	return a.newest.After(time.Unix(0, span*int64(twinWindow)).Add(maxSkew))
}

// subject returns the text that links the end of an alert to its beginning: with the same
// subject, the message about the end edits the first one or goes into its thread. An
// alert that fires always gets a message of its own, because nobody is notified of an
// edit.
func (a notification) subject(last lastNotification, key string, now time.Time) string {
	first := digest(a.group, a.newest.UTC().Format(time.RFC3339))
	switch same := last.startsNear(a); {
	case a.hasEnded && same:
		return last.subject
	case a.hasEnded:
		return first
	case same, now.Sub(a.newest) > twinWindow: // a repeat
		return digest(first, key)
	}
	return first
}

// A lastNotification is what is remembered of a group of alerts: the last notification of it that was
// accepted, and hashes of the earlier ones.
type lastNotification struct {
	identity string
	newest   time.Time
	at       time.Time // when it was accepted
	key      string    // "" if none is known
	subject  string
	tried    attempt  // a later notification that could not be accepted yet
	earlier  []string // hashes of the identity and starts of it and of those before it, the newest last
}

// maxEarlier is how many notifications of one group are remembered.
const maxEarlier = 16

// hasSaid reports whether an earlier notification of the group said the same as a.
func (s lastNotification) hasSaid(a notification) bool {
	return slices.Contains(s.earlier, digest(a.identity, a.starts))
}

// history returns the hashes of the group's earlier notifications, with that of a added.
func (s lastNotification) history(a notification) []string {
	all := append(slices.Clone(s.earlier), digest(a.identity, a.starts))
	return all[max(0, len(all)-maxEarlier):]
}

// An attempt is a notification that was not accepted, or not everywhere.
type attempt struct {
	identity string
	starts   string
	at       time.Time // time of the first attempt
}

// maxRetryTime is how long after a failed attempt the same notification counts as its
// next attempt. Alertmanager gives up sooner; what comes later is a new notification.
const maxRetryTime = time.Hour

// isKnown reports whether any notification of the group is known.
func (s lastNotification) isKnown() bool { return s.key != "" }

// startsNear reports whether the newest alerts of both start within a window of each
// other.
func (s lastNotification) startsNear(a notification) bool {
	return s.isKnown() && s.newest.Sub(a.newest).Abs() <= twinWindow
}

// maxGroups is half of the largest number of groups that recentNotifications remembers.
const maxGroups = 5000

// A recentNotifications remembers the last notification of each group. When there are too many
// groups, it forgets those that were longest without a notification.
type recentNotifications struct {
	mu       sync.Mutex
	now, old map[string]lastNotification
	groups   [256]sync.Mutex // notifications of one group wait for each other
}

func newRecentNotifications() *recentNotifications {
	return &recentNotifications{now: map[string]lastNotification{}}
}

// lock makes other notifications of the same group wait until unlock is called.
func (t *recentNotifications) lock(group string) (unlock func()) {
	n, err := strconv.ParseUint(group[:2], 16, 8)
	if err != nil {
		panic(err) // it is a digest
	}
	t.groups[n].Lock()
	return t.groups[n].Unlock
}

func (t *recentNotifications) last(group string) lastNotification {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.now[group]; ok {
		return s
	}
	return t.old[group]
}

func (t *recentNotifications) keep(group string, s lastNotification) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.now) >= maxGroups {
		t.now, t.old = map[string]lastNotification{}, t.now
	}
	t.now[group] = s
}
