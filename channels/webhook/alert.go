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

// twinWindow is the maximum time between a notification and its twin (one that says the same and comes from another
// Alertmanager), and between the starts of their alerts. Two Alertmanagers that can't reach each other both notify
// within seconds; an intentional repetition comes hours later.
const twinWindow = 10 * time.Minute

// A notification holds the features that distinguish one of Alertmanager's notifications from others.
type notification struct {
	group       string    // hash of receiver and group key
	identity    string    // status, and every alert's fingerprint and status
	starts      string    // every alert's start, exactly
	newestStart time.Time // the latest start
	hasEnded    bool      // whether one of its alerts has ended, so that it refers to an earlier notification
}

// readNotification finds a notification's features in what was posted.
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
		if name == "" { // Alertmanager before 0.20 sends no fingerprint
			name = exactText(one["labels"])
		}
		who = append(who, digest(name, status))
		starts = append(starts, digest(name, plainText(one["startsAt"])))
		a.hasEnded = a.hasEnded || status == "resolved"
		if at, err := time.Parse(time.RFC3339Nano, plainText(one["startsAt"])); err == nil && at.After(a.newestStart) {
			a.newestStart = at
		}
	}
	slices.Sort(who)
	slices.Sort(starts)
	a.identity = digest(append(who, plainText(data["status"]))...)
	a.starts = digest(starts...)
	return a
}

// acceptNotification passes a notification to the outbox once, no matter how many Alertmanagers send it.
//
// Twins have the same receiver, group key, status and alerts, their alerts start within ten minutes of each other,
// and they arrive within ten minutes of each other, with no other notification from the group in between. Without
// the last two conditions, the repetitions that Alertmanager sends while an alert is firing, and an alert that
// fires again soon after its end, would never be shown. (A repeat_interval of less than ten minutes therefore acts
// like one of ten.)
//
// The handler remembers each group's last notifications. If it doesn't, because the process is new or another one
// received the first twin, the book does: a notification's key contains the exact starts of its alerts, and the
// ten-minute span in which it arrived. The span before that is checked too.
func (h *Handler) acceptNotification(ctx context.Context, out Outbox, r outbox.Request, d delivery) (outbox.Status, error) {
	a := readNotification(d.data)
	defer h.recent.lock(a.group)()
	now := h.config.Now()
	last := h.recent.lastOf(a.group)
	if last.startsNear(a) && last.identity == a.identity && now.Sub(last.acceptedAt) < twinWindow {
		r.Key, r.Digest, r.Subject = last.key, last.key, last.subject
		return out.Accept(ctx, r)
	}
	// If a notification could not be accepted earlier, it is tried again as of the time of the first attempt, so
	// that its key, which depends on the time, stays the same.
	began, again := now, false
	if t := last.pendingAttempt; t.identity == a.identity && t.starts == a.starts && now.Sub(t.firstTried) < maxRetryTime {
		began, again = t.firstTried, true
	}
	status, s, err := h.acceptNew(ctx, out, r, a, last, began)
	if err != nil {
		// It may have been accepted for some destinations and not for others. The next attempt uses the same key,
		// so it does not repeat those.
		last.pendingAttempt = attempt{identity: a.identity, starts: a.starts, firstTried: began}
		h.recent.store(a.group, last)
		return status, err
	}
	if again {
		s.acceptedAt = now // the window for its twin begins with the successful attempt
	}
	h.recent.store(a.group, s)
	return status, nil
}

// acceptNew passes a notification of which this process knows no twin to the outbox. last is the group's previous
// notification, and began is when this one was first tried. It returns what to remember as the group's last
// notification.
func (h *Handler) acceptNew(ctx context.Context, out Outbox, r outbox.Request, a notification, last lastNotification, began time.Time) (outbox.Status, lastNotification, error) {
	span := began.UnixNano() / int64(twinWindow)
	at, key := began, a.key(span)
	switch {
	case last.repeats(a):
		// It says the same as a notification from before the last one.
		key = digest(key, last.key)
	case a.beganIn(span):
		// The alert is so new that no notification about it can have arrived in the previous span.
	default:
		// The outbox has no method for looking up a key. So this records a post without destinations, which is sent
		// nowhere, under the key. If a twin has already used the key, Record returns the twin's post, which is
		// recognized by its time.
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
		// The key belongs to a post without destinations that another process recorded when it looked for a twin in
		// the span after this one. So another key is used.
		key = digest(key, "sent")
		r.Key, r.Digest = key, key
		status, err = out.Accept(ctx, r)
	}
	return status, lastNotification{identity: a.identity, newestStart: a.newestStart, acceptedAt: at, key: key, subject: r.Subject, earlier: last.hashesWith(a)}, err
}

