package drafts

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Start adopts the drafts that earlier processes have left, then calls the platform for drafts until ctx is done.
// Calls in progress continue until work ends. It starts goroutines in wg, and may be called again once those have
// ended.
func (d *Drafts) Start(ctx, work context.Context, wg *sync.WaitGroup) {
	left := d.loadLeftDrafts(ctx)
	d.mu.Lock()
	d.turns, d.quietUntil, d.callsInProgress = map[string]*draft{}, map[string]time.Time{}, map[string]chan struct{}{}
	d.sendingMail, d.mailLeftOver, d.draftsWaiting = map[string]int{}, map[string]bool{}, map[string]bool{}
	for _, x := range left {
		d.turns[x.turn] = x
	}
	d.mu.Unlock()
	wg.Go(func() { d.schedule(ctx, work, wg) })
}

// schedule calls the platform for drafts, each when it is due, until ctx is done.
func (d *Drafts) schedule(ctx, work context.Context, wg *sync.WaitGroup) {
	d.alarm.Run(ctx, func() (sleep time.Duration) {
		calls, sleep := d.dueCalls(time.Now())
		for _, one := range calls {
			wg.Go(func() { d.makeCall(ctx, work, one) })
		}
		return sleep
	})
}

// dueCalls returns the calls to make now, and how long to wait until more are due; 0 means until the alarm rings.
func (d *Drafts) dueCalls(now time.Time) (ready []draftCall, wait time.Duration) {
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
		case !due: // another draft is using the address now
			continue
		case at.After(now):
		case len(d.callsInProgress) >= maxConcurrentCalls:
			d.draftsWaiting[x.key] = true
			at = now.Add(schedulePause)
		case d.prepareCall(x, now):
			ready = append(ready, draftCall{draft: x, id: x.platformID, text: x.markdown(), length: x.length(), growth: x.growth(), resolvesUnknown: x.state == draftUnknown, closesDraft: x.phase == turnEndedSilently})
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
	return ready, max(d.wakesAt.Sub(now), schedulePause)
}

// prepareCall prepares the call that shows a draft. It returns false if there is nothing to show, or if no call can
// be spared for a draft now.
func (d *Drafts) prepareCall(x *draft, now time.Time) bool {
	if x.state != draftUnknown {
		if x.markdown() == "" {
			x.hasNews = false
			if x.previewInterval > 0 {
				x.shown = "" // the preview fades by itself
			}
			return false
		}
		every := cmp.Or(x.previewInterval, d.limits.DraftEvery)
		// If all workers are busy, there may be mail for this address too.
		if len(d.sendingMail) >= d.conf.Workers || !d.conf.Pace.TakeIfSpare(d.conf.CurrentChat(x.to.Chat), now) {
			x.nextCall = now.Add(every)
			x.repeatPreviewAt = x.nextCall
			return false
		}
		x.nextCall = now.Add(every)
		d.quietUntil[x.to.Chat] = x.nextCall
	}
	x.hasNews = false
	d.callsInProgress[x.key] = make(chan struct{})
	return true
}

// forgetIdle forgets turns that have had no events for a long time, and pauses that are over.
func (d *Drafts) forgetIdle(now time.Time) {
	for turn, x := range d.turns {
		idle := now.Sub(x.lastHeard)
		if d.callsInProgress[x.key] == nil && (idle > idleDraftLifetime || idle > idleTurnLifetime && x.platformID == "" && x.state != draftUnknown) {
			delete(d.turns, turn)
		}
	}
	for chat, until := range d.quietUntil {
		if !until.After(now) {
			delete(d.quietUntil, chat)
		}
	}
}
