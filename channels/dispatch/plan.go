package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/channels/enclosure"
)

// planParts decides into which parts the message is split on this channel, and whether they
// replace or follow an earlier message about the same subject.
//
// The newest text about a subject replaces the one before, so that an alert turns into its
// resolution; where it cannot, it is posted under that one. A text is replaced as a whole
// or not at all, and by one message: a text that has to be split is posted under the
// earlier one too.
func (d *delivery) planParts(ctx context.Context) ([]channels.SentPart, error) {
	text, files := d.out.Text, d.enclosures
	if _, can := channels.AsFileSender(d.Channel); !can {
		for _, f := range files {
			text = strings.TrimSpace(text + "\n\n" + f.NotAttachedNote())
		}
		files = nil
	}
	parts, long := d.shorten(ctx, d.render(text))
	if long {
		files = append(slices.Clip(files), enclosure.TextFile(d.out))
	}
	all := files
	// A file beside a text cannot be replaced by a later text alone. A file that is only
	// named may turn out to be missing, or be refused, and then its text should still
	// arrive.
	if len(files) == 1 && !files[0].IsReference() && (d.out.Subject == "" || text == "") {
		if caption := d.captionPart(text, parts); caption != nil {
			parts, files = []channels.SentPart{*caption}, nil
		}
	}
	parts = append(parts, fileParts(files)...)
	if len(parts) == 0 { // nothing in it would be visible
		return []channels.SentPart{{State: channels.Failed, Code: empty}}, nil
	}
	if d.Subjects != nil && d.out.Subject != "" {
		return d.replaceEarlier(ctx, parts)
	}
	// A draft of the same turn becomes this message, also where a file follows.
	draft, err := d.drafts.draftToReplace(ctx, d.out)
	if err != nil {
		return nil, err
	}
	if draft != "" && len(d.render(text)) > 0 {
		if parts = d.renderEdit(text); long {
			parts = firstParts(parts, d.render(moreNotice))
		}
		parts[0].Edits = draft
		parts = append(parts, fileParts(all)...)
	}
	return parts, nil
}

// PlanReply returns what Book.Begin is to record of a turn's answer that is being published and that
// can be sent at once. Whoever publishes it may record that in the same write: this saves the person
// who asked the wait for a write of its own (see sqlbook.Book.BeginShare). It returns false if the
// answer may have to wait, if more must be looked up to plan it, or if an answer that was cut off
// would not be sent again. PlanReply may be called while Run runs.
func (d *Dispatcher) PlanReply(id string, body []byte) (send channels.Send, ok bool) {
	// Who publishes the answer is not to fail because of a text that cannot be rendered; deliver
	// gives the message up in its own time.
	defer func() {
		if p := recover(); p != nil {
			channels.LogPanic(d.Log, "plan", d.Name, id, p)
			send, ok = channels.Send{}, false
		}
	}()
	r := d.running.Load()
	if r == nil || r.policy.OnUnknown == drop || !channels.Connected(r.Channel) {
		return channels.Send{}, false
	}
	out, err := bus.DecodeOutbound(body)
	if err != nil || !out.IsReply() || !bus.IsClean(out.To.String()) || len(out.Needs) > 0 || !out.Expires.IsZero() ||
		out.Subject != "" || len(enclosure.FilesOf(out)) > 0 || r.retries.waits(out.To.String()) {
		return channels.Send{}, false
	}
	record := recordOf(id, &out)
	record.Parts = r.render(out.Text)
	if len(record.Parts) == 0 || len(record.Parts) > mostMessages || !r.drafts.closeUnposted(out) {
		return channels.Send{}, false
	}
	return record, true
}

// replaceEarlier adapts the parts of a message about a subject so that they replace the earlier
// message about it, or a question's draft, or are posted under it.
func (d *delivery) replaceEarlier(ctx context.Context, parts []channels.SentPart) ([]channels.SentPart, error) {
	earlier, err := d.Subjects.Bound(ctx, d.out.Origin, d.out.Subject, d.out.To)
	if err != nil {
		return nil, fmt.Errorf("look for what was said earlier: %w", err)
	}
	if earlier == "" { // a question replaces its turn's draft, as an answer does
		if earlier, err = d.drafts.draftToReplace(ctx, d.out); err != nil {
			return nil, err
		}
		if d.canReplace(parts) {
			parts[0].Edits = earlier
		}
		return parts, nil
	}
	for i := range parts {
		parts[i].Under = earlier
	}
	if d.canReplace(parts) {
		parts[0].Edits, parts[0].Under = earlier, ""
	}
	return parts, nil
}

