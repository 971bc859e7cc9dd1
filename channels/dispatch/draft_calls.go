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

// A draftCall is one call for a draft.
type draftCall struct {
	*draft
	id, text string
	length   int // of what was said, in characters
	growth   channels.Growth
	unknown  bool // whether it is posted is to be found out first
	last     bool // the edit that closes the draft of a turn without an answer
}

// makeCall makes one call. It is finished even when ctx is done: what is on its way
// to the platform is better known than not.
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
	if !d.stillOurs(ctx, work, one) {
		return
	}
	if same { // it says already how the turn has ended
		d.closeDraft(work, one.draft, one.id)
		return
	}
	err := d.editor.Edit(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, asked)), to, one.id, part)
	d.noteEdit(work, one, part, err)
}

// preview shows a draft as a preview. Where the platform does not take that, the draft goes
// on as a message.
func (d *drafts) preview(ctx, work context.Context, one draftCall, to bus.Address, part channels.Part) {
	if part.Text == "" {
		d.update(one.draft, func(x *draft) { x.shown = "" })
		return
	}
	fades, err := d.previewer.Preview(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, time.Now())), to, one.turn, part)
	fault := channels.FaultOf(err)
	switch {
	case err == nil:
		d.update(one.draft, func(x *draft) { x.shown, x.again = part.Text, time.Now().Add(fades/2) })
	case fault.Fault == channels.Rejected:
		d.Log.Info("answers are not shown as previews", slog.String("channel", d.Name), slog.String("code", fault.Code))
		d.update(one.draft, func(x *draft) { x.previews, x.shown, x.dirty = 0, "", true })
	default: // of unknown outcome too: it may be shown again
		d.noteRefusal(one, fault)
	}
}

// signLength is room for the sign of how much more there is.
const signLength = 120

// draftPart is what a draft shows: of an answer that is longer than one message its
// beginning, and how much there is by now, so that it can be seen to go on. A
// draft that has begun is edited, so it keeps to what an edit may be.
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
	if d.limits.Length < 2*signLength {
		return part // there is hardly room for more
	}
	first := max(d.limits.EditBytes-signLength, 0)
	start := d.renderer.RenderFirst(one.text, d.limits.Dialect, first, d.limits.Length-signLength)[0]
	words := "_… (%d characters so far; the whole comes at the end)_"
	if one.last {
		words = "_… (Stopped after %d characters.)_"
	}
	sign := d.render(fmt.Sprintf(words, one.length))[0]
	part.Text, part.Plain = start.Text+"\n\n"+sign.Text, start.Plain+"\n\n"+sign.Plain
	return part
}

// mayGrow tells whether a draft may be begun as a message that grows.
func (d *drafts) mayGrow(work context.Context) bool { return d.MayGrow == nil || d.MayGrow(work) }

// stillOurs asks, before an edit, whether the draft is still this process's to show.
// After a pause another may have replaced it with the answer, which would be
// gone with the edit.
func (d *drafts) stillOurs(ctx, work context.Context, one draftCall) bool {
	asked := time.Now()
	known, err := d.Book.Lookup(work, one.turn+draftSuffix)
	switch {
	case errors.Is(err, channels.ErrNoSend): // it was erased
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		return false
	case err == nil && known.Parts[0].State != channels.Drafted:
		d.update(one.draft, func(x *draft) { x.platformID, x.state = "", draftClosed })
		return false
	case err != nil || paused(ctx, asked):
		d.update(one.draft, func(x *draft) { x.dirty, x.nextCall = true, time.Now().Add(storageWait) })
		return false
	case known.Parts[0].PlatformID == "": // it could not be noted when it was posted
		d.mark(work, one.draft, channels.SentPart{State: channels.Drafted, PlatformID: one.id})
	}
	return true
}

// paused says that others may have had the channel since then.
func paused(held context.Context, since time.Time) bool {
	return held.Err() != nil || time.Since(since) > channels.LeasePatience
}

// channelLeaseCheck is the right to show drafts, which goes with the channel. In a process
// that stood still the alarm that ends it rings a moment late.
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

// postDraft posts a draft. It is in the book before, so that nobody posts it again.
func (d *drafts) postDraft(ctx, work context.Context, one draftCall, to bus.Address, part channels.Part) {
	asked := time.Now()
	if _, err := d.Book.Lookup(work, bus.ReplyID(one.turn)); err == nil {
		d.update(one.draft, func(x *draft) { x.state = draftClosed }) // the end of the turn was missed
		return
	}
	// What an earlier holder of the channel has left for later comes first: the
	// answer that replaces the draft would stand above it.
	if has, err := d.Bus.HasMail(work, bus.OutboundTopic(d.Name), one.key); err != nil || has {
		d.update(one.draft, func(x *draft) { x.dirty, x.nextCall = true, time.Now().Add(d.limits.DraftEvery) })
		return
	}
	known, fresh, err := d.Book.Begin(work, channels.Send{ID: one.turn + draftSuffix, To: one.to, Parts: []channels.SentPart{{State: channels.Drafted}}})
	if err != nil {
		d.Log.Warn("draft is not in the book and not posted", slog.String("channel", d.Name), slog.String("turn", one.turn), slog.Any("error", err))
		d.update(one.draft, func(x *draft) { x.dirty, x.nextCall = true, time.Now().Add(storageWait) })
		return
	}
	if !fresh {
		d.Log.Debug("turn has had its draft", slog.String("channel", d.Name), slog.String("turn", one.turn), slog.String("state", known.State()))
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		if p := known.Parts[0]; p.State == channels.Drafted && p.PlatformID == "" {
			d.resolveUnknown(work, one.draft) // we did, and were not told
		}
		return
	}
	d.point("draft:begun")
	if paused(ctx, asked) {
		d.mark(work, one.draft, channels.SentPart{State: channels.Failed, Code: "not_sent"})
		d.update(one.draft, func(x *draft) { x.state = draftClosed })
		return
	}
	id, err := d.Channel.Send(channels.WithLeaseCheck(work, channelLeaseCheck(ctx, asked)), to, part)
	d.point("draft:sent")
	if paused(ctx, asked) && d.settledByAnother(work, one) {
		return
	}
	if err == nil {
		d.mark(work, one.draft, channels.SentPart{State: channels.Drafted, PlatformID: id})
		d.point("draft:marked")
		d.update(one.draft, func(x *draft) { x.platformID, x.shown = id, part.Text })
		return
	}
	fault := channels.FaultOf(err)
	d.noteRefusal(one, fault)
	if fault.Fault == channels.Unknown {
		d.resolveUnknown(work, one.draft)
		return
	}
	d.mark(work, one.draft, channels.SentPart{State: channels.Failed, Code: cmp.Or(fault.Code, string(fault.Fault))})
	d.update(one.draft, func(x *draft) { x.state = draftClosed })
}

