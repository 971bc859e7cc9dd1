package markup

import (
	"math"
	"strings"
)

// A size says how much a text takes up of a message's several limits.
type size struct {
	units  int // its length as the platform counts it
	bytes  int // its length in bytes as it is sent
	marks  int // its number of formatted pieces
	weight int // the total length in bytes of its marks, which are mostly the targets of links
}

// plus returns the size of both texts together.
func (s size) plus(o size) size {
	return size{s.units + o.units, s.bytes + o.bytes, s.marks + o.marks, s.weight + o.weight}
}

// minus returns how much of s is left after o, in every respect.
func (s size) minus(o size) size {
	return size{s.units - o.units, s.bytes - o.bytes, s.marks - o.marks, s.weight - o.weight}
}

// fitsIn reports whether s is no larger than o in any respect: length, bytes, marks or weight.
func (s size) fitsIn(o size) bool {
	return s.units <= o.units && s.bytes <= o.bytes && s.marks <= o.marks && s.weight <= o.weight
}

// isSmallPartOf reports whether s is less than a third of o in at least one respect: length, bytes, marks or
// weight.
func (s size) isSmallPartOf(o size) bool {
	return s.units < o.units/3 || s.bytes < o.bytes/3 || s.marks < o.marks/3 || s.weight < o.weight/3
}

// half returns the size with half of the length (units) and everything else unchanged.
func (s size) half() size {
	s.units /= 2
	return s
}

// limitedByLength returns the limit of a message that only has a maximum length.
func limitedByLength(limit int) size {
	return size{limit, math.MaxInt / 2, math.MaxInt / 2, math.MaxInt / 2}
}

// sizeWithMarks returns the size of a text in which marks count like the rest of it, in units and bytes.
func sizeWithMarks(text string) size { return size{units: utf16Length(text), bytes: len(text)} }

// quoteMarks returns the maximum size that the marks of a quote add to a text.
func quoteMarks() size { return size{bytes: 2 * len("</blockquote>"), marks: 1, weight: 24} }

// Telegram's limits for one message, besides its length. Formatted pieces beyond telegramMarks silently lose their
// format; if all of them together have too much weight, or the text with its tags is too long, Telegram refuses the
// message. The last two limits are a little below what Telegram was seen to accept.
const (
	telegramMarks  = 100
	telegramWeight = 8000
	telegramBytes  = 30_000
)

// telegramSize returns the size of a text in Telegram's HTML.
func telegramSize(text string) size {
	s := size{bytes: len(text)}
	for text != "" {
		i := strings.IndexAny(text, "<&")
		if i < 0 {
			i = len(text)
		}
		s.units += utf16Length(text[:i])
		if text = text[i:]; text == "" {
			break
		}
		end := ">"
		if text[0] == '&' {
			end = ";"
			s.units++
		}
		i = strings.Index(text, end) + 1
		if i == 0 { // impossible, because it was escaped
			i = len(text)
		}
		if tag := text[:i]; tag[0] == '<' && tag[1] != '/' {
			s.weight += len(tag) + 10
			if !strings.HasPrefix(tag, "<code ") { // a <code> inside a <pre> is counted with the <pre>
				s.marks++
			}
		}
		text = text[i:]
	}
	return s
}
