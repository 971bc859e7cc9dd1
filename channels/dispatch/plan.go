package dispatch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/enclosure"
)

// planParts says how the message is to be said here: as which parts, and whether they
// replace or follow an earlier message about the same thing.
//
// The newest text about a subject replaces the one before it, so that an alert
// turns into its resolution; where that cannot be, it goes under it. A text is
// replaced as a whole or not at all, and by one message: what has to be split is
// posted under the earlier one too.
func (d *delivery) planParts(ctx context.Context) ([]channels.SentPart, error) {
	text, files := d.out.Text, d.enclosures
	if _, can := channels.AsFileSender(d.Channel); !can {
		for _, f := range files {
			text = strings.TrimSpace(text + "\n\n" + f.NotAttached())
		}
		files = nil
	}
	parts, long := d.shorten(ctx, d.render(text))
	if long {
		files = append(slices.Clip(files), enclosure.OfText(d.out))
	}
	all := files
	// A file beside a text could not be replaced by a later text alone. One that is only
	// named may turn out to be missing, or be refused, and its text is to arrive then.
	if len(files) == 1 && !files[0].Named() && (d.out.Subject == "" || text == "") {
		if caption := d.caption(text, parts); caption != nil {
			parts, files = []channels.SentPart{*caption}, nil
		}
	}
	parts = append(parts, fileParts(files)...)
	if len(parts) == 0 { // there is nothing to see in it
		return []channels.SentPart{{State: channels.Failed, Code: empty}}, nil
	}
	if d.Subjects == nil || d.out.Subject == "" {
		// A draft of the same turn turns into what is said, beside a file too.
		if draft := d.drafts.takeFor(ctx, d.out); draft != "" && len(d.render(text)) > 0 {
			if parts = d.renderEdit(text); long {
				parts = beginning(parts, d.render(goesOn))
			}
			parts[0].Edits = draft
			parts = append(parts, fileParts(all)...)
		}
		return parts, nil
	}
	earlier, err := d.Subjects.Bound(ctx, d.out.Origin, d.out.Subject, d.out.To)
	if err != nil {
		return nil, fmt.Errorf("look for what was said earlier: %w", err)
	}
	if earlier == "" { // a question turns its turn's draft into itself, as an answer does
		earlier = d.drafts.takeFor(ctx, d.out)
		if d.replaces(parts) {
			parts[0].Edits = earlier
		}
		return parts, nil
	}
	for i := range parts {
		parts[i].Under = earlier
	}
	if d.replaces(parts) {
		parts[0].Edits, parts[0].Under = earlier, ""
	}
	return parts, nil
}

// replaces says that these parts are of a message that may take another's place.
func (d *delivery) replaces(parts []channels.SentPart) bool {
	_, can := channels.AsEditor(d.Channel)
	return can && !parts[0].File && (len(parts) == 1 || parts[1].File) && d.mayEdit(parts[0])
}

// mayEdit tells whether a part is short enough to take the place of another. The book
// has dropped the text of a part that was sent; it is rendered again then.
func (d *delivery) mayEdit(p channels.SentPart) bool {
	text := p.Text
	if all := d.render(d.out.Text); text == "" && len(all) > 0 {
		text = all[0].Text
	}
	return d.limits.EditBytes == 0 || len(text) <= d.limits.EditBytes
}

// caption is the file's part with the text beside it; nil where that is too long.
func (r *run) caption(text string, parts []channels.SentPart) *channels.SentPart {
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

// bindSubject notes which of the platform's messages stands for the subject from now on:
// the first about it, then what replaced it; what went under it does not. The
// note may be made again and says the same.
func (d *delivery) bindSubject(work context.Context) error {
	first := d.record.Parts[0]
	if d.Subjects == nil || d.out.Subject == "" || first.State != channels.Sent || first.PlatformID == "" {
		return nil
	}
	id := first.PlatformID
	// A text that could have replaced the earlier one and stands under it was
	// refused as an edit: the earlier one cannot be edited any more.
	if first.Under != "" && !d.replaces(d.record.Parts) {
		id = first.Under
	}
	err := d.writeToBook(work, d.lease.Lost(), func(ctx context.Context) error {
		return d.Subjects.Bind(ctx, d.out.Origin, d.out.Subject, d.out.To, id)
	})
	if err != nil {
		return d.bookFailed(err)
	}
	d.point("send:tied")
	return nil
}

// What is too long for a chat: a text in more messages than mostMessages. It goes as a file
// then, and of its messages the first that many are shown, and that there is more.
const (
	mostMessages = 15
	firstShown   = 2
	goesOn       = "_(There is more: the whole text is in the file below.)_"
)

// shorten shortens what a session says at great length, where the channel takes files; long
// says that it did.
func (d *delivery) shorten(ctx context.Context, parts []channels.SentPart) (shown []channels.SentPart, long bool) {
	_, can := channels.AsFileSender(d.Channel)
	size := int64(len(d.out.Text))
	if len(parts) <= mostMessages || !can || d.out.Session == "" || d.out.Subject != "" || d.out.Whole ||
		size > channels.MostFileBytes(d.Channel, size) || d.MayShorten == nil || !d.MayShorten(ctx) {
		return parts, false
	}
	return beginning(parts, d.render(goesOn)), true
}

func beginning(parts, more []channels.SentPart) []channels.SentPart {
	return append(slices.Clip(parts[:min(len(parts), firstShown)]), more...)
}

// fileParts are the parts of files that go without a text.
func fileParts(files []enclosure.Enclosure) []channels.SentPart {
	parts := make([]channels.SentPart, len(files))
	for i := range parts {
		parts[i].File = true
	}
	return parts
}

// enclosureOf is the file that goes with a part: the first that has one has the first
// file. False where there is none.
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
		return enclosure.OfText(d.out), true
	}
	return enclosure.Enclosure{}, false
}
