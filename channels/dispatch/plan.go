package dispatch

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// planParts says how the message is to be said here: as which parts, and whether they
// replace or follow an earlier message about the same thing.
//
// The newest text about a subject replaces the one before it, so that an alert
// turns into its resolution; where that cannot be, it goes under it. A text is
// replaced as a whole or not at all, and by one message: what has to be split is
// posted under the earlier one too.
func (d *delivery) planParts(ctx context.Context) ([]channels.SentPart, error) {
	text, file := d.out.Text, d.out.File
	_, takesFiles := channels.AsFileSender(d.Channel)
	if file != nil && !takesFiles {
		text = strings.TrimSpace(text + "\n\n" + notAttached(file))
		file = nil
	}
	parts := d.render(text)
	if file != nil {
		// A file beside a text could not be replaced by a later text alone.
		if caption := d.caption(text, parts); caption != nil && (d.out.Subject == "" || text == "") {
			parts = []channels.SentPart{*caption}
		} else {
			parts = append(parts, channels.SentPart{File: true})
		}
	}
	if len(parts) == 0 { // there is nothing to see in it
		return []channels.SentPart{{State: channels.Failed, Code: empty}}, nil
	}
	if d.Subjects == nil || d.out.Subject == "" {
		// A draft of the same turn turns into what is said, beside a file too.
		if draft := d.drafts.takeFor(ctx, d.out); draft != "" && len(d.render(text)) > 0 {
			parts = d.renderEdit(text)
			parts[0].Edits = draft
			if file != nil {
				parts = append(parts, channels.SentPart{File: true})
			}
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

// notAttached stands in for a file where none can be sent.
func notAttached(f *bus.File) string {
	return fmt.Sprintf("(The file %s of %s could not be attached here.)", markup.Verbatim(f.Name), formatSize(len(f.Data)))
}

// longestFileName is what file systems take, in bytes.
const longestFileName = 255

// fileName is a file's name as platforms are told of it: nothing in it ends a
// header, names a folder or changes the direction of writing.
func fileName(name string) string {
	var kept strings.Builder
	for _, r := range name {
		if !bus.IsClean(string(r)) || strings.ContainsRune(`/\"`, r) {
			r = '_'
		}
		if kept.Len()+utf8.RuneLen(r) > longestFileName {
			break
		}
		kept.WriteRune(r)
	}
	if name := kept.String(); strings.Trim(name, ". ") != "" {
		return name
	}
	return "file"
}

func formatSize(bytes int) string {
	switch {
	case bytes == 1:
		return "1 byte"
	case bytes < 1000:
		return fmt.Sprintf("%d bytes", bytes)
	case bytes < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}
