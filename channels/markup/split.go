package markup

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// A frag is a written block.
type frag struct {
	text  string
	plain string
	bare  string // plain without where links lead
	size  size
	gap   bool
	quote bool
	head  bool // a heading, which belongs to what follows
}

func (f frag) separator() string {
	if f.gap {
		return "\n\n"
	}
	return "\n"
}

// An assembly puts written blocks together, piece by piece. Both forms of a
// piece keep to the limit.
type assembly struct {
	dialect dialect
	plain   plainDialect
	limit   size // of the piece; no units are no limit at all
	rest    size // of all pieces but the first

	frags  []frag
	used   size
	pieces []Piece
}

func (a *assembly) write(b document.Block) frag {
	f := frag{gap: b.Gap, quote: b.Quote, head: b.Kind == document.Heading}
	f.plain = a.dialect.harmless(a.plain.block(b))
	f.bare = f.plain
	if _, same := a.dialect.(plainDialect); same {
		f.text = f.plain
	} else {
		f.text = a.dialect.block(b)
	}
	f.size = a.dialect.size(f.text)
	if b.Quote {
		f.size = f.size.plus(quoteMarks())
	}
	if f.text != f.plain {
		// Where links lead may be left out of the plain form, if it is too long.
		if slices.ContainsFunc(b.Spans, func(s document.Span) bool { return s.URL != "" }) {
			f.bare = a.dialect.harmless(plainDialect{bareLinks: true}.block(b))
		}
		f.size.units = max(f.size.units, units(f.bare))
	}
	return f
}

// room is what is left in the piece for one more block.
func (a *assembly) room(gap bool) size {
	if len(a.frags) == 0 {
		return a.limit
	}
	n := len(frag{gap: gap}.separator())
	return a.limit.minus(a.used.plus(size{units: n, bytes: n}))
}

func (a *assembly) put(f frag) {
	a.used = a.limit.minus(a.room(f.gap)).plus(f.size)
	a.frags = append(a.frags, f)
}

// add puts a block into the piece, or into the next, or cuts it.
func (a *assembly) add(b document.Block) {
	if a.limit.units > 0 {
		b.Spans = a.withoutLongLinks(b.Spans)
	}
	if a.limit.units > 0 && b.Kind == document.Table && a.write(document.Block{Kind: document.Table, Lines: b.Head}).size.units > a.limit.units/2 {
		b.Lines, b.Head = append(b.Head, b.Lines...), nil
	}
	for a.limit.units > 0 {
		if !longerThan(b, a.limit.units) {
			f := a.write(b)
			if !f.size.within(a.room(b.Gap)) && f.size.within(a.limit) {
				a.flush(true)
			}
			if f.size.within(a.room(b.Gap)) {
				a.put(f)
				return
			}
		}
		if a.room(b.Gap).isLittleOf(a.limit) {
			a.flush(true)
		}
		head, tail := a.cut(b, a.room(b.Gap))
		if head.IsEmpty() {
			if len(a.frags) == 0 {
				return // nothing is left but space
			}
			a.flush(false)
			continue
		}
		a.put(a.write(head))
		a.flush(false)
		if tail.IsEmpty() {
			return
		}
		b = tail
	}
	a.put(a.write(b))
}

// longerThan tells cheaply of a block that is certainly too long to be worth writing.
func longerThan(b document.Block, limit int) bool {
	n := 0
	for _, s := range b.Spans {
		if n += len(s.Text); n > 3*limit {
			return true
		}
	}
	for _, l := range b.Lines {
		if n += len(l) + 1; n > 3*limit {
			return true
		}
	}
	return false
}