// rememberUnsent records a notification for which the template printed nothing, so that the next one does not count
// as a repetition of the one before.
func (h *Handler) rememberUnsent(d delivery) {
	a := readNotification(d.data)
	defer h.recent.lock(a.group)()
	now, last := h.config.Now(), h.recent.lastOf(a.group)
	key := digest("nothing", a.key(now.UnixNano()))
	h.recent.store(a.group, lastNotification{
		identity: a.identity, newestStart: a.newestStart, acceptedAt: now, key: key, subject: a.subject(last, key, now), earlier: last.hashesWith(a),
	})
}

// key returns the key under which the book records a notification that arrives in a span. A span is a period as
// long as twinWindow, numbered from 1970.
func (a notification) key(span int64) string {
	return digest(a.group, a.identity, a.starts, strconv.FormatInt(span, 10))
}

// maxSkew is how far the clock of the program that sets an alert's start may be ahead of ours.
const maxSkew = time.Minute

// beganIn reports whether the newest of the notification's alerts began in that span.
func (a notification) beganIn(span int64) bool {
	return a.newestStart.After(time.Unix(0, span*int64(twinWindow)).Add(maxSkew))
}

// subject returns the text that links the end of an alert to its beginning: with the same subject, the message
// about the end edits the first one or goes into its thread. An alert that fires always gets its own message,
// because edits notify nobody.
func (a notification) subject(last lastNotification, key string, now time.Time) string {
	first := digest(a.group, a.newestStart.UTC().Format(time.RFC3339))
	switch same := last.startsNear(a); {
	case a.hasEnded && same:
		return last.subject
	case a.hasEnded:
		return first
	case same, now.Sub(a.newestStart) > twinWindow: // a repetition
		return digest(first, key)
	}
	return first
}

// A lastNotification is what is remembered about a group of alerts: its last notification that was accepted, and
// hashes of the earlier ones.
type lastNotification struct {
	identity       string
	newestStart    time.Time
	acceptedAt     time.Time // when it was accepted
	key            string    // "" if none is known
	subject        string
	pendingAttempt attempt  // a later notification that could not be accepted yet
	earlier        []string // a hash of each accepted notification's identity and starts, the newest last
}

// maxEarlier is the number of notifications from one group that are remembered.
const maxEarlier = 16

// repeats reports whether an earlier notification from the group said the same as a.
func (s lastNotification) repeats(a notification) bool {
	return slices.Contains(s.earlier, digest(a.identity, a.starts))
}

// hashesWith returns the hashes of the group's earlier notifications, with that of a appended.
func (s lastNotification) hashesWith(a notification) []string {
	all := append(slices.Clone(s.earlier), digest(a.identity, a.starts))
	return all[max(0, len(all)-maxEarlier):]
}

// An attempt is a notification that was not accepted, or not for all destinations.
type attempt struct {
	identity   string
	starts     string
	firstTried time.Time // the time of the first attempt
}

// maxRetryTime is how long after a failed attempt the same notification counts as the next attempt. Alertmanager
// gives up sooner; one that comes later is a new notification.
const maxRetryTime = time.Hour

// isKnown reports whether any notification from the group is known.
func (s lastNotification) isKnown() bool { return s.key != "" }

// startsNear reports whether the newest alerts of both start within twinWindow of each other.
func (s lastNotification) startsNear(a notification) bool {
	return s.isKnown() && s.newestStart.Sub(a.newestStart).Abs() <= twinWindow
}

// maxGroups is half of the maximum number of groups that recentNotifications remembers.
const maxGroups = 5000

// A recentNotifications remembers each group's last notification. If there are too many groups, it forgets those
// that have gone longest without a notification.
type recentNotifications struct {
	mu                sync.Mutex
	current, previous map[string]lastNotification
	groups            [256]sync.Mutex // notifications of one group wait for each other
}

func newRecentNotifications() *recentNotifications {
	return &recentNotifications{current: map[string]lastNotification{}}
}

// lock makes other notifications of the same group wait until unlock is called.
func (t *recentNotifications) lock(group string) (unlock func()) {
	n, err := strconv.ParseUint(group[:2], 16, 8)
	if err != nil {
		panic(err) // a group's name is a digest in hexadecimal digits
	}
	t.groups[n].Lock()
	return t.groups[n].Unlock
}

func (t *recentNotifications) lastOf(group string) lastNotification {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.current[group]; ok {
		return s
	}
	return t.previous[group]
}

func (t *recentNotifications) store(group string, s lastNotification) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.current) >= maxGroups {
		t.current, t.previous = map[string]lastNotification{}, t.current
	}
	t.current[group] = s
}
