package markup

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// An assembly joins rendered blocks into pieces, each of which is one message. Both the formatted and the plain
// form of a piece stay within the limit.
type assembly struct {
	dialect    dialect
	plain      plainDialect
	limit      size // the limit of the current piece; 0 units mean none
	laterLimit size // the limit of all pieces except the first

	currentBlocks []renderedBlock // the blocks in the current piece
	usedSize      size            // how much of the limit the current piece has used
	pieces        []Piece         // the finished pieces
}

// render renders a block in the dialect and as plain text, and measures it.
func (a *assembly) render(b document.Block) renderedBlock {
	f := renderedBlock{needsGap: b.Gap, container: b.Container, isQuote: isQuoted(b), isHeading: b.Kind == document.Heading, record: b.AsTable}
	if b.Kind == document.Record {
		b.Kind, b.Spans = document.Paragraph, recordSpans(b.Fields)
	}
	f.plain = a.dialect.defuse(a.plain.renderBlock(b))
	f.withoutTargets = f.plain
	if _, same := a.dialect.(plainDialect); same {
		f.text = f.plain
	} else {
		f.text = a.dialect.renderBlock(b)
	}
	if d, ok := a.dialect.(richDialect); ok {
		f.rich = d.renderRich(b)
	}
	f.size = a.dialect.size(f.text)
	if f.isQuote {
		f.size = f.size.plus(quoteMarks())
	}
	if f.text != f.plain {
		// If the plain form is too long, it may leave out the targets of links.
		if slices.ContainsFunc(b.Spans, func(s document.Span) bool { return s.URL != "" }) {
			f.withoutTargets = a.dialect.defuse(plainDialect{bareLinks: true}.renderBlock(b))
		}
		f.size.units = max(f.size.units, utf16Length(f.withoutTargets))
	}
	return f
}

// room returns how much room the current piece has for one more block; gap says that an empty line would precede
// the block.
func (a *assembly) room(gap bool) size {
	if len(a.currentBlocks) == 0 {
		return a.limit
	}
	n := len(renderedBlock{needsGap: gap}.separator())
	return a.limit.minus(a.usedSize.plus(size{units: n, bytes: n}))
}

// put appends a rendered block to the current piece.
func (a *assembly) put(f renderedBlock) {
	a.usedSize = a.limit.minus(a.room(f.needsGap)).plus(f.size)
	a.currentBlocks = append(a.currentBlocks, f)
}

// add puts a block into the current piece or the next one, or cuts it and puts its parts into several.
func (a *assembly) add(b document.Block) {
	if b.Kind == document.Table {
		a.addTable(b)
		return
	}
	a.writeTargets(b.Spans)
	for _, f := range b.Fields {
		a.writeTargets(f.Name)
		a.writeTargets(f.Value)
	}
	for a.limit.units > 0 {
		if a.putWhole(b) {
			return
		}
		if a.room(b.Gap).isSmallPartOf(a.limit) {
			a.flush(true)
		}
		head, tail := a.cut(b, a.room(b.Gap))
		if head.IsEmpty() {
			if len(a.currentBlocks) == 0 {
				return // only white space is left
			}
			a.flush(false)
			continue
		}
		a.put(a.render(head))
		a.flush(false)
		if tail.IsEmpty() {
			return
		}
		b = tail
	}
	a.put(a.render(b))
}

// putWhole puts a block uncut into the current piece or, if it does not fit there, into the next one. It returns
// false if it fits into neither.
func (a *assembly) putWhole(b document.Block) bool {
	if longerThan(b, a.limit.units) {
		return false
	}
	f := a.render(b)
	if !f.size.fitsIn(a.limit) {
		return false
	}
	if !f.size.fitsIn(a.room(b.Gap)) {
		a.flush(true)
	}
	fits := f.size.fitsIn(a.room(b.Gap))
	if fits {
		a.put(f)
	}
	return fits
}

// largestFitting returns the largest n up to most for which fits returns true; fits must return true for all
// smaller n too. It starts with small values, because the result is usually far below most.
func largestFitting(most int, fits func(n int) bool) int {
	beyond := 1
	for beyond <= most && fits(beyond) {
		beyond *= 2
	}
	known := beyond / 2 // fits
	return known + sort.Search(min(beyond, most+1)-known-1, func(i int) bool { return !fits(known + i + 1) })
}

// fits reports whether a block fits into room.
func (a *assembly) fits(b document.Block, room size) bool {
	return !longerThan(b, room.units) && a.render(b).size.fitsIn(room)
}

// longerThan reports whether a block is certainly longer than limit, so that it need not be rendered to find out.
// It stops reading the block as soon as that is clear.
func longerThan(b document.Block, limit int) bool {
	n := 0
	more := func(spans []document.Span) bool {
		for _, s := range spans {
			n += len(s.Text)
		}
		return n > 3*limit
	}
	for _, l := range b.Lines {
		if n += len(l) + 1; n > 3*limit {
			return true
		}
	}
	for _, row := range b.Rows {
		for _, cell := range row {
			if n += 2; more(cell) {
				return true
			}
		}
	}
	for _, f := range b.Fields {
		if more(f.Name) || more(f.Value) {
			return true
		}
	}
	return more(b.Spans)
}

