package channels

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
)

// draftSuffix makes a turn's id the id of its draft in the book.
const draftSuffix = "#draft"

// left are the drafts of earlier processes, however long the book takes: a
// message that is to replace one must not pass it by.
func (d *drafts) left(ctx context.Context) []*draft {
	for wait := firstBackoff; ; wait = min(2*wait, longestHold) {
		known, err := d.Drafts.Drafts(ctx, d.Name)
		if err == nil {
			return d.found(ctx, known)
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

func (d *drafts) found(ctx context.Context, known []Send) []*draft {
	var left []*draft
	for _, send := range known {
		x := newDraft(strings.TrimSuffix(send.ID, draftSuffix), send.To)
		x.id = send.Parts[0].PlatformID
		if time.Since(send.At) > draftKept {
			d.note(ctx, x, SentPart{State: Sent, PlatformID: x.id})
			continue
		}
		x.doubted, x.heard, x.next = x.id == "", time.Now(), time.Now()
		left = append(left, x)
	}
	return left
}

// A drawing is one call for a draft.
type drawing struct {
	*draft
	id, text string
	length   int // of what was said, in characters
	doubted  bool
	silent   bool
}

// plan calls the platform whenever a draft is due.
func (d *drafts) plan(ctx, work context.Context, wg *sync.WaitGroup) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now, wait := d.due(time.Now())
		for _, one := range now {
			wg.Go(func() { d.draw(ctx, work, one) })
		}
		if wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		case <-timer.C:
		}
	}
}

// due takes up what is to be done now, and says for how long there is nothing
// more to do, 0 being until somebody stirs.
func (d *drafts) due(now time.Time) (ready []drawing, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(now)
	var all []*draft
	for _, x := range d.turns {
		if _, due := d.dueAt(x); due {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b *draft) int { return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.turn, b.turn)) })
	d.planned = time.Time{}
	for _, x := range all {
		at, due := d.dueAt(x)
		switch {
		case !due: // an earlier one has the address now
			continue
		case at.After(now):
		case len(d.calls) >= draftsAtOnce:
			d.held[x.key] = true
			at = now.Add(draftPause)
		case d.takesUp(x, now):
			ready = append(ready, drawing{draft: x, id: x.id, text: x.words(), length: x.length(), doubted: x.doubted, silent: x.silent})
			continue
		default:
			if at, due = d.dueAt(x); !due {
				continue
			}
		}
		if d.planned.IsZero() || at.Before(d.planned) {
			d.planned = at
		}
	}
	if d.planned.IsZero() {
		return ready, 0
	}
	return ready, max(d.planned.Sub(now), draftPause)
}

// takesUp begins a call for a draft, unless there is nothing to show or no room
// for it in the pace.
func (d *drafts) takesUp(x *draft, now time.Time) bool {
	if !x.doubted {
		if x.words() == "" {
			x.dirty = false
			return false
		}
		// With all hands on mail there may be some for this address too.
		if len(d.mail) >= d.delivery.AtOnce || !d.pace.spare(d.moved.now(x.to.Chat), now) {
			x.next = now.Add(d.limits.DraftEvery)
			return false
		}
		x.next = now.Add(d.limits.DraftEvery)
		d.quiet[x.to.Chat] = x.next
	}
	x.dirty = false
	d.calls[x.key] = make(chan struct{})
	return true
}

// forget lets go of what is long past.
func (d *drafts) forget(now time.Time) {
	for turn, x := range d.turns {
		idle := now.Sub(x.heard)
		if d.calls[x.key] == nil && (idle > draftKept || idle > draftIdle && x.id == "" && !x.doubted) {
			delete(d.turns, turn)
		}
	}
	for chat, until := range d.quiet {
		if !until.After(now) {
			delete(d.quiet, chat)
		}
	}
}

// close ends a draft that is not to be replaced any more.
func (d *drafts) close(work context.Context, x *draft, id string) {
	d.note(work, x, SentPart{State: Sent, PlatformID: id})
	d.point("draft:closed")
	d.change(x, func(x *draft) { x.id, x.spent = "", true })
}

func (d *drafts) change(x *draft, how func(*draft)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	how(x)
}

// note writes into the book what became of a draft. What cannot be written is
// found as it was by the next process.
func (d *drafts) note(work context.Context, x *draft, now SentPart) {
	err := d.insist(work, nil, func(ctx context.Context) error {
		err := d.Book.Mark(ctx, x.turn+draftSuffix, 0, now)
		if errors.Is(err, ErrNoSend) { // it was erased
			return nil
		}
		return err
	})
	if err != nil {
		d.Log.Error("draft was not noted", slog.String("channel", d.Name), slog.String("turn", x.turn), slog.Any("error", err))
	}
}

// of is the platform's id of the draft that a message replaces: that of its turn
// where it goes. "" is none. Its address's mail is being worked on.
func (d *drafts) of(work context.Context, out bus.Outbound) string {
	x := d.by(out)
	if x == nil {
		return ""
	}
	d.mu.Lock()
	x.spent = x.spent || isReply(out)
	doubted := x.doubted
	d.mu.Unlock()
	if doubted {
		d.resolve(work, x)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return x.id
}

// by is the draft of a message's turn, if it is where the message goes.
func (d *drafts) by(out bus.Outbound) *draft {
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

// replaced says that a message of its turn has taken a draft's place, or is about
// to, or is through without one.
func (d *drafts) replaced(work context.Context, out bus.Outbound) {
	x := d.by(out)
	if x == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if id := x.id; id != "" {
		d.mu.Unlock()
		d.close(work, x, id)
		d.mu.Lock()
	}
	d.tidy(x)
}
