package dispatch

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// loadLeft are the drafts of earlier processes, however long the book takes: a
// message that is to replace one must not pass it by.
func (d *drafts) loadLeft(ctx context.Context) []*draft {
	for wait := firstBackoff; ; wait = min(2*wait, longestHold) {
		known, err := d.Drafts.Drafts(ctx, d.Name)
		if err == nil {
			return d.adopt(ctx, known)
		}
		if ctx.Err() != nil {
			return nil
		}
		d.Log.Error("drafts cannot be read from the book", slog.String("channel", d.Name), slog.Any("error", err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *drafts) adopt(ctx context.Context, known []channels.Send) []*draft {
	var left []*draft
	for _, send := range known {
		x := newDraft(strings.TrimSuffix(send.ID, draftSuffix), send.To)
		x.platformID = send.Parts[0].PlatformID
		if time.Since(send.At) > draftKept {
			d.mark(ctx, x, channels.SentPart{State: channels.Sent, PlatformID: x.platformID})
			continue
		}
		x.lastHeard, x.nextCall = time.Now(), time.Now()
		if x.platformID == "" {
			x.state = draftUnknown
		}
		left = append(left, x)
	}
	return left
}

// schedule calls the platform whenever a draft is due.
func (d *drafts) schedule(ctx, work context.Context, wg *sync.WaitGroup) {
	d.alarm.run(ctx, func() (sleep time.Duration) {
		calls, sleep := d.due(time.Now())
		for _, one := range calls {
			wg.Go(func() { d.makeCall(ctx, work, one) })
		}
		return sleep
	})
}

// due collects the calls that are to be made now, and says for how long there is
// nothing more to do, 0 being until the alarm rings.
func (d *drafts) due(now time.Time) (ready []draftCall, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetIdle(now)
	var all []*draft
	for _, x := range d.turns {
		if _, due := d.dueAt(x); due {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b *draft) int { return cmp.Or(a.nextCall.Compare(b.nextCall), cmp.Compare(a.turn, b.turn)) })
	d.wakesAt = time.Time{}
	for _, x := range all {
		at, due := d.dueAt(x)
		switch {
		case !due: // an earlier one has the address now
			continue
		case at.After(now):
		case len(d.calls) >= draftsAtOnce:
			d.keptBack[x.key] = true
			at = now.Add(draftPause)
		case d.startsCall(x, now):
			ready = append(ready, draftCall{draft: x, id: x.platformID, text: x.markdown(), length: x.length(), growth: x.growth(), unknown: x.state == draftUnknown, last: x.phase == turnSilent})
			continue
		default:
			if at, due = d.dueAt(x); !due {
				continue
			}
		}
		if d.wakesAt.IsZero() || at.Before(d.wakesAt) {
			d.wakesAt = at
		}
	}
	if d.wakesAt.IsZero() {
		return ready, 0
	}
	return ready, max(d.wakesAt.Sub(now), draftPause)
}

// startsCall begins a call for a draft, unless there is nothing to show or no room
// for it in the pace.
func (d *drafts) startsCall(x *draft, now time.Time) bool {
	if x.state != draftUnknown {
		if x.markdown() == "" {
			x.dirty = false
			if x.previews > 0 {
				x.shown = "" // it fades
			}
			return false
		}
		every := cmp.Or(x.previews, d.limits.DraftEvery)
		// With all hands on mail there may be some for this address too.
		if len(d.working) >= d.policy.AtOnce || !d.pace.Spare(d.moved.current(x.to.Chat), now) {
			x.nextCall = now.Add(every)
			x.again = x.nextCall
			return false
		}
		x.nextCall = now.Add(every)
		d.quietUntil[x.to.Chat] = x.nextCall
	}
	x.dirty = false
	d.calls[x.key] = make(chan struct{})
	return true
}

// forgetIdle forgets turns of which nothing was heard for long, and pauses that are over.
func (d *drafts) forgetIdle(now time.Time) {
	for turn, x := range d.turns {
		idle := now.Sub(x.lastHeard)
		if d.calls[x.key] == nil && (idle > draftKept || idle > draftIdle && x.platformID == "" && x.state != draftUnknown) {
			delete(d.turns, turn)
		}
	}
	for chat, until := range d.quietUntil {
		if !until.After(now) {
			delete(d.quietUntil, chat)
		}
	}
}

// takeFor is the platform's id of the draft that a message replaces: that of its turn
// where it goes. "" is none. Its address's mail is being worked on.
func (d *drafts) takeFor(work context.Context, out bus.Outbound) string {
	x := d.draftFor(out)
	if x == nil {
		return ""
	}
	d.mu.Lock()
	unknown := x.state == draftUnknown
	if out.IsReply() && !unknown {
		x.state = draftClosed
	}
	d.mu.Unlock()
	if unknown {
		d.resolveUnknown(work, x)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return x.platformID
}

// draftFor is the draft of a message's turn, if it is where the message goes.
func (d *drafts) draftFor(out bus.Outbound) *draft {
	if d == nil || out.Turn == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.turns[out.Turn]; x != nil && x.to == out.To {
		return x
	}
	return nil
}

// passed says that a message of its turn is through. What is said about a subject leaves
// a draft that it has not taken to what the turn says next.
func (d *drafts) passed(work context.Context, out bus.Outbound) {
	if x := d.draftFor(out); x != nil && out.Subject == "" {
		d.mu.Lock()
		id := x.platformID
		d.mu.Unlock()
		d.endFor(work, out, id)
	}
}

// endFor says that a message of its turn has taken that draft's place, or is about to, or
// is through without one: "".
func (d *drafts) endFor(work context.Context, out bus.Outbound, id string) {
	x := d.draftFor(out)
	if x == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if id != x.platformID { // it has replaced something else
		return
	}
	if id != "" {
		d.mu.Unlock()
		d.closeDraft(work, x, id)
		d.mu.Lock()
	}
	d.forgetIfDone(x)
}

// start begins with the drafts that earlier processes have left.
func (d *drafts) start(ctx, work context.Context, wg *sync.WaitGroup) {
	left := d.loadLeft(ctx)
	d.mu.Lock()
	d.turns, d.quietUntil, d.calls = map[string]*draft{}, map[string]time.Time{}, map[string]chan struct{}{}
	d.working, d.leftOver, d.keptBack = map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, x := range left {
		d.turns[x.turn] = x
	}
	d.mu.Unlock()
	wg.Go(func() { d.schedule(ctx, work, wg) })
}
