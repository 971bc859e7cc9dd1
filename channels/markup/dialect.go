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
	// links tells whether a span's link is written as one, in messages of that length,
	// or as text.
	links(s document.Span, limit int) bool
	// form is how a table is shown.
	form(table document.Block) form
	// join puts written blocks together.
	join(to *strings.Builder, frags []frag)
	// harmless takes from a text without markup what would act all the same.
	harmless(plain string) string
}

// A twofold dialect has a second form, for what its platform shows better otherwise.
type twofold interface {
	rich(b document.Block) richText
	// joinRich puts the written blocks of a piece together in that form; "" where it
	// shows nothing better.
	joinRich(frags []frag) string
}

// A form is how a dialect shows a table.
type form uint8

const (
	asTable   form = iota // as the dialect writes tables
	inColumns             // laid out, where all characters are of one width
	asRecords             // row by row, each cell behind the name of its column
)

// A frag is a written block.
type frag struct {
	text   string
	plain  string
	bare   string // plain without where links lead
	size   size
	gap    bool
	head   bool // a heading, which belongs to what follows
	within *document.Container
	quote  bool
	rich   richText
	record *document.Block // the row of a table that it is
}

func (f frag) separator() string {
	if f.gap {
		return "\n\n"
	}
	return "\n"
}

// A richText is a block as it is written for a markdown block of Slack's.
type richText struct {
	text   string
	table  string // with a table in it, which a message may have one of; "" is none
	better bool   // the text shows more than it would elsewhere
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
	bare(b *strings.Builder, s document.Span)
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
			x.bare(b, s)
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

// isQuoted tells of a block that a quote is shown as.
func isQuoted(b document.Block) bool {
	return (b.Kind == document.Paragraph || b.Kind == document.Heading || b.Kind == document.Record) && b.Quotes() > 0
}

// isShort tells whether the target of a link takes up but a part of a message in which
// it is counted. Those of Telegram's own scheme lead nowhere elsewhere.
func isShort(s document.Span, limit int) bool {
	if strings.HasPrefix(s.URL, "tg:") {
		return false
	}
	return limit == 0 || len(s.URL) <= limit/8
}

func quoted(text string) string {
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// indented is a text with blanks before each line.
func indented(indent, text string) string {
	if indent == "" {
		return text
	}
	return indent + strings.ReplaceAll(text, "\n", "\n"+indent)
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
