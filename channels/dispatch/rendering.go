package dispatch

import (
	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// A rendering turns texts into the form that the platform shows.
type rendering struct {
	channel  channels.Channel
	limits   channels.Limits
	renderer *markup.Renderer
}

// render renders a text for the platform, split into parts.
func (r *rendering) render(text string) []channels.SentPart {
	return asParts(r.renderer.Render(text, r.limits.Dialect, r.limits.Length))
}

// renderEdit does what render does, for a text whose first part replaces an earlier message and so must fit into an
// edit.
func (r *rendering) renderEdit(text string) []channels.SentPart {
	return asParts(r.renderer.RenderFirst(text, r.limits.Dialect, r.limits.EditBytes, r.limits.Length))
}

func asParts(pieces []markup.Piece) []channels.SentPart {
	parts := make([]channels.SentPart, len(pieces))
	for i, piece := range pieces {
		parts[i] = channels.SentPart{Text: piece.Text, Plain: piece.Plain}
	}
	return parts
}

// captionPart returns a part that contains the file and the whole text; nil if the text is too long for that.
func (r *rendering) captionPart(text string, parts []channels.SentPart) *channels.SentPart {
	switch most := channels.CaptionLength(r.channel, r.limits.Length); {
	case len(parts) == 0:
		return &channels.SentPart{File: true}
	case len(parts) > 1:
		return nil
	case most != r.limits.Length && len(r.renderer.Render(text, r.limits.Dialect, most)) > 1:
		return nil
	}
	return &channels.SentPart{Text: parts[0].Text, Plain: parts[0].Plain, File: true}
}

// canReplace reports whether a message with these parts may replace an earlier message: the channel can edit, and the
// message has one text, which fits into an edit.
func (r *rendering) canReplace(d *delivery, parts []channels.SentPart) bool {
	_, can := channels.AsEditor(r.channel)
	return can && !parts[0].File && (len(parts) == 1 || parts[1].File) && r.mayEdit(d, parts[0])
}

// mayEdit reports whether a part is short enough for an edit. The book no longer has the text of a part that was
// sent; in that case, mayEdit renders the text again.
func (r *rendering) mayEdit(d *delivery, p channels.SentPart) bool {
	text := p.Text
	if all := r.render(d.out.Text); text == "" && len(all) > 0 {
		text = all[0].Text
	}
	return r.limits.EditBytes == 0 || len(text) <= r.limits.EditBytes
}

// platformPart returns part i in the form in which the channel takes it.
func (r *rendering) platformPart(d *delivery, i int) channels.Part {
	p := d.record.Parts[i]
	part := channels.Part{Key: channels.PartKey(d.record.ID, i), Session: d.out.Session, Text: p.Text, Plain: p.Plain, Under: p.Under, Markdown: r.markdownOf(d, p)}
	if i == 0 {
		part.ReplyTo = d.out.ReplyTo
	}
	if i == len(d.record.Parts)-1 {
		part.Buttons = r.buttons(d)
	}
	if f, ok := d.fileOf(i); ok {
		part.File = f.Name
	}
	return part
}

// markdownOf returns a part's text as Markdown if the channel shows that better than the rendered text, and
// otherwise "". The book does not store the Markdown, so the message is rendered again; the Markdown belongs to the
// part if both have the same rendered text.
func (r *rendering) markdownOf(d *delivery, p channels.SentPart) string {
	if !r.limits.Markdown || p.File {
		return ""
	}
	if d.markdown == nil {
		d.markdown = map[string]string{}
		pieces := r.renderer.Render(d.out.Text, r.limits.Dialect, r.limits.Length)
		if p.Edits != "" {
			pieces = append(pieces, r.renderer.RenderFirst(d.out.Text, r.limits.Dialect, r.limits.EditBytes, r.limits.Length)...)
		}
		for _, piece := range pieces {
			d.markdown[piece.Text] = piece.Markdown
		}
	}
	return d.markdown[p.Text]
}

// buttons returns the buttons to show with the message's last part; none if that is a file. A message about a subject will be replaced by a
// later one. So it gets buttons only if that edit can remove them again, that is, if the message is a single text
// that may be edited.
func (r *rendering) buttons(d *delivery) []bus.Button {
	if len(d.out.Buttons) == 0 || d.record.Parts[len(d.record.Parts)-1].File {
		return nil
	}
	if d.out.Subject != "" && !r.canReplace(d, d.record.Parts) {
		return nil
	}
	return channels.ShownButtons(r.channel, d.out.Buttons)
}
