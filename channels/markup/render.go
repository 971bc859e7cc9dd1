package markup

import (
	"cmp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"parley/channels/markup/document"
)

const (
	// minLimit is the smallest limit that Render obeys: a smaller one leaves no room for the marks around a
	// single word.
	minLimit = 64
	// maxParsed is the maximum number of bytes that are parsed at once: for some Markdown, the time grows faster
	// than the length.
	maxParsed = 128 << 10
)

// Images returns the destinations of the images in a Markdown text, as they are written there.
func Images(md string) []string { return document.NewParser().Images(document.Clean(md)) }

// Render renders Markdown in a dialect, in pieces of at most limit units each; 0 means one piece, and less than 64
// counts as 64. Each piece is well formed on its own, and none is blank. Cuts are made between blocks if possible,
// or else between sentences or words, and never inside a character as people see it. A code block that is cut is
// closed and opened again; a table repeats its header. Text that is not Markdown stays as it is.
func (r *Renderer) Render(md string, d Dialect, limit int) []Piece {
	return r.renderWithin(md, d, limit, 0)
}

// Render does what Renderer.Render does, for callers that rarely render.
func Render(md string, d Dialect, limit int) []Piece { return New().Render(md, d, limit) }

// RenderFirst does what Render does, with an additional limit for the first piece: its text has at most first bytes
// in UTF-8; less than 64 counts as 64. Some platforms count bytes in a text that replaces another one.
func (r *Renderer) RenderFirst(md string, d Dialect, first, limit int) []Piece {
	for most := first; ; most = most * 9 / 10 { // the marks between blocks may take up more than estimated
		pieces := r.renderWithin(md, d, limit, most)
		if len(pieces) == 0 || len(pieces[0].Text) <= first || most <= minLimit {
			return pieces
		}
	}
}

// renderWithin does what Render does, with an additional limit for the first piece: if first is not 0, its text has
// at most first bytes.
func (r *Renderer) renderWithin(md string, d Dialect, limit, first int) []Piece {
	pieces := r.renderIn(md, dialectOf(d), limit, first)
	if d == Markdown && limit == 0 && len(pieces) > 0 {
		return []Piece{{Text: document.Clean(md), Plain: joinPlain(pieces)}}
	}
	return pieces
}

// renderIn does what renderWithin does, given a dialect instead of its name.
func (r *Renderer) renderIn(md string, d dialect, limit, first int) []Piece {
	md = document.Clean(md)
	if hasNothingVisible(document.Unescape(md)) {
		return nil
	}
	if limit > 0 {
		limit = max(limit, minLimit)
	}
	if isPlain(md) && canStayUnchanged(d, md, limit, first) {
		md = strings.TrimSpace(md)
		return []Piece{{Text: md, Plain: md}}
	}
	a := assembly{dialect: d}
	if limit > 0 {
		a.laterLimit = d.largest(limit)
	}
	a.limit = a.laterLimit
	if first > 0 {
		a.limit = d.largest(max(min(first, cmp.Or(limit, first)), minLimit))
		a.limit.bytes = max(first, minLimit)
	}
	for rest := md; rest != ""; {
		var part string
		part, rest = splitForParsing(rest)
		for _, b := range r.parser.Parse(part) {
			a.add(b)
		}
	}
	a.flush(false)
	if len(a.pieces) == 0 { // nothing but marks, such as a lone "#"
		a.add(document.Block{Kind: document.Paragraph, Spans: []document.Span{{Text: strings.TrimSpace(md)}}})
		a.flush(false)
	}
	return a.pieces
}

// dialectOf returns the dialect with a name, or plain text if there is none with that name.
func dialectOf(d Dialect) dialect {
	switch d {
	case TelegramHTML:
		return telegramDialect{}
	case SlackMrkdwn:
		return slackDialect{}
	case DiscordMarkdown:
		return markdownDialect{flavorDiscord}
	case Markdown:
		return markdownDialect{flavorCommonMark}
	case HTML:
		return htmlDialect{}
	case Terminal:
		return terminalDialect{}
	}
	return plainDialect{}
}

// canStayUnchanged reports whether a text without any Markdown can be used unchanged as a single piece.
func canStayUnchanged(d dialect, text string, limit, first int) bool {
	switch d := d.(type) {
	case htmlDialect:
		return false
	case terminalDialect:
		if d.screen.Width > 0 {
			return false
		}
	}
	return (limit == 0 || len(text) <= limit) && (first == 0 || len(text) <= first)
}

// joinPlain returns the plain texts of pieces as one text.
func joinPlain(pieces []Piece) string {
	all := make([]string, len(pieces))
	for i, p := range pieces {
		all[i] = p.Plain
	}
	return strings.Join(all, "\n\n")
}

// isPlain reports whether a text certainly contains neither Markdown nor a character that a dialect escapes. Most
// short replies are like that, and need no parsing.
func isPlain(md string) bool {
	lineStart := true
	for i := range len(md) {
		c := md[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= utf8.RuneSelf, c == '\'', c == '"', c == '?', c == ',':
		case c == '\n' && lineStart && i > 1 && md[i-2] != '\n': // an empty line
			continue
		case lineStart:
			return false
		case c == '\n':
			lineStart = true
			continue
		case c >= '0' && c <= '9', c == '(', c == ')', c == ';', c == '-', c == '!':
		case c == ' ':
			if i+1 < len(md) && (md[i+1] == ' ' || md[i+1] == '\n') {
				return false
			}
		case c == '.', c == ':':
			// This excludes "www.x" and "scheme://x".
			if i+1 < len(md) && md[i+1] != ' ' && md[i+1] != '\n' {
				return false
			}
		default:
			return false
		}
		lineStart = false
	}
	return true
}

// splitForParsing splits off at most maxParsed bytes, which are parsed at once. It splits at an empty line if
// possible, otherwise at the end of a line or at a blank.
func splitForParsing(md string) (part, rest string) {
	if len(md) <= maxParsed {
		return md, ""
	}
	window := md[:maxParsed]
	for _, mark := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(window, mark); i > maxParsed/2 {
			return md[:i], md[i:]
		}
	}
	i := maxParsed
	for i > maxParsed-utf8.UTFMax && !utf8.RuneStart(md[i]) {
		i--
	}
	return md[:i], md[i:]
}

// utf16Length returns the length of s in UTF-16 units.
func utf16Length(s string) (n int) {
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