// canReplace reports whether these parts may replace an earlier message.
func (d *delivery) canReplace(parts []channels.SentPart) bool {
	_, can := channels.AsEditor(d.Channel)
	return can && !parts[0].File && (len(parts) == 1 || parts[1].File) && d.mayEdit(parts[0])
}

// mayEdit reports whether a part is short enough for an edit. The book has dropped the text
// of a part that was sent; then it is rendered again.
func (d *delivery) mayEdit(p channels.SentPart) bool {
	text := p.Text
	if all := d.render(d.out.Text); text == "" && len(all) > 0 {
		text = all[0].Text
	}
	return d.limits.EditBytes == 0 || len(text) <= d.limits.EditBytes
}

// captionPart returns the file's part with the text beside it; nil if the text is too long for
// that.
func (r *run) captionPart(text string, parts []channels.SentPart) *channels.SentPart {
	switch most := channels.CaptionLength(r.Channel, r.limits.Length); {
	case len(parts) == 0:
		return &channels.SentPart{File: true}
	case len(parts) > 1:
		return nil
	case most != r.limits.Length && len(r.renderer.Render(text, r.limits.Dialect, most)) > 1:
		return nil
	}
	return &channels.SentPart{Text: parts[0].Text, Plain: parts[0].Plain, File: true}
}

// bindSubject records which of the platform's messages shows the subject from now on: the
// first about it, then each that replaced it, but not messages posted under it. Repeating
// the record does no harm.
func (d *delivery) bindSubject(work context.Context) error {
	first := d.record.Parts[0]
	if d.Subjects == nil || d.out.Subject == "" || first.State != channels.Sent || first.PlatformID == "" {
		return nil
	}
	id := first.PlatformID
	// A text that could have replaced the earlier one but is posted under it was refused as
	// an edit: so the earlier one cannot be edited any more.
	if first.Under != "" && !d.canReplace(d.record.Parts) {
		id = first.Under
	}
	err := d.writeToBook(work, d.lease.Lost(), func(ctx context.Context) error {
		return d.Subjects.Bind(ctx, d.out.Origin, d.out.Subject, d.out.To, id)
	})
	if err != nil {
		return d.errFromBook(err)
	}
	d.crashPoint("send:tied")
	return nil
}

// A text that needs more than mostMessages messages is sent as a file; the chat shows the
// first firstShown of those messages, and moreNotice.
const (
	mostMessages = 15
	firstShown   = 2
	moreNotice   = "_(There is more: the whole text is in the file below.)_"
)

// shorten cuts a very long text of a session so that its beginning is shown and the whole can be
// sent as a file, where the channel accepts files; long reports whether it did.
func (d *delivery) shorten(ctx context.Context, parts []channels.SentPart) (shown []channels.SentPart, long bool) {
	_, can := channels.AsFileSender(d.Channel)
	size := int64(len(d.out.Text))
	if len(parts) <= mostMessages || !can || d.out.Session == "" || d.out.Subject != "" || d.out.Whole ||
		size > channels.MostFileBytes(d.Channel, size) || d.MayShorten == nil || !d.MayShorten(ctx) {
		return parts, false
	}
	return firstParts(parts, d.render(moreNotice)), true
}

// firstParts returns the first firstShown parts, followed by more.
func firstParts(parts, more []channels.SentPart) []channels.SentPart {
	return append(slices.Clip(parts[:min(len(parts), firstShown)]), more...)
}

// fileParts returns one part without text for each file.
func fileParts(files []enclosure.Enclosure) []channels.SentPart {
	parts := make([]channels.SentPart, len(files))
	for i := range parts {
		parts[i].File = true
	}
	return parts
}

// enclosureOf returns the file that goes with a part: the first part with a file has the
// message's first file, and so on. It returns false if the part has none.
func (d *delivery) enclosureOf(part int) (enclosure.Enclosure, bool) {
	if !d.record.Parts[part].File {
		return enclosure.Enclosure{}, false
	}
	n := 0
	for _, p := range d.record.Parts[:part] {
		if p.File {
			n++
		}
	}
	switch {
	case n < len(d.enclosures):
		return d.enclosures[n], true
	case n == len(d.enclosures) && d.out.Text != "":
		return enclosure.TextFile(d.out), true
	}
	return enclosure.Enclosure{}, false
}