// flush finishes the current piece. If carry is true, a heading at its end moves to the next piece, so that it
// stays with its text.
func (a *assembly) flush(carry bool) {
	var next []renderedBlock
	if n := len(a.currentBlocks); carry && n > 1 && a.currentBlocks[n-1].isHeading && a.currentBlocks[n-1].size.units < a.limit.units/4 {
		next = []renderedBlock{a.currentBlocks[n-1]}
		a.currentBlocks = a.currentBlocks[:n-1]
	}
	var text strings.Builder
	a.dialect.join(&text, a.currentBlocks)
	if plain := a.plainForm(); !hasNothingVisible(plain) {
		p := Piece{Text: text.String(), Plain: plain}
		if d, ok := a.dialect.(richDialect); ok {
			p.Markdown = d.joinRich(a.currentBlocks)
		}
		a.pieces = append(a.pieces, p)
		a.limit = a.laterLimit
	}
	a.currentBlocks, a.usedSize = a.currentBlocks[:0], size{}
	for _, f := range next {
		a.put(f)
	}
}

// plainForm returns the current piece without markup. If that is too long, the links in its last blocks lose their
// targets.
func (a *assembly) plainForm() string {
	total := 0
	for i, f := range a.currentBlocks {
		if i > 0 {
			total += len(f.separator())
		}
		total += utf16Length(f.plain)
	}
	full := len(a.currentBlocks) // the number of blocks that are written with targets
	for a.limit.units > 0 && total > a.limit.units && full > 0 {
		full--
		total -= utf16Length(a.currentBlocks[full].plain) - utf16Length(a.currentBlocks[full].withoutTargets)
	}
	var plain strings.Builder
	for i, f := range a.currentBlocks {
		if i > 0 {
			plain.WriteString(f.separator())
		}
		if i < full {
			plain.WriteString(f.plain)
		} else {
			plain.WriteString(f.withoutTargets)
		}
	}
	return plain.String()
}

// writeTargets turns links that the dialect does not render as links into text: it writes each target after the
// link's text, where it can be cut.
func (a *assembly) writeTargets(spans []document.Span) {
	for i, s := range spans {
		if s.URL == "" || a.dialect.rendersLink(s, a.limit.units) {
			continue
		}
		if !s.IsBare() && (i+1 == len(spans) || spans[i+1].URL != s.URL) {
			spans[i].Text += " (" + s.URL + ")"
		}
		spans[i].URL = ""
	}
}

// cut splits a block into a part that fits into room (head), and the rest (tail). head is empty if nothing fits.
func (a *assembly) cut(b document.Block, room size) (head, tail document.Block) {
	switch b.Kind {
	case document.CodeBlock:
		return a.cutLines(b, room)
	case document.Record:
		return a.cutFields(b, room)
	}
	head, tail = b, b
	tail.Gap = false
	at := a.cutAt(b.Spans, room, len(a.currentBlocks) == 0, func(spans []document.Span) document.Block {
		head.Spans = spans
		return head
	})
	if at == 0 {
		return document.Block{}, b
	}
	head.Spans = trimEnd(spansBefore(b.Spans, at))
	tail.Spans = trimStart(spansFrom(b.Spans, at))
	if len(head.Spans) == 0 && len(tail.Spans) > 0 {
		return a.cut(tail, room)
	}
	return head, tail
}

// cutAt returns the byte position at which a text must be cut for its beginning to fit into room; makeBlock makes
// the block, from that beginning, whose size is measured. If nothing fits, cutAt returns 0 or, if must is true, the
// end of the first character.
func (a *assembly) cutAt(spans []document.Span, room size, must bool, makeBlock func([]document.Span) document.Block) int {
	flat := plainPrefix(spans, room.units)
	k := runeStart(flat, sort.Search(len(flat), func(n int) bool {
		return !a.render(makeBlock(spansBefore(spans, runeStart(flat, n+1)))).size.fitsIn(room)
	}))
	if k == 0 && !must {
		return 0
	}
	at := niceCut(flat, k)
	if at == 0 {
		_, at = utf8.DecodeRuneInString(flat)
	}
	return at
}

// cutLines cuts a code block between lines, or inside the first line if that alone is too long for a whole piece.
// head is empty if nothing fits behind the blocks that the piece has already.
func (a *assembly) cutLines(b document.Block, room size) (head, tail document.Block) {
	head, tail = b, b
	tail.Gap = false
	fits := func(lines ...string) bool {
		h := b
		h.Lines = lines
		return a.render(h).size.fitsIn(room)
	}
	n := largestFitting(len(b.Lines), func(n int) bool { return fits(b.Lines[:n]...) })
	if n > 0 {
		head.Lines, tail.Lines = b.Lines[:n], b.Lines[n:]
		return head, tail
	}
	if len(a.currentBlocks) > 0 {
		head.Lines = nil
		return head, tail
	}
	line := b.Lines[0]
	start := plainPrefix([]document.Span{{Text: line}}, room.units)
	k := runeStart(start, sort.Search(len(start), func(n int) bool { return !fits(line[:runeStart(line, n+1)]) }))
	at := codeCut(line, k)
	if at == 0 {
		_, at = utf8.DecodeRuneInString(line)
	}
	head.Lines = []string{line[:at]}
	tail.Lines = append([]string{line[at:]}, b.Lines[1:]...)
	return head, tail
}
