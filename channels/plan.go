package channels

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/bus"
	"parley/channels/markup"
)

// plan says how the message is to be said here: as which parts, and whether they
// replace or follow an earlier message about the same thing.
//
// The newest text about a subject replaces the one before it, so that an alert
// turns into its resolution; where that cannot be, it goes under it. A text is
// replaced as a whole or not at all, and by one message: what has to be split is
// posted under the earlier one too.
func (l *letter) plan(ctx context.Context) ([]SentPart, error) {
	text, file := l.out.Text, l.out.File
	_, takesFiles := fileSender(l.Channel)
	if file != nil && !takesFiles {
		text = strings.TrimSpace(text + "\n\n" + notAttached(file))
		file = nil
	}
	parts := l.render(text)
	if file != nil {
		// A file beside a text could not be replaced by a later text alone.
		if caption := l.caption(text, parts); caption != nil && (l.out.Subject == "" || text == "") {
			parts = []SentPart{*caption}
		} else {
			parts = append(parts, SentPart{File: true})
		}
	}
	if len(parts) == 0 { // there is nothing to see in it
		return []SentPart{{State: Failed, Code: empty}}, nil
	}
	if l.Subjects == nil || l.out.Subject == "" {
		// A draft of the same turn turns into what is said, beside a file too.
		if draft := l.drafts.of(ctx, l.out); draft != "" && len(l.render(text)) > 0 {
			parts = l.renderEdit(text)
			parts[0].Edits = draft
			if file != nil {
				parts = append(parts, SentPart{File: true})
			}
		}
		return parts, nil
	}
	earlier, err := l.Subjects.Bound(ctx, l.out.Origin, l.out.Subject, l.out.To)
	if err != nil {
		return nil, fmt.Errorf("look for what was said earlier: %w", err)
	}
	for i := range parts {
		parts[i].Under = earlier
	}
	if l.replaces(parts) {
		parts[0].Edits, parts[0].Under = earlier, ""
	}
	return parts, nil
}

// replaces says that these parts are of a message that may take another's place.
func (l *letter) replaces(parts []SentPart) bool {
	_, can := editor(l.Channel)
	return can && !parts[0].File && (len(parts) == 1 || parts[1].File) && l.mayEdit(parts[0])
}

// mayEdit says that a part is short enough to take the place of another. Of one
// that is through the book has the text no more.
func (l *letter) mayEdit(p SentPart) bool {
	text := p.Text
	if all := l.render(l.out.Text); text == "" && len(all) > 0 {
		text = all[0].Text
	}
	return l.limits.EditBytes == 0 || len(text) <= l.limits.EditBytes
}

func (p *post) render(text string) []SentPart {
	return asParts(p.renderer.Render(text, p.limits.Dialect, p.limits.Length))
}

// renderEdit is render where the first part takes the place of a text.
func (p *post) renderEdit(text string) []SentPart {
	return asParts(p.renderer.RenderFirst(text, p.limits.Dialect, p.limits.EditBytes, p.limits.Length))
}

func asParts(pieces []markup.Piece) []SentPart {
	parts := make([]SentPart, len(pieces))
	for i, piece := range pieces {
		parts[i] = SentPart{Text: piece.Text, Plain: piece.Plain}
	}
	return parts
}

// caption is the file's part with the text beside it; nil where that is too long.
func (p *post) caption(text string, parts []SentPart) *SentPart {
	switch most := captionLength(p.Channel, p.limits.Length); {
	case len(parts) == 0:
		return &SentPart{File: true}
	case len(parts) > 1:
		return nil
	case most != p.limits.Length && len(p.renderer.Render(text, p.limits.Dialect, most)) > 1:
		return nil
	}
	return &SentPart{Text: parts[0].Text, Plain: parts[0].Plain, File: true}
}

// tie notes which of the platform's messages stands for the subject from now on:
// the first about it, then what replaced it; what went under it does not. The
// note may be made again and says the same.
func (l *letter) tie(work context.Context) (verdict, bool) {
	first := l.send.Parts[0]
	if l.Subjects == nil || l.out.Subject == "" || first.State != Sent || first.PlatformID == "" {
		return verdict{}, true
	}
	id := first.PlatformID
	// A text that could have replaced the earlier one and stands under it was
	// refused as an edit: the earlier one cannot be edited any more.
	if first.Under != "" && !l.replaces(l.send.Parts) {
		id = first.Under
	}
	err := l.insist(work, l.lease.Lost(), func(ctx context.Context) error {
		return l.Subjects.Bind(ctx, l.out.Origin, l.out.Subject, l.out.To, id)
	})
	if err != nil {
		return l.bookFailed(err), false
	}
	l.point("send:tied")
	return verdict{}, true
}

// notAttached stands in for a file where none can be sent.
func notAttached(f *bus.File) string {
	return fmt.Sprintf("(The file %s of %s could not be attached here.)", verbatim(f.Name), size(len(f.Data)))
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

// verbatim is Markdown that shows a name and does nothing else.
func verbatim(name string) string {
	shown := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '`' || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name))
	if shown == "" {
		return "without a name"
	}
	return "`" + shown + "`"
}

func size(bytes int) string {
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
