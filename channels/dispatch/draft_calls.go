package dispatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// A draftCall is one call of the platform that shows a draft.
type draftCall struct {
	*draft
	id, text string
	length   int // how long the model's text is so far, in characters
	growth   channels.Growth
	unknown  bool // before the call: find out whether an earlier process has posted the draft
	last     bool // whether this is the edit that closes the draft of a turn without an answer
}

// makeCall makes one call, and finishes it even when ctx is done, so that its outcome is known.
func (d *drafts) makeCall(ctx, work context.Context, one draftCall) {
	defer func() {
		if r := recover(); r != nil {
			channels.LogPanic(d.Log, "draft", d.Name, one.turn, r)
			d.update(one.draft, func(x *draft) { x.state = draftClosed })
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		close(d.calls[one.key])
		delete(d.calls, one.key)
		d.forgetIfDone(one.draft)
		d.releaseHeld(one.key)
		d.wakeFor(one.draft)
	}()
	if ctx.Err() != nil {
		return
	}
	work, cancel := context.WithTimeout(work, draftTimeout)
	defer cancel()
	if one.unknown {
		d.resolveUnknown(work, one.draft)
		return
	}
	part := d.draftPart(work, one)
	to := one.to
	to.Chat = d.moved.current(to.Chat)
	if one.previews > 0 {
		d.preview(ctx, work, one, to, part)
		return
	}
	same := part.Text == "" || part.Text == one.shown
	if same && (!one.last || one.id == "") {
		return
	}
	if one.id == "" {
		d.postDraft(ctx, work, one, to, part)
		return
	}
	asked := time.Now()
	if !d.isStillOurs(ctx, work, one) {
		return
	}
	if same { // the draft already says how the turn has ended
		d.closeDraft(work, one.draft, one.id)
		return
	}
	err := d.editor.Edit(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, asked)), to, one.id, part)
	d.handleEditResult(work, one, part, err)
}

// preview shows a draft as a preview; if the platform refuses, the draft becomes a message.
func (d *drafts) preview(ctx, work context.Context, one draftCall, to bus.Address, part channels.Part) {
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
		d.Log.Info("answers are not shown as previews", slog.String("channel", d.Name), slog.String("code", fault.Code))
		d.update(one.draft, func(x *draft) { x.previews, x.shown, x.dirty = 0, "", true })
	default: // after an unknown outcome too: repeating a preview does no harm
		d.handleDraftError(one, fault)
	}
}

// moreNoteLength is the room that is kept free for the note that says how long the answer is, in
// the unit of Limits.Length.
const moreNoteLength = 120

// draftPart returns what to show of a draft. Of an answer longer than one message it shows
// the beginning and the present length, so that people see it grow. The text fits into an
// edit, because a draft is edited.
func (d *drafts) draftPart(work context.Context, one draftCall) channels.Part {
	part := channels.Part{Key: channels.PartKey(one.turn+draftSuffix, 0)}
	if d.limits.Streams && d.policy.Stream != StreamEdit && !one.last && (one.id != "" || d.mayGrow(work)) {
		part.Growing = &one.growth
	}
	pieces := d.renderEdit(one.text)
	if len(pieces) == 0 {
		return part
	}
	part.Text, part.Plain = pieces[0].Text, pieces[0].Plain
	if len(pieces) == 1 {
		return part
	}
	if d.limits.Length < 2*moreNoteLength {
		return part // there is hardly room for more
	}
	first := max(d.limits.EditBytes-moreNoteLength, 0)
	start := d.renderer.RenderFirst(one.text, d.limits.Dialect, first, d.limits.Length-moreNoteLength)[0]
	words := "_… (%d characters so far; the whole comes at the end)_"
	if one.last {
		words = "_… (Stopped after %d characters.)_"
	}
	sign := d.render(fmt.Sprintf(words, one.length))[0]
	part.Text, part.Plain = start.Text+"\n\n"+sign.Text, start.Plain+"\n\n"+sign.Plain
	return part
}

// mayGrow reports whether a draft may be begun as a message that grows (see Dispatcher.MayGrow).
func (d *drafts) mayGrow(work context.Context) bool { return d.MayGrow == nil || d.MayGrow(work) }

// isStillOurs looks up, before an edit, whether this process may still edit the draft: after a
// pause another one may have replaced it with the answer, which the edit would overwrite.
func (d *drafts) isStillOurs(ctx, work context.Context, one draftCall) bool {
	asked := time.Now()
	known, err := d.Book.Lookup(work, one.turn+draftSuffix)
	switch {
	case errors.Is(err, channels.ErrNoSend): // it was erased
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		return false
	case err == nil && known.Parts[0].State != channels.Drafted:
		d.update(one.draft, func(x *draft) { x.platformID, x.state = "", draftClosed })
		return false
	case err != nil || mayHaveLostHold(ctx, asked):
		d.update(one.draft, func(x *draft) { x.dirty, x.nextCall = true, time.Now().Add(storageWait) })
		return false
	case known.Parts[0].PlatformID == "": // its id could not be recorded when it was posted
		d.mark(work, one.draft, channels.SentPart{State: channels.Drafted, PlatformID: one.id})
	}
	return true
}

