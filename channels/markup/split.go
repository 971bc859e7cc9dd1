package markup

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// A frag is a written block.
type frag struct {
	text  string
	plain string
	size  int // the larger of both
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

// quoteMarks is what a quote may cost beside its text.
const quoteMarks = 8

// An assembly puts written blocks together, piece by piece. Both forms of a
// piece keep to the limit.
type assembly struct {
	dialect dialect
	plain   plainDialect
	limit   int  // 0 is none
	rest    int  // the limit of all pieces but the first
	inBytes bool // the first piece is measured in bytes too

	frags  []frag
	used   int
	pieces []Piece
}

func (a *assembly) write(b block) frag {
	f := frag{gap: b.gap, quote: b.quote, head: b.kind == heading}
	f.plain = a.dialect.harmless(a.plain.block(b))
	if _, same := a.dialect.(plainDialect); same {
		f.text, f.size = f.plain, units(f.plain)
		return f
	}
	f.text = a.dialect.block(b)
	f.size = max(a.dialect.size(f.text), units(f.plain))
	if a.inBytes {
		f.size = max(f.size, len(f.text))
	}
	if b.quote {
		f.size += quoteMarks
	}
	return f
}

// room is what is left in the piece for one more block.
func (a *assembly) room(gap bool) int {
	if len(a.frags) == 0 {
		return a.limit
	}
	return a.limit - a.used - len(frag{gap: gap}.separator())
}

func (a *assembly) put(f frag) {
	a.used = a.limit - a.room(f.gap) + f.size
	a.frags = append(a.frags, f)
}

// add puts a block into the piece, or into the next, or cuts it.
func (a *assembly) add(b block) {
	if a.limit == 0 {
		a.put(a.write(b))
		return
	}
	b.spans = a.withoutLongLinks(b.spans)
	if b.kind == table && a.write(block{kind: table, lines: b.head}).size > a.limit/2 {
		b.lines, b.head = append(b.head, b.lines...), nil
	}
	for {
		if !b.longerThan(a.limit) {
			f := a.write(b)
			if f.size > a.room(b.gap) && f.size <= a.limit {
				a.flush(true)
			}
			if f.size <= a.room(b.gap) {
				a.put(f)
				return
			}
		}
		if a.room(b.gap) < a.limit/3 {
			a.flush(true)
		}
		head, tail := a.cut(b, a.room(b.gap))
		if head.isEmpty() {
			if len(a.frags) == 0 {
				return // nothing is left but space
			}
			a.flush(false)
			continue
		}
		a.put(a.write(head))
		a.flush(false)
		if tail.isEmpty() {
			return
		}
		b = tail
	}
}

func (b block) isEmpty() bool { return len(b.spans) == 0 && len(b.lines) == 0 }

// longerThan tells cheaply of a block that is certainly too long to be worth writing.
func (b block) longerThan(limit int) bool {
	n := 0
	for _, s := range b.spans {
		if n += len(s.text); n > 3*limit {
			return true
		}
	}
	for _, l := range b.lines {
		if n += len(l) + 1; n > 3*limit {
			return true
		}
	}
	return false
}

// flush ends the piece. A heading at its end goes on to the next one, if carry.
func (a *assembly) flush(carry bool) {
	var next []frag
	if n := len(a.frags); carry && n > 1 && a.frags[n-1].head && a.frags[n-1].size < a.limit/4 {
		next = []frag{a.frags[n-1]}
		a.frags = a.frags[:n-1]
	}
	var text, plain strings.Builder
	a.dialect.join(&text, a.frags)
	for i, f := range a.frags {
		if i > 0 {
			plain.WriteString(f.separator())
		}
		plain.WriteString(f.plain)
	}
	if !isBlank(plain.String()) {
		a.pieces = append(a.pieces, Piece{Text: text.String(), Plain: plain.String()})
		a.inBytes, a.limit = false, a.rest
	}
	a.frags, a.used = a.frags[:0], 0
	for _, f := range next {
		a.put(f)
	}
}

// withoutLongLinks writes out targets that would take up a good part of a piece,
// as text that can be cut.
func (a *assembly) withoutLongLinks(spans []span) []span {
	for i, s := range spans {
		if len(s.url) <= a.limit/8 {
			continue
		}
		if !s.isBare() && (i+1 == len(spans) || spans[i+1].url != s.url) {
			spans[i].text += " (" + s.url + ")"
		}
		spans[i].url = ""
	}
	return spans
}

// cut parts a block so that the head is at most room long.
func (a *assembly) cut(b block, room int) (head, tail block) {
	if b.kind == codeBlock || b.kind == table {
		return a.cutLines(b, room)
	}
	flat := plainStart(b.spans, room)
	head, tail = b, b
	tail.gap = false
	k := sort.Search(len(flat), func(n int) bool {
		head.spans = headSpans(b.spans, runeStart(flat, n+1))
		return a.write(head).size > room
	})
	if k == 0 && room < a.limit {
		return block{}, b
	}
	at := niceCut(flat, runeStart(flat, k))
	if at == 0 {
		_, at = utf8.DecodeRuneInString(flat)
	}
	head.spans = trimEnd(headSpans(b.spans, at))
	tail.spans = trimStart(tailSpans(b.spans, at))
	if len(head.spans) == 0 && len(tail.spans) > 0 {
		return a.cut(tail, room)
	}
	return head, tail
}

// plainStart is the text of spans, no more of it than could fit, and a little.
func plainStart(spans []span, room int) string {
	var b strings.Builder
	n := 0
	for _, s := range spans {
		for i, r := range s.text {
			if n += utf16.RuneLen(r); n > room+8 {
				b.WriteString(s.text[:i])
				return b.String()
			}
		}
		b.WriteString(s.text)
	}
	return b.String()
}

func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return min(i, len(s))
}

