package markup

import (
	"math"
	"strings"
)

// A size is what a text takes up of what a platform takes in one message.
type size struct {
	units  int // as the platform counts its length
	bytes  int // as it is sent
	marks  int // formatted pieces
	weight int // of the marks, in bytes: above all of where links lead
}

func (s size) plus(o size) size {
	return size{s.units + o.units, s.bytes + o.bytes, s.marks + o.marks, s.weight + o.weight}
}

func (s size) minus(o size) size {
	return size{s.units - o.units, s.bytes - o.bytes, s.marks - o.marks, s.weight - o.weight}
}

func (s size) within(o size) bool {
	return s.units <= o.units && s.bytes <= o.bytes && s.marks <= o.marks && s.weight <= o.weight
}

// isLittleOf tells that hardly anything is left of the whole.
func (s size) isLittleOf(o size) bool {
	return s.units < o.units/3 || s.bytes < o.bytes/3 || s.marks < o.marks/3 || s.weight < o.weight/3
}

// half is as much of a message's length, and all else.
func (s size) half() size {
	s.units /= 2
	return s
}

// limitedByLength is the size of a message of which only the length is bounded.
func limitedByLength(limit int) size {
	return size{limit, math.MaxInt / 2, math.MaxInt / 2, math.MaxInt / 2}
}

// inUnits is the size of a text whose marks are seen as the rest is.
func inUnits(text string) size { return size{units: units(text), bytes: len(text)} }

// quoteMarks is what a quote may cost beside its text.
func quoteMarks() size { return size{bytes: 2 * len("</blockquote>"), marks: 1, weight: 24} }

// What Telegram takes in one message, whatever its length: of more formatted
// pieces it leaves the rest out without a word, and where they are too heavy
// together or the text with its tags is too long, it refuses the message. The
// last two are somewhat less than what it was seen to take.
const (
	telegramMarks  = 100
	telegramWeight = 8000
	telegramBytes  = 30_000
)

// telegramSize is the size of Telegram's HTML.
func telegramSize(text string) size {
	s := size{bytes: len(text)}
	for text != "" {
		i := strings.IndexAny(text, "<&")
		if i < 0 {
			i = len(text)
		}
		s.units += units(text[:i])
		if text = text[i:]; text == "" {
			break
		}
		end := ">"
		if text[0] == '&' {
			end = ";"
			s.units++
		}
		i = strings.Index(text, end) + 1
		if i == 0 { // cannot be: it was escaped
			i = len(text)
		}
		if tag := text[:i]; tag[0] == '<' && tag[1] != '/' {
			s.weight += len(tag) + 10
			if !strings.HasPrefix(tag, "<code ") { // part of its pre
				s.marks++
			}
		}
		text = text[i:]
	}
	return s
}
