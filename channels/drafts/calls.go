package drafts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
)

// A draftCall is one call to the platform that shows a draft.
type draftCall struct {
	*draft
	id, text        string
	length          int // the length of the model's text so far, in characters
	growth          channels.Growth
	resolvesUnknown bool // whether to find out if the draft was posted, instead of showing it
	closesDraft     bool // whether this is the edit that closes the draft of a turn without an answer
}

// makeCall makes one call, unless ctx is done. It completes a call even if ctx ends meanwhile, so that its outcome is
// known.
func (d *Drafts) makeCall(ctx, work context.Context, one draftCall) {
	defer func() {
		if r := recover(); r != nil {
			channels.LogPanic(d.conf.Log, "draft", d.conf.Name, one.turn, r)
			d.update(one.draft, func(x *draft) { x.state = draftClosed })
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		close(d.callsInProgress[one.key])
		delete(d.callsInProgress, one.key)
		d.forgetIfDone(one.draft)
		d.releaseHeld(one.key)
		d.wakeFor(one.draft)
	}()
	if ctx.Err() != nil {
		return
	}
	work, cancel := context.WithTimeout(work, draftTimeout)
	defer cancel()
	if one.resolvesUnknown {
		d.resolveUnknown(work, one.draft)
		return
	}
	part := d.draftPart(work, one)
	to := one.to
	to.Chat = d.conf.CurrentChat(to.Chat)
	if one.previewInterval > 0 {
		d.preview(ctx, work, one, to, part)
		return
	}
	same := part.Text == "" || part.Text == one.shown
	if same && (!one.closesDraft || one.id == "") {
		return
	}
	if one.id == "" {
		d.postDraft(ctx, work, one, to, part)
		d.update(one.draft, func(x *draft) { x.mustKeepPreview = x.mustKeepPreview && x.hasNews && x.state == draftShown }) // it may have to wait
		return
	}
	asked := time.Now()
	if !d.isStillOurs(ctx, work, one) {
		return
	}
	if same { // the draft already says how the turn ended
		d.closeDraft(work, one.draft, one.id)
		return
	}
	err := d.editor.Edit(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, asked)), to, one.id, part)
	d.handleEditResult(work, one, part, err)
}

// preview shows a draft as a preview; if the platform refuses, the draft becomes a message.
func (d *Drafts) preview(ctx, work context.Context, one draftCall, to bus.Address, part channels.Part) {
	if part.Text == "" {
		d.update(one.draft, func(x *draft) { x.shown = "" })
		return
	}
	fades, err := d.previewer.Preview(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, time.Now())), to, one.turn, part)
	fault := channels.FaultOf(err)
	switch {
	case err == nil:
		d.update(one.draft, func(x *draft) { x.shown, x.repeatPreviewAt = part.Text, time.Now().Add(fades/2) })
	case fault.Fault == channels.Rejected:
		d.log.Info("answers are not shown as previews", slog.String("code", fault.Code))
		d.update(one.draft, func(x *draft) { x.previewInterval, x.shown, x.hasNews = 0, "", true })
	default: // even if the outcome is unknown: repeating a preview does no harm
		d.handleDraftError(one, fault)
	}
}

// moreNoteLength is the room that is kept free for the note that says how long the answer is, in the unit of
// Limits.Length.
const moreNoteLength = 120

// draftPart returns what to show as a draft. If an answer is longer than one message, the draft shows its beginning
// and its current length, so that people see it grow. The text fits into an edit, because a draft will be edited.
func (d *Drafts) draftPart(work context.Context, one draftCall) channels.Part {
	part := channels.Part{Key: channels.PartKey(ID(one.turn), 0)}
	if d.limits.Streams && !d.conf.EditOnly && !one.closesDraft && (one.id != "" || d.mayGrow(work)) {
		part.Growing = &one.growth
	}
	pieces := d.conf.Renderer.RenderFirst(one.text, d.limits.Dialect, d.limits.EditBytes, d.limits.Length)
	if len(pieces) == 0 {
		return part
	}
	part.Text, part.Plain = pieces[0].Text, pieces[0].Plain
	if len(pieces) == 1 {
		return part
	}
	if d.limits.Length < 2*moreNoteLength {
		return part // there is hardly room for the note
	}
	first := max(d.limits.EditBytes-moreNoteLength, 0)
	start := d.conf.Renderer.RenderFirst(one.text, d.limits.Dialect, first, d.limits.Length-moreNoteLength)[0]
	words := "_… (%d characters so far; you'll get all of it at the end)_"
	if one.closesDraft {
		words = "_… (Stopped after %d characters.)_"
	}
	sign := d.conf.Renderer.Render(fmt.Sprintf(words, one.length), d.limits.Dialect, d.limits.Length)[0]
	part.Text, part.Plain = start.Text+"\n\n"+sign.Text, start.Plain+"\n\n"+sign.Plain
	return part
}

// mayGrow reports whether a draft may start as a message that grows.
func (d *Drafts) mayGrow(work context.Context) bool {
	return d.conf.MayGrow == nil || d.conf.MayGrow(work)
}

