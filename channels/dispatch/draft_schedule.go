package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// loadLeft returns from the book the drafts that earlier processes have left. It repeats until the
// book answers: a message that should replace one of them must not be sent before.
func (d *drafts) loadLeft(ctx context.Context) []*draft {
	for wait := firstBackoff; ; wait = min(2*wait, longestHold) {
		known, err := d.Drafts.Drafts(ctx, d.Name)
		if err == nil {
			return d.adoptDrafts(ctx, known)
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

// adoptDrafts turns recorded drafts into drafts of this process, and closes those that are too
// old.
func (d *drafts) adoptDrafts(ctx context.Context, known []channels.Send) []*draft {
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

// schedule calls the platform for drafts, each when it is due, until ctx is done.
func (d *drafts) schedule(ctx, work context.Context, wg *sync.WaitGroup) {
	d.alarm.run(ctx, func() (sleep time.Duration) {
		calls, sleep := d.dueCalls(time.Now())
		for _, one := range calls {
			wg.Go(func() { d.makeCall(ctx, work, one) })
		}
		return sleep
	})
}

// dueCalls returns the calls to make now, and for how long nothing more is due; 0 means until
// the alarm rings.
func (d *drafts) dueCalls(now time.Time) (ready []draftCall, wait time.Duration) {
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
		case !due: // another draft uses the address now
			continue
		case at.After(now):
		case len(d.calls) >= draftsAtOnce:
			d.waiting[x.key] = true
			at = now.Add(draftPause)
		case d.prepareCall(x, now):
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

// prepareCall prepares the call that shows a draft, and reports false if there is nothing to show
// or the rate limit has no room.
func (d *drafts) prepareCall(x *draft, now time.Time) bool {
	if x.state != draftUnknown {
		if x.markdown() == "" {
			x.dirty = false
			if x.previews > 0 {
				x.shown = "" // the preview fades by itself
			}
			return false
		}
		every := cmp.Or(x.previews, d.limits.DraftEvery)
		// With all workers busy there may be mail for this address too.
		if len(d.working) >= d.policy.AtOnce || !d.pace.TakeIfSpare(d.moved.current(x.to.Chat), now) {
			x.nextCall = now.Add(every)
			x.repeatPreviewAt = x.nextCall
			return false
		}
		x.nextCall = now.Add(every)
		d.quietUntil[x.to.Chat] = x.nextCall
	}
	x.dirty = false
	d.calls[x.key] = make(chan struct{})
	return true
}

// forgetIdle forgets turns without events for a long time, and pauses that are over.
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

// draftToReplace returns the platform's id of the draft that a message replaces: the draft of its
// turn at its address, or "" if there is none. The caller must have blocked the address.
//
// A draft is replaced only if the book still has it as a draft. What this process remembers is not
// enough: the process that sent for the channel before may have finished a send after this one read
// the drafts, and so have replaced the draft by another message of the turn, which would now be
// overwritten.
func (d *drafts) draftToReplace(work context.Context, out bus.Outbound) (string, error) {
	x := d.draftFor(out)
	if x == nil {
		return "", nil
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
	id := x.platformID
	d.mu.Unlock()
	if id == "" {
		return "", nil
	}
	known, err := d.Book.Lookup(work, x.turn+draftSuffix)
	switch {
	case errors.Is(err, channels.ErrNoSend): // the record was erased, the draft stands there still
		return id, nil
	case err != nil:
		return "", fmt.Errorf("look for the draft of the turn: %w", err)
	case known.Parts[0].State == channels.Drafted:
		return id, nil
	}
	d.update(x, func(x *draft) { x.platformID, x.state = "", draftClosed })
	return "", nil
}

// closeUnposted keeps the turn of an answer from showing a draft from now on. It returns false if the
// turn shows one already, or may, which the answer has to replace.
func (d *drafts) closeUnposted(out bus.Outbound) bool {
	x := d.draftFor(out)
	if x == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if x.platformID != "" || x.state == draftUnknown || d.calls[x.key] != nil {
		return false
	}
	x.state = draftClosed
	return true
}

// draftFor returns the draft of a message's turn, if the draft is at the message's address;
// else nil.
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

// noteFinished records that a message of its turn is completely sent or given up. A message about a
// subject that did not replace the draft leaves the draft for the turn's next message.
func (d *drafts) noteFinished(work context.Context, out bus.Outbound) {
	if x := d.draftFor(out); x != nil && out.Subject == "" {
		d.mu.Lock()
		id := x.platformID
		d.mu.Unlock()
		d.releaseDraft(work, out, id)
	}
}

// releaseDraft records that a message of its turn has replaced the draft with that platform id, or
// is about to. The id "" means that the message is finished without replacing one.
func (d *drafts) releaseDraft(work context.Context, out bus.Outbound, id string) {
	x := d.draftFor(out)
	if x == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if id != x.platformID { // the message has replaced something else
		return
	}
	if id != "" {
		d.mu.Unlock()
		d.closeDraft(work, x, id)
		d.mu.Lock()
	}
	d.forgetIfDone(x)
}

// start adopts the drafts that earlier processes have left, and begins to schedule calls.
func (d *drafts) start(ctx, work context.Context, wg *sync.WaitGroup) {
	left := d.loadLeft(ctx)
	d.mu.Lock()
	d.turns, d.quietUntil, d.calls = map[string]*draft{}, map[string]time.Time{}, map[string]chan struct{}{}
	d.working, d.leftOver, d.waiting = map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, x := range left {
		d.turns[x.turn] = x
	}
	d.mu.Unlock()
	wg.Go(func() { d.schedule(ctx, work, wg) })
}
