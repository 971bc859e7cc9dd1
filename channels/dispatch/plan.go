package dispatch

import (
	"context"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/drafts"
	"parley/channels/files"
)

// A plan decides how messages are split into parts.
type plan struct {
	rendering  *rendering
	subjects   *subjects
	drafts     *drafts.Drafts
	mayShorten func(ctx context.Context) bool // nil means no; see Dispatcher.MayShorten
}

// parts splits the message into parts for this channel, and decides whether they replace or follow an earlier
// message about the same subject. If nothing of it can be sent, it returns one failed part that says why.
func (p *plan) parts(ctx context.Context, d *delivery) ([]channels.SentPart, error) {
	text, attached := d.out.Text, d.files
	if _, can := channels.AsFileSender(p.rendering.channel); !can {
		if d.out.Ahead { // the file is what it was sent for
			return []channels.SentPart{{State: channels.Failed, Code: codeCannotSendFiles, File: true}}, nil
		}
		for _, f := range attached {
			text = strings.TrimSpace(text + "\n\n" + f.NotAttachedNote())
		}
		attached = nil
	}
	parts, long := p.shorten(ctx, d, p.rendering.render(text))
	if long {
		attached = append(slices.Clip(attached), files.TextFile(d.out))
	}
	all := attached
	// A message that contains a text and a file can't be replaced later by a text alone. A file that is only named
	// may turn out to be missing, or be refused, and then the text should still arrive.
	if len(attached) == 1 && !attached[0].IsReference() && (d.out.Subject == "" || text == "") {
		if caption := p.rendering.captionPart(text, parts); caption != nil {
			parts, attached = []channels.SentPart{*caption}, nil
		}
	}
	parts = append(parts, fileParts(attached)...)
	if len(parts) == 0 { // nothing in the message would be visible
		return []channels.SentPart{{State: channels.Failed, Code: codeEmpty}}, nil
	}
	if p.subjects.shown != nil && d.out.Subject != "" {
		return p.subjects.replaceEarlier(ctx, d, parts)
	}
	// A draft of the same turn becomes this message, even if a file follows.
	draft, err := p.drafts.ToReplace(ctx, d.out)
	if err != nil {
		return nil, err
	}
	if draft != "" && len(p.rendering.render(text)) > 0 {
		if parts = p.rendering.renderEdit(text); long {
			parts = firstParts(parts, p.rendering.render(textMore))
		}
		parts[0].Edits = draft
		parts = append(parts, fileParts(all)...)
	}
	return parts, nil
}

// A text that needs more than maxMessages messages is sent as a file; the chat shows the first partsShownBeforeFile of those
// messages, followed by textMore.
const (
	maxMessages          = 15
	partsShownBeforeFile = 2
)

// shorten cuts a very long text from a session so that only its beginning is shown and the whole text can be sent
// as a file, on channels that accept files; long reports whether it did.
func (p *plan) shorten(ctx context.Context, d *delivery, parts []channels.SentPart) (shown []channels.SentPart, long bool) {
	_, can := channels.AsFileSender(p.rendering.channel)
	size := int64(len(d.out.Text))
	if len(parts) <= maxMessages || !can || d.out.Session == "" || d.out.Subject != "" || d.out.Whole ||
		size > channels.MaxFileBytes(p.rendering.channel, size) || p.mayShorten == nil || !p.mayShorten(ctx) {
		return parts, false
	}
	return firstParts(parts, p.rendering.render(textMore)), true
}

// firstParts returns the first partsShownBeforeFile of the parts, followed by more.
func firstParts(parts, more []channels.SentPart) []channels.SentPart {
	return append(slices.Clip(parts[:min(len(parts), partsShownBeforeFile)]), more...)
}

// fileParts returns one part without text for each file.
func fileParts(attached []files.File) []channels.SentPart {
	parts := make([]channels.SentPart, len(attached))
	for i := range parts {
		parts[i].File = true
	}
	return parts
}