// niceCut is where to cut s at most at byte at: behind a line, a sentence or a
// word if that does not waste half of the room, else behind what is seen as one
// character.
func niceCut(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	half := at / 2
	if i := strings.LastIndexByte(s[half:at+1], '\n'); i > 0 {
		return half + i
	}
	space := 0
	for i := at; i > half; {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		next, _ := utf8.DecodeRuneInString(s[i:])
		switch {
		case strings.ContainsRune("。！？", r), strings.ContainsRune(".!?…:;", r) && unicode.IsSpace(next):
			return i
		case space == 0 && unicode.IsSpace(next):
			space = i
		}
		i -= n
	}
	if space > 0 {
		return space
	}
	return lastCharacter(s, at)
}

// lastCharacter is the last bound between what is seen as one character each;
// where a single one is longer, it has to be cut.
func lastCharacter(s string, at int) int {
	start := 0
	for i := at - 1; i > 0; i-- {
		if s[i] == ' ' || isWord(s[i]) {
			start = i
			break
		}
	}
	end, state := start, -1
	for rest := s[start:]; rest != ""; {
		var c string
		c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if end+len(c) > at {
			break
		}
		end += len(c)
	}
	if end == 0 {
		return at
	}
	return end
}

// headSpans are the spans before a byte of their text.
func headSpans(spans []span, at int) []span {
	for i, s := range spans {
		if at <= len(s.text) {
			s.text = s.text[:at]
			return append(spans[:i:i], s)
		}
		at -= len(s.text)
	}
	return spans
}

// tailSpans are the spans from there on. They take the place of the spans that
// are cut: a long text is cut many times.
func tailSpans(spans []span, at int) []span {
	for i, s := range spans {
		if at <= len(s.text) {
			spans[i].text = s.text[at:]
			return spans[i:]
		}
		at -= len(s.text)
	}
	return nil
}

func trimEnd(spans []span) []span {
	for n := len(spans); n > 0; n = len(spans) {
		last := spans[n-1]
		last.text = strings.TrimRightFunc(last.text, unicode.IsSpace)
		spans = spans[: n-1 : n-1]
		if last.text != "" {
			return append(spans, last)
		}
	}
	return nil
}

func trimStart(spans []span) []span {
	for len(spans) > 0 {
		spans[0].text = strings.TrimLeftFunc(spans[0].text, unicode.IsSpace)
		if spans[0].text != "" {
			return spans
		}
		spans = spans[1:]
	}
	return nil
}

// cutLines parts a code block or table between lines; a line that is too long
// by itself is cut.
func (a *assembly) cutLines(b block, room int) (head, tail block) {
	head, tail = b, b
	tail.gap = false
	size := func(lines ...string) int {
		h := b
		h.lines = lines
		return a.write(h).size
	}
	n := sort.Search(min(len(b.lines), room+1), func(n int) bool { return size(b.lines[:n+1]...) > room })
	if n > 0 {
		head.lines, tail.lines = b.lines[:n], b.lines[n:]
		return head, tail
	}
	if room < a.limit {
		head.lines = nil
		return head, tail
	}
	line := b.lines[0]
	start := plainStart([]span{{text: line}}, room)
	k := runeStart(start, sort.Search(len(start), func(n int) bool { return size(line[:runeStart(line, n+1)]) > room }))
	at := lastCharacter(line, k)
	if at == 0 {
		_, at = utf8.DecodeRuneInString(line)
	}
	head.lines = []string{line[:at]}
	tail.lines = append([]string{line[at:]}, b.lines[1:]...)
	return head, tail
}
