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
			ready = append(ready, drawing{draft: x, id: x.id, text: x.words(), doubted: x.doubted, silent: x.silent})
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

// draw makes one call. It is finished even when ctx is done: what is on its way
// to the platform is better known than not.
func (d *drafts) draw(ctx, work context.Context, one drawing) {
	defer func() {
		if r := recover(); r != nil {
			panicLogged(d.Log, "draft", d.Name, one.turn, r)
			d.change(one.draft, func(x *draft) { x.spent = true })
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		close(d.calls[one.key])
		delete(d.calls, one.key)
		d.tidy(one.draft)
		d.free(one.key)
		d.stir(one.draft)
	}()
	if ctx.Err() != nil {
		return
	}
	work, cancel := context.WithTimeout(work, draftTimeout)
	defer cancel()
	if one.doubted {
		d.resolve(work, one.draft)
		return
	}
	pieces := d.render(one.text)
	if len(pieces) == 0 || pieces[0].Text == one.shown {
		return
	}
	part := Part{Key: one.turn + draftSuffix + "/0", Text: pieces[0].Text, Plain: pieces[0].Plain}
	to := one.to
	to.Chat = d.moved.now(to.Chat)
	if one.id == "" {
		d.begin(ctx, work, one, to, part)
		return
	}
	if !d.ours(ctx, work, one) {
		return
	}
	err := d.editor.Edit(work, to, one.id, part)
	d.edited(work, one, part, err)
}

// ours asks, before an edit, whether the draft is still this process's to show.
// After a pause another may have replaced it with the answer, which would be
// gone with the edit.
func (d *drafts) ours(ctx, work context.Context, one drawing) bool {
	asked := time.Now()
	known, err := d.Book.Lookup(work, one.turn+draftSuffix)
	switch {
	case errors.Is(err, ErrNoSend): // it was erased
		d.change(one.draft, func(x *draft) { x.spent = true })
		return false
	case err == nil && known.Parts[0].State != Drafted:
		d.change(one.draft, func(x *draft) { x.id, x.spent = "", true })
		return false
	case err != nil || paused(ctx, asked):
		d.change(one.draft, func(x *draft) { x.dirty, x.next = true, time.Now().Add(outOfOrder) })
		return false
	case known.Parts[0].PlatformID == "": // it could not be noted when it was posted
		d.note(work, one.draft, SentPart{State: Drafted, PlatformID: one.id})
	}
	return true
}

// paused says that others may have had the channel since then.
func paused(held context.Context, since time.Time) bool {
	return held.Err() != nil || time.Since(since) > draftPatience
}

// begin posts a draft. It is in the book before, so that nobody posts it again.
func (d *drafts) begin(ctx, work context.Context, one drawing, to bus.Address, part Part) {
	asked := time.Now()
	if _, err := d.Book.Lookup(work, replyTo(one.turn)); err == nil {
		d.change(one.draft, func(x *draft) { x.spent = true }) // the end of the turn was missed
		return
	}
	known, fresh, err := d.Book.Begin(work, Send{ID: one.turn + draftSuffix, To: one.to, Parts: []SentPart{{State: Drafted}}})
	if err != nil {
		d.Log.Warn("draft is not in the book and not posted", slog.String("channel", d.Name), slog.String("turn", one.turn), slog.Any("error", err))
		d.change(one.draft, func(x *draft) { x.dirty, x.next = true, time.Now().Add(outOfOrder) })
		return
	}
	if !fresh {
		d.Log.Debug("turn has had its draft", slog.String("channel", d.Name), slog.String("turn", one.turn), slog.String("state", known.State()))
		d.change(one.draft, func(x *draft) { x.spent = true })
		if p := known.Parts[0]; p.State == Drafted && p.PlatformID == "" {
			d.resolve(work, one.draft) // we did, and were not told
		}
		return
	}
	d.point("draft:begun")
	if paused(ctx, asked) {
		d.note(work, one.draft, SentPart{State: Failed, Code: "not_sent"})
		d.change(one.draft, func(x *draft) { x.spent = true })
		return
	}
	id, err := d.Channel.Send(work, to, part)
	d.point("draft:sent")
	if paused(ctx, asked) && d.settled(work, one) {
		return
	}
	if err == nil {
		d.note(work, one.draft, SentPart{State: Drafted, PlatformID: id})
		d.point("draft:marked")
		d.change(one.draft, func(x *draft) { x.id, x.shown = id, part.Text })
		return
	}
	fault := faultOf(err)
	d.refused(one, fault)
	if fault.Fault == Unknown {
		d.resolve(work, one.draft)
		return
	}
	d.note(work, one.draft, SentPart{State: Failed, Code: cmp.Or(fault.Code, string(fault.Fault))})
	d.change(one.draft, func(x *draft) { x.spent = true })
}

// settled says that another process has found out meanwhile what became of a
// draft. What it has noted stands.
func (d *drafts) settled(work context.Context, one drawing) bool {
	known, err := d.Book.Lookup(context.WithoutCancel(work), one.turn+draftSuffix)
	if err != nil || known.Parts[0].State == Drafted && known.Parts[0].PlatformID == "" {
		return false
	}
	d.change(one.draft, func(x *draft) { x.spent = true })
	return true
}

// resolve finds out whether a draft was posted. Where nobody can tell, it is
// left at that: it is not posted again, and the answer does not replace it.
func (d *drafts) resolve(work context.Context, x *draft) {
	part := SentPart{State: Unsure, Interrupted: 1}
	if r, can := reconciler(d.Channel); can {
		to := x.to
		to.Chat = d.moved.now(to.Chat)
		// The time of the call that was cut off may be up.
		asking, cancel := context.WithTimeout(context.WithoutCancel(work), draftTimeout)
		id, sent, err := search(asking, r, to, Part{Key: x.turn + draftSuffix + "/0"})
		cancel()
		switch {
		case err == nil && sent:
			part = SentPart{State: Drafted, PlatformID: id}
		case err == nil:
			part = SentPart{State: Failed, Code: "not_sent"}
		}
	}
	if part.State == Unsure {
		d.Log.Warn("nobody can tell whether a draft was posted", slog.String("channel", d.Name), slog.String("turn", x.turn))
	}
	d.note(work, x, part)
	d.change(x, func(x *draft) { x.doubted, x.id, x.spent = false, part.PlatformID, part.PlatformID == "" })
}

// search asks the platform for a part, again where it puts that off.
func search(ctx context.Context, r Reconciler, to bus.Address, part Part) (id string, sent bool, err error) {
	for tries := 0; ; tries++ {
		id, sent, err = r.FindSent(ctx, to, part)
		fault := faultOf(err)
		if err == nil || fault.Fault != Retry {
			return id, sent, err
		}
		select {
		case <-time.After(max(fault.RetryAfter, backoff(tries, longestBackoff))):
		case <-ctx.Done():
			return "", false, err
		}
	}
}

// edited deals with what came of an edit.
func (d *drafts) edited(work context.Context, one drawing, part Part, err error) {
	d.point("draft:edited")
	if err == nil {
		d.change(one.draft, func(x *draft) { x.shown = part.Text })
	} else {
		d.refused(one, faultOf(err))
	}
	if !one.silent {
		return
	}
	over := err == nil || faultOf(err).Fault == Rejected
	d.change(one.draft, func(x *draft) {
		x.tries++
		over = over || x.tries >= draftTries
	})
	if over {
		d.close(work, one.draft, one.id)
	}
}

// refused keeps a chat quiet for as long as the platform asks, and a draft that
// cannot be edited as it is.
func (d *drafts) refused(one drawing, fault *SendError) {
	d.Log.Info("draft was not shown", slog.String("channel", d.Name), slog.String("turn", one.turn),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code))
	d.change(one.draft, func(x *draft) {
		until := time.Now().Add(max(fault.RetryAfter, d.limits.DraftEvery))
		switch {
		case fault.Fault == Rejected, fault.Fault == Stop:
			x.spent = true
			return
		case fault.Limited && fault.Account:
			d.still = until
		case fault.Limited:
			d.quiet[x.to.Chat] = until
		}
		x.dirty, x.next = true, until
	})
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
	err := d.insist(work, func(ctx context.Context) error {
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

// replaced says that a message is through whose turn may have a draft there.
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