// mayHaveLostHold reports whether, since that time, this process stood still so long that others
// may send through the channel, or has given up the channel's name.
func mayHaveLostHold(held context.Context, since time.Time) bool {
	return held.Err() != nil || time.Since(since) > channels.LeasePatience
}

// channelLeaseCheck returns the lease check for drafts: this process may show them until held, its
// hold of the channel, ends. The timer that ends it fires late after a pause, so the check waits.
func channelLeaseCheck(held context.Context, asked time.Time) channels.LeaseCheck {
	return channels.LeaseCheck{Asked: asked, Ask: func(context.Context) error {
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

// postDraft records a draft in the book, so that nobody posts it again, and posts it.
func (d *drafts) postDraft(ctx, work context.Context, one draftCall, to bus.Address, part channels.Part) {
	asked := time.Now()
	if _, err := d.Book.Lookup(work, bus.ReplyID(one.turn)); err == nil {
		d.update(one.draft, func(x *draft) { x.state = draftClosed }) // the event of the turn's end was missed
		return
	}
	// Mail that an earlier holder of the channel has left is sent first: the answer that
	// replaces the draft would otherwise appear above it.
	if has, err := d.Bus.HasMail(work, bus.OutboundTopic(d.Name), one.key); err != nil || has {
		d.update(one.draft, func(x *draft) { x.dirty, x.nextCall = true, time.Now().Add(d.limits.DraftEvery) })
		return
	}
	known, fresh, err := d.Book.Begin(work, channels.Send{ID: one.turn + draftSuffix, To: one.to, Writer: one.session, Parts: []channels.SentPart{{State: channels.Drafted}}})
	if err != nil {
		d.Log.Warn("draft is not in the book and not posted", slog.String("channel", d.Name), slog.String("turn", one.turn), slog.Any("error", err))
		d.update(one.draft, func(x *draft) { x.dirty, x.nextCall = true, time.Now().Add(storageWait) })
		return
	}
	if !fresh {
		d.Log.Debug("turn has had its draft", slog.String("channel", d.Name), slog.String("turn", one.turn), slog.String("state", known.State()))
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		if p := known.Parts[0]; p.State == channels.Drafted && p.PlatformID == "" {
			d.resolveUnknown(work, one.draft) // this process has sent it without getting an answer
		}
		return
	}
	d.crashPoint("draft:begun")
	if mayHaveLostHold(ctx, asked) {
		d.mark(work, one.draft, channels.SentPart{State: channels.Failed, Code: "not_sent"})
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		return
	}
	id, err := d.Channel.Send(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, asked)), to, part)
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

// isSettledByAnother reports whether another process has meanwhile found out what became of a
// draft. What that process has recorded stays.
func (d *drafts) isSettledByAnother(work context.Context, one draftCall) bool {
	known, err := d.Book.Lookup(context.WithoutCancel(work), one.turn+draftSuffix)
	if err != nil || known.Parts[0].State == channels.Drafted && known.Parts[0].PlatformID == "" {
		return false
	}
	d.update(one.draft, func(x *draft) { x.state = draftClosed })
	return true
}

// resolveUnknown finds out whether an earlier process has posted a draft. If nobody can tell, the
// draft is neither posted again nor replaced by the answer.
func (d *drafts) resolveUnknown(work context.Context, x *draft) {
	part := channels.SentPart{State: channels.Unsure, Interrupted: 1}
	if r, can := channels.AsReconciler(d.Channel); can {
		to := x.to
		to.Chat = d.moved.current(to.Chat)
		// The context of the call that was cut off may have timed out.
		asking, cancel := context.WithTimeout(context.WithoutCancel(work), draftTimeout)
		wanted := channels.Part{Key: channels.PartKey(x.turn+draftSuffix, 0)}
		if d.limits.Streams { // also if the setting has changed since
			wanted.Growing = new(channels.Growth)
		}
		id, sent, err := findSent(asking, r, to, wanted)
		cancel()
		switch {
		case err == nil && sent && !d.belongsToOtherTurn(x, id):
			part = channels.SentPart{State: channels.Drafted, PlatformID: id}
		case err == nil:
			part = channels.SentPart{State: channels.Failed, Code: "not_sent"}
		}
	}
	if part.State == channels.Unsure {
		d.Log.Warn("nobody can tell whether a draft was posted", slog.String("channel", d.Name), slog.String("turn", x.turn))
	}
	d.mark(work, x, part)
	d.update(x, func(x *draft) {
		x.platformID, x.state = part.PlatformID, draftShown
		if x.platformID == "" {
			x.state = draftClosed
		}
	})
}

// belongsToOtherTurn reports whether a message is the draft of another turn: messages that grow
// have no key by which FindSent could tell them apart.
func (d *drafts) belongsToOtherTurn(x *draft, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.turns {
		if other != x && other.platformID == id {
			return true
		}
	}
	return false
}

// findSent asks the platform whether a part was sent, and repeats that if asked to wait.
func findSent(ctx context.Context, r channels.Reconciler, to bus.Address, part channels.Part) (id string, sent bool, err error) {
	for tries := 0; ; tries++ {
		id, sent, err = r.FindSent(ctx, to, part)
		fault := channels.FaultOf(err)
		if err == nil || fault.Fault != channels.Retry {
			return id, sent, err
		}
		select {
		case <-time.After(max(fault.RetryAfter, backoff(tries, longestBackoff))):
		case <-ctx.Done():
			return "", false, err
		}
	}
}

// handleEditResult handles the outcome of an edit.
func (d *drafts) handleEditResult(work context.Context, one draftCall, part channels.Part, err error) {
	d.crashPoint("draft:edited")
	if err == nil {
		d.update(one.draft, func(x *draft) { x.shown = part.Text })
	} else {
		d.handleDraftError(one, channels.FaultOf(err))
	}
	if !one.last {
		return
	}
	over := err == nil || channels.FaultOf(err).Fault == channels.Rejected
	d.update(one.draft, func(x *draft) {
		x.tries++
		over = over || x.tries >= draftTries
	})
	if over {
		d.closeDraft(work, one.draft, one.id)
	}
}

// handleDraftError handles an error of the platform: it pauses the chat for as long as the
// platform asks, and closes a draft that cannot be edited.
func (d *drafts) handleDraftError(one draftCall, fault *channels.SendError) {
	d.Log.Info("draft was not shown", slog.String("channel", d.Name), slog.String("turn", one.turn),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code))
	d.pace.NoteLimit(d.moved.current(one.to.Chat), fault)
	d.update(one.draft, func(x *draft) {
		if fault.Fault == channels.Rejected || fault.Fault == channels.Stop {
			x.state = draftClosed
			return
		}
		x.dirty, x.nextCall = true, time.Now().Add(max(fault.RetryAfter, d.limits.DraftEvery))
	})
}

// markdown returns what a draft should show, as Markdown; "" while there is nothing.
func (x *draft) markdown() string {
	texts := x.texts()
	switch {
	case x.phase == turnSilent && len(texts) > 0:
		texts = append(texts, "_(Stopped.)_")
	case x.phase == turnSilent: // who has stopped it is told "Stopped." in a message
		if x.toolLine != "" {
			texts = append(texts, "· "+x.toolLine)
		}
		texts = append(texts, "_(Stopped before there was an answer.)_")
	case x.toolLine != "":
		texts = append(append(texts, x.todo.markdown()...), "· "+x.toolLine)
	case len(texts) > 0:
		texts = append(texts, "…")
	}
	return strings.Join(texts, "\n\n")
}

// briefLine returns what a tool call is about on one short line, as Markdown.
func briefLine(about string) string {
	if utf8.RuneCountInString(about) > draftLine {
		about = string([]rune(about)[:draftLine]) + "…"
	}
	return markup.Verbatim(about)
}

// todoTool is the name of the tool whose progress text is the turn's list of tasks: a first
// line that says how far it is, and one line for each task.
const todoTool = "todo_write"

// A todoList is a turn's newest list of tasks by todoTool; its text may arrive in pieces.
type todoList struct{ call, text string }

// update adds a progress event of the tool to the list, and returns what the draft shows on the
// line about the tool.
func (l *todoList) update(e bus.Event) string {
	if e.Tool != todoTool || e.Type != bus.ToolProgress {
		return e.Delta
	}
	if e.Call != l.call {
		l.call, l.text = e.Call, ""
	}
	l.text += e.Delta
	far, _, _ := strings.Cut(l.text, "\n")
	return far
}

// markdown returns the list of tasks as one paragraph, or nothing if it has no items.
func (l *todoList) markdown() []string {
	lines := strings.Split(l.text, "\n")[1:]
	if len(lines) == 0 {
		return nil
	}
	for i, line := range lines {
		lines[i] = "- " + markup.Verbatim(line)
	}
	return []string{strings.Join(lines, "\n")}
}