// isStillOurs looks up, before an edit, whether this process may still edit the draft: if this process was paused,
// another one may have replaced the draft with the answer, which the edit would overwrite. If nobody can tell now, it
// returns false, and the edit is tried again later.
func (d *Drafts) isStillOurs(ctx, work context.Context, one draftCall) bool {
	asked := time.Now()
	known, err := d.conf.Book.Lookup(work, ID(one.turn))
	switch {
	case errors.Is(err, channels.ErrNoSend): // the record was erased
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		return false
	case err == nil && known.Parts[0].State != channels.Drafted:
		d.update(one.draft, func(x *draft) { x.platformID, x.state = "", draftClosed })
		return false
	case err != nil || mayHaveLostHold(ctx, asked):
		d.update(one.draft, func(x *draft) { x.hasNews, x.nextCall = true, time.Now().Add(bookRetryDelay) })
		return false
	case known.Parts[0].PlatformID == "": // the id could not be recorded when the draft was posted
		d.mark(work, one.draft, channels.SentPart{State: channels.Drafted, PlatformID: one.id})
	}
	return true
}

// postDraft records a draft in the book, so that nobody posts it again, and posts it. It waits while mail for the
// address or the book is in the way, and closes the draft if the turn has had a draft or an answer.
func (d *Drafts) postDraft(ctx, work context.Context, one draftCall, to bus.Address, part channels.Part) {
	asked := time.Now()
	if _, err := d.conf.Book.Lookup(work, bus.ReplyID(one.turn)); err == nil {
		d.update(one.draft, func(x *draft) { x.state = draftClosed }) // the event that the turn ended was missed
		return
	}
	// If an earlier holder of the channel has left mail, that is sent first: otherwise the answer that replaces the
	// draft would appear above it.
	if has, err := d.conf.Mail.HasMail(work, bus.OutboundTopic(d.conf.Name), one.key); err != nil || has {
		d.update(one.draft, func(x *draft) { x.hasNews, x.nextCall = true, time.Now().Add(d.limits.DraftEvery) })
		return
	}
	known, fresh, err := d.conf.Book.Begin(work, channels.Send{ID: ID(one.turn), To: one.to, Writer: one.session, Parts: []channels.SentPart{{State: channels.Drafted}}})
	if err != nil {
		d.log.Warn("draft is not in the book and not posted", slog.String("turn", one.turn), slog.Any("error", err))
		d.update(one.draft, func(x *draft) { x.hasNews, x.nextCall = true, time.Now().Add(bookRetryDelay) })
		return
	}
	if !fresh {
		d.log.Debug("turn has had its draft", slog.String("turn", one.turn), slog.String("state", known.State()))
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		if p := known.Parts[0]; p.State == channels.Drafted && p.PlatformID == "" {
			d.resolveUnknown(work, one.draft) // this process has sent the draft without getting an answer
		}
		return
	}
	d.crashPoint("draft:begun")
	if mayHaveLostHold(ctx, asked) {
		d.mark(work, one.draft, channels.SentPart{State: channels.Failed, Code: "not_sent"})
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		return
	}
	id, err := d.conf.Channel.Send(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, asked)), to, part)
	d.crashPoint("draft:sent")
	if mayHaveLostHold(ctx, asked) && d.isSettledByAnother(work, one) {
		return
	}
	if err == nil {
		d.mark(work, one.draft, channels.SentPart{State: channels.Drafted, PlatformID: id})
		d.crashPoint("draft:marked")
		d.update(one.draft, func(x *draft) { x.platformID, x.shown = id, part.Text })
		return
	}
	fault := channels.FaultOf(err)
	d.handleDraftError(one, fault)
	if fault.Fault == channels.Unknown {
		d.resolveUnknown(work, one.draft)
		return
	}
	d.mark(work, one.draft, channels.SentPart{State: channels.Failed, Code: cmp.Or(fault.Code, string(fault.Fault))})
	d.update(one.draft, func(x *draft) { x.state = draftClosed })
}

// handleEditResult handles the outcome of an edit. If the draft is closing, it then closes the draft, unless the
// edit is to be tried again.
func (d *Drafts) handleEditResult(work context.Context, one draftCall, part channels.Part, err error) {
	d.crashPoint("draft:edited")
	if err == nil {
		d.update(one.draft, func(x *draft) { x.shown = part.Text })
	} else {
		d.handleDraftError(one, channels.FaultOf(err))
	}
	if !one.closesDraft {
		return
	}
	over := err == nil || channels.FaultOf(err).Fault == channels.Rejected
	d.update(one.draft, func(x *draft) {
		x.closeAttempts++
		over = over || x.closeAttempts >= maxCloseAttempts
	})
	if over {
		d.closeDraft(work, one.draft, one.id)
	}
}

// handleDraftError handles an error from the platform: it pauses the chat for as long as the platform asks, and
// plans another call or, if the platform refuses the draft, closes it.
func (d *Drafts) handleDraftError(one draftCall, fault *channels.SendError) {
	d.log.Info("draft was not shown", slog.String("turn", one.turn),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code))
	d.conf.Pace.NoteLimit(d.conf.CurrentChat(one.to.Chat), fault)
	d.update(one.draft, func(x *draft) {
		if fault.Fault == channels.Rejected || fault.Fault == channels.Stop {
			x.state = draftClosed
			return
		}
		x.hasNews, x.nextCall = true, time.Now().Add(max(fault.RetryAfter, d.limits.DraftEvery))
	})
}

// isSettledByAnother reports whether another process has, in the meantime, found out what became of a draft.
// Whatever that process has recorded stays, and this one does no more with the draft.
func (d *Drafts) isSettledByAnother(work context.Context, one draftCall) bool {
	known, err := d.conf.Book.Lookup(context.WithoutCancel(work), ID(one.turn))
	if err != nil || known.Parts[0].State == channels.Drafted && known.Parts[0].PlatformID == "" {
		return false
	}
	d.update(one.draft, func(x *draft) { x.state = draftClosed })
	return true
}
