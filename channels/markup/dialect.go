package markup

import (
	"slices"
	"strings"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// A dialect writes blocks for one platform.
type dialect interface {
	// block writes a whole block, well formed by itself.
	block(b document.Block) string
	// size is what a text takes up.
	size(text string) size
	// most is what one message takes whose length is bounded.
	most(limit int) size
	// longestLink is how long the target of a link may be, in bytes; longer ones
	// become text.
	longestLink(limit int) int
	// join puts written blocks together.
	join(to *strings.Builder, frags []frag)
	// harmless takes from a text without markup what would act all the same.
	harmless(plain string) string
}

func dialectOf(d Dialect) dialect {
	switch d {
	case TelegramHTML:
		return telegram{}
	case SlackMrkdwn:
		return slack{}
	case DiscordMarkdown:
		return marks{neutral: true}
	case Markdown:
		return marks{}
	case Terminal:
		return terminal{}
	}
	return plainDialect{}
}

// A syntax is how a dialect writes what is within a block.
type syntax interface {
	// shown is which of bold, italic and strike a span is to have.
	shown(s document.Span) document.Style
	// open and close write a mark: one style, or a link. Next is what comes
	// behind it, 0 at the end.
	open(b *strings.Builder, m mark)
	close(b *strings.Builder, m mark, next rune)
	// text writes a span's text, with code's marks if it is code; lineStart
	// says that nothing but a marker is before it in its line.
	text(b *strings.Builder, s document.Span, lineStart bool)
	// bare writes a link that is its own text.
	bare(b *strings.Builder, url string)
	// linksInside says that a link's text can have no marks within.
	linksInside() bool
}

type mark struct {
	style document.Style
	url   string
}

func (m mark) on(s document.Span, shown document.Style) bool {
	if m.url != "" {
		return s.URL == m.url && !s.IsBare()
	}
	return shown&m.style != 0
}

// lookAhead bounds how far is looked for where a mark ends.
const lookAhead = 32

// writeInline writes spans so that marks are nested: where several begin, the
// one that lasts longest is outside.
func writeInline(b *strings.Builder, x syntax, spans []document.Span) {
	var active []mark
	lineStart := true
	for i, s := range spans {
		shown := x.shown(s)
		next, _ := utf8.DecodeRuneInString(s.Text)
		keep := 0
		for keep < len(active) && active[keep].on(s, shown) {
			keep++
		}
		for len(active) > keep {
			x.close(b, active[len(active)-1], next)
			active = active[:len(active)-1]
		}
		for _, m := range begins(x, spans[i:], active) {
			x.open(b, m)
			active = append(active, m)
		}
		if s.IsBare() {
			x.bare(b, s.Text)
		} else {
			x.text(b, s, lineStart)
		}
		if nl := strings.LastIndexByte(s.Text, '\n'); s.Style != document.Marker && strings.TrimLeft(s.Text[nl+1:], " ") != "" {
			lineStart = false
		} else if nl >= 0 {
			lineStart = true
		}
	}
	for len(active) > 0 {
		x.close(b, active[len(active)-1], 0)
		active = active[:len(active)-1]
	}
}

// begins are the marks that the first span has beside the active, outermost first.
func begins(x syntax, spans []document.Span, active []mark) []mark {
	s := spans[0]
	shown := x.shown(s)
	if shown == 0 && (s.URL == "" || s.IsBare()) {
		return nil
	}
	var ms []mark
	var lasts []int
	for _, m := range []mark{{url: s.URL}, {style: document.Bold}, {style: document.Italic}, {style: document.Strike}} {
		if m == (mark{}) || !m.on(s, shown) || has(active, m) {
			continue
		}
		n := 1
		for n < len(spans) && n < lookAhead && m.on(spans[n], x.shown(spans[n])) {
			n++
		}
		if m.url != "" && x.linksInside() {
			n = 0
		}
		at := len(ms)
		for at > 0 && lasts[at-1] < n {
			at--
		}
		ms, lasts = append(ms, mark{}), append(lasts, 0)
		copy(ms[at+1:], ms[at:])
		copy(lasts[at+1:], lasts[at:])
		ms[at], lasts[at] = m, n
	}
	return ms
}

func has(ms []mark, m mark) bool {
	return slices.Contains(ms, m)
}

func inlineText(x syntax, spans []document.Span) string {
	var b strings.Builder
	b.Grow(len(spans) * 24)
	writeInline(&b, x, spans)
	return b.String()
}

// inBold is a heading where there are no headings.
func inBold(spans []document.Span) []document.Span {
	all := make([]document.Span, len(spans))
	for i, s := range spans {
		if s.Style != document.Marker {
			s.Style |= document.Bold
		}
		all[i] = s
	}
	return all
}

func quoted(text string) string {
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

const ruleText = "———"

// zeroWidth parts what must not be read together.
const zeroWidth = "\u200b"

func joinLines(to *strings.Builder, frags []frag) {
	for i, f := range frags {
		if i > 0 {
			to.WriteString(f.separator())
		}
		to.WriteString(f.text)
	}
}
