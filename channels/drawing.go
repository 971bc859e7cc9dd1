package channels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
)

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
	part := d.sketch(one)
	same := part.Text == "" || part.Text == one.shown
	if same && (!one.silent || one.id == "") {
		return
	}
	to := one.to
	to.Chat = d.moved.now(to.Chat)
	if one.id == "" {
		d.begin(ctx, work, one, to, part)
		return
	}
	asked := time.Now()
	if !d.ours(ctx, work, one) {
		return
	}
	if same { // it says already how the turn has ended
		d.close(work, one.draft, one.id)
		return
	}
	err := d.editor.Edit(under(work, stillHeld(ctx, asked)), to, one.id, part)
	d.edited(work, one, part, err)
}

// signLength is room for the sign of how much more there is.
const signLength = 120

// sketch is what a draft shows: of an answer that is longer than one message its
// beginning, and how much there is by now, so that it can be seen to go on. A
// draft that has begun is edited, so it keeps to what an edit may be.
func (d *drafts) sketch(one drawing) Part {
	part := Part{Key: one.turn + draftSuffix + "/0"}
	pieces := d.renderEdit(one.text)
	if len(pieces) == 0 {
		return part
	}
	part.Text, part.Plain = pieces[0].Text, pieces[0].Plain
	if len(pieces) == 1 {
		return part
	}
	if d.limits.Length < 2*signLength {
		return part // there is hardly room for more
	}
	first := max(d.limits.EditBytes-signLength, 0)
	start := d.renderer.RenderFirst(one.text, d.limits.Dialect, first, d.limits.Length-signLength)[0]
	words := "_… (%d characters so far; the whole comes at the end)_"
	if one.silent {
		words = "_… (Stopped after %d characters.)_"
	}
	sign := d.render(fmt.Sprintf(words, one.length))[0]
	part.Text, part.Plain = start.Text+"\n\n"+sign.Text, start.Plain+"\n\n"+sign.Plain
	return part
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
	return held.Err() != nil || time.Since(since) > heldPatience
}

// stillHeld is the right to show drafts, which goes with the channel. In a process
// that stood still the alarm that ends it rings a moment late.
func stillHeld(held context.Context, asked time.Time) right {
	return right{asked, func(context.Context) error {
		select {
		case <-held.Done():
			return context.Cause(held)
		case <-time.After(alarmDelay):
			return nil
		}
	}}
}

// alarmDelay is far more than a timer that is due takes to fire.
const alarmDelay = 100 * time.Millisecond

// begin posts a draft. It is in the book before, so that nobody posts it again.
func (d *drafts) begin(ctx, work context.Context, one drawing, to bus.Address, part Part) {
	asked := time.Now()
	if _, err := d.Book.Lookup(work, replyTo(one.turn)); err == nil {
		d.change(one.draft, func(x *draft) { x.spent = true }) // the end of the turn was missed
		return
	}
	// What an earlier holder of the channel has left for later comes first: the
	// answer that replaces the draft would stand above it.
	if has, err := d.Bus.HasMail(work, bus.OutboundTopic(d.Name), one.key); err != nil || has {
		d.change(one.draft, func(x *draft) { x.dirty, x.next = true, time.Now().Add(d.limits.DraftEvery) })
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
	id, err := d.Channel.Send(under(work, stillHeld(ctx, asked)), to, part)
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
	d.pace.limited(d.moved.now(one.to.Chat), fault)
	d.change(one.draft, func(x *draft) {
		if fault.Fault == Rejected || fault.Fault == Stop {
			x.spent = true
			return
		}
		x.dirty, x.next = true, time.Now().Add(max(fault.RetryAfter, d.limits.DraftEvery))
	})
}