// flush ends the piece. A heading at its end goes on to the next one, if carry.
func (a *assembly) flush(carry bool) {
	var next []frag
	if n := len(a.frags); carry && n > 1 && a.frags[n-1].head && a.frags[n-1].size.units < a.limit.units/4 {
		next = []frag{a.frags[n-1]}
		a.frags = a.frags[:n-1]
	}
	var text strings.Builder
	a.dialect.join(&text, a.frags)
	if plain := a.plainForm(); !isBlank(plain) {
		a.pieces = append(a.pieces, Piece{Text: text.String(), Plain: plain})
		a.limit = a.rest
	}
	a.frags, a.used = a.frags[:0], size{}
	for _, f := range next {
		a.put(f)
	}
}

// plainForm is the piece without markup. Of what would make it too long, it is
// left out where the last links lead.
func (a *assembly) plainForm() string {
	total := 0
	for i, f := range a.frags {
		if i > 0 {
			total += len(f.separator())
		}
		total += units(f.plain)
	}
	full := len(a.frags) // of so many the full form is written
	for a.limit.units > 0 && total > a.limit.units && full > 0 {
		full--
		total -= units(a.frags[full].plain) - units(a.frags[full].bare)
	}
	var plain strings.Builder
	for i, f := range a.frags {
		if i > 0 {
			plain.WriteString(f.separator())
		}
		if i < full {
			plain.WriteString(f.plain)
		} else {
			plain.WriteString(f.bare)
		}
	}
	return plain.String()
}

// withoutLongLinks writes out targets that would take up a good part of a piece,
// as text that can be cut.
func (a *assembly) withoutLongLinks(spans []document.Span) []document.Span {
	for i, s := range spans {
		longest := a.dialect.longestLink(a.limit.units)
		if s.IsBare() {
			longest = a.limit.units / 8
		}
		if len(s.URL) <= longest {
			continue
		}
		if !s.IsBare() && (i+1 == len(spans) || spans[i+1].URL != s.URL) {
			spans[i].Text += " (" + s.URL + ")"
		}
		spans[i].URL = ""
	}
	return spans
}

// cut parts a block so that the head takes no more than room.
func (a *assembly) cut(b document.Block, room size) (head, tail document.Block) {
	if b.Kind == document.CodeBlock || b.Kind == document.Table {
		return a.cutLines(b, room)
	}
	flat := plainStart(b.Spans, room.units)
	head, tail = b, b
	tail.Gap = false
	k := sort.Search(len(flat), func(n int) bool {
		head.Spans = headSpans(b.Spans, runeStart(flat, n+1))
		return !a.write(head).size.within(room)
	})
	if k == 0 && len(a.frags) > 0 {
		return document.Block{}, b
	}
	at := niceCut(flat, runeStart(flat, k))
	if at == 0 {
		_, at = utf8.DecodeRuneInString(flat)
	}
	head.Spans = trimEnd(headSpans(b.Spans, at))
	tail.Spans = trimStart(tailSpans(b.Spans, at))
	if len(head.Spans) == 0 && len(tail.Spans) > 0 {
		return a.cut(tail, room)
	}
	return head, tail
}

// cutLines parts a code block or table between lines; a line that is too long
// by itself is cut.
func (a *assembly) cutLines(b document.Block, room size) (head, tail document.Block) {
	head, tail = b, b
	tail.Gap = false
	fits := func(lines ...string) bool {
		h := b
		h.Lines = lines
		return a.write(h).size.within(room)
	}
	n := sort.Search(min(len(b.Lines), room.units+1), func(n int) bool { return !fits(b.Lines[:n+1]...) })
	if n > 0 {
		head.Lines, tail.Lines = b.Lines[:n], b.Lines[n:]
		return head, tail
	}
	if len(a.frags) > 0 {
		head.Lines = nil
		return head, tail
	}
	line := b.Lines[0]
	start := plainStart([]document.Span{{Text: line}}, room.units)
	k := runeStart(start, sort.Search(len(start), func(n int) bool { return !fits(line[:runeStart(line, n+1)]) }))
	at := codeCut(line, k)
	if at == 0 {
		_, at = utf8.DecodeRuneInString(line)
	}
	head.Lines = []string{line[:at]}
	tail.Lines = append([]string{line[at:]}, b.Lines[1:]...)
	return head, tail
}