// settledByAnother says that another process has found out meanwhile what became of a
// draft. What it has noted stands.
func (d *drafts) settledByAnother(work context.Context, one draftCall) bool {
	known, err := d.Book.Lookup(context.WithoutCancel(work), one.turn+draftSuffix)
	if err != nil || known.Parts[0].State == channels.Drafted && known.Parts[0].PlatformID == "" {
		return false
	}
	d.update(one.draft, func(x *draft) { x.state = draftClosed })
	return true
}

// resolveUnknown finds out whether a draft was posted. Where nobody can tell, it is
// left at that: it is not posted again, and the answer does not replace it.
func (d *drafts) resolveUnknown(work context.Context, x *draft) {
	part := channels.SentPart{State: channels.Unsure, Interrupted: 1}
	if r, can := channels.AsReconciler(d.Channel); can {
		to := x.to
		to.Chat = d.moved.current(to.Chat)
		// The time of the call that was cut off may be up.
		asking, cancel := context.WithTimeout(context.WithoutCancel(work), draftTimeout)
		wanted := channels.Part{Key: channels.PartKey(x.turn+draftSuffix, 0)}
		if d.limits.Streams { // whatever it is set to now
			wanted.Growing = new(channels.Growth)
		}
		id, sent, err := findSent(asking, r, to, wanted)
		cancel()
		switch {
		case err == nil && sent && !d.isAnothers(x, id):
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

// isAnothers tells whether a message shows what another turn says: those that grow have
// no key.
func (d *drafts) isAnothers(x *draft, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, other := range d.turns {
		if other != x && other.platformID == id {
			return true
		}
	}
	return false
}

// findSent asks the platform for a part, again where it puts that off.
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

// noteEdit deals with what came of an edit.
func (d *drafts) noteEdit(work context.Context, one draftCall, part channels.Part, err error) {
	d.point("draft:edited")
	if err == nil {
		d.update(one.draft, func(x *draft) { x.shown = part.Text })
	} else {
		d.noteRefusal(one, channels.FaultOf(err))
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

// noteRefusal keeps a chat quiet for as long as the platform asks, and a draft that
// cannot be edited as it is.
func (d *drafts) noteRefusal(one draftCall, fault *channels.SendError) {
	d.Log.Info("draft was not shown", slog.String("channel", d.Name), slog.String("turn", one.turn),
		slog.String("fault", string(fault.Fault)), slog.String("code", fault.Code))
	d.pace.Limited(d.moved.current(one.to.Chat), fault)
	d.update(one.draft, func(x *draft) {
		if fault.Fault == channels.Rejected || fault.Fault == channels.Stop {
			x.state = draftClosed
			return
		}
		x.dirty, x.nextCall = true, time.Now().Add(max(fault.RetryAfter, d.limits.DraftEvery))
	})
}

// markdown is what a draft is to show, as Markdown; "" is nothing yet.
func (x *draft) markdown() string {
	texts := x.texts()
	switch {
	case x.phase == turnSilent && len(texts) == 0:
		return "Stopped."
	case x.phase == turnSilent:
		texts = append(texts, "_(Stopped.)_")
	case x.toolLine != "":
		texts = append(texts, x.todo.markdown()...)
		texts = append(texts, "· "+x.toolLine)
	case len(texts) > 0:
		texts = append(texts, "…")
	}
	return strings.Join(texts, "\n\n")
}

// brief is a short line about a tool, as Markdown.
func brief(about string) string {
	if utf8.RuneCountInString(about) > draftLine {
		about = string([]rune(about)[:draftLine]) + "…"
	}
	return markup.Verbatim(about)
}

// todoTool is the tool whose progress is the list of what the turn is about to do: a line
// of how far it is, and one for each item.
const todoTool = "todo_write"

// A todoList is what a turn is about to do, as its newest call of todoTool told it, which
// may be in pieces.
type todoList struct{ call, text string }

// heard takes in what a tool does, and gives what of it goes into the line about that.
func (l *todoList) heard(e bus.Event) string {
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

// markdown is the list, as a paragraph of its own.
func (l *todoList) markdown() []string {
	_, items, any := strings.Cut(l.text, "\n")
	if !any {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(items, "\n") {
		lines = append(lines, "- "+markup.Verbatim(line))
	}
	return []string{strings.Join(lines, "\n")}
}
