package wire

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A Text is a piece of a longer text, which some servers cut within a character: the escape of one
// half of a surrogate pair ends a piece, and that of the other half begins the next. Such a half
// becomes three bytes that are not UTF-8; a Joiner makes a character of two. Otherwise a Text is
// read as a String.
type Text string

// UnmarshalJSON reads a piece of a text.
func (t *Text) UnmarshalJSON(b []byte) error {
	var first, last rune
	if b[0] == '"' && bytes.Contains(b, []byte(`\u`)) {
		first, last, b = cutHalves(b)
	}
	if err := (*String)(t).UnmarshalJSON(b); err != nil {
		return err
	}
	if first+last != 0 {
		*t = Text(half(first)) + *t + Text(half(last))
	}
	return nil
}

// cutHalves removes, from a JSON string, the second half of a pair at its beginning and the first
// half of one at its end; 0 stands for none.
func cutHalves(b []byte) (first, last rune, rest []byte) {
	const size = len(`\udc00`)
	if r := escaped(b[1 : len(b)-1]); isSecond(r) {
		first, b = r, append([]byte{'"'}, b[1+size:]...)
	}
	at := len(b) - 1 - size
	if at < 1 {
		return first, 0, b
	}
	slashes := 0
	for i := at; i >= 1 && b[i] == '\\'; i-- {
		slashes++
	}
	if r := escaped(b[at : len(b)-1]); slashes%2 == 1 && isFirst(r) {
		last, b = r, append(append([]byte{}, b[:at]...), '"')
	}
	return first, last, b
}

// escaped returns the code unit whose escape begins a text; 0 if none does.
func escaped(b []byte) rune {
	if len(b) < len(`\udc00`) || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

func isFirst(r rune) bool  { return r >= 0xd800 && r < 0xdc00 }
func isSecond(r rune) bool { return r >= 0xdc00 && r < 0xe000 }

// lead is the first byte of a half, and of some characters.
const lead = 0xed

// half returns the three bytes of a half; "" for 0.
func half(r rune) string {
	if r == 0 {
		return ""
	}
	return string([]byte{lead, 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
}

// halfAt returns the half with which a text begins; 0 if none does.
func halfAt(text string) rune {
	if len(text) < 3 || text[0] != lead || text[1] < 0xa0 || text[1] > 0xbf || text[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f)
}

// A Joiner joins pieces of one text.
type Joiner struct{ held rune } // the first half of a pair, with which the last piece has ended

// Add returns a piece with its halves made whole. It holds back a first half at the end, and makes
// a replacement character of a half that is alone.
func (j *Joiner) Add(piece Text) string {
	if j.held == 0 && strings.IndexByte(string(piece), lead) < 0 {
		return string(piece)
	}
	if piece == "" {
		return ""
	}
	text := half(j.held) + string(piece)
	j.held = 0
	var whole strings.Builder
	for text != "" {
		r := halfAt(text)
		if r == 0 {
			_, n := utf8.DecodeRuneInString(text)
			whole.WriteString(text[:n])
			text = text[n:]
			continue
		}
		text = text[len(half(r)):]
		next := halfAt(text)
		switch {
		case isFirst(r) && isSecond(next):
			whole.WriteRune(utf16.DecodeRune(r, next))
			text = text[len(half(next)):]
		case isFirst(r) && text == "":
			j.held = r
		default:
			whole.WriteRune(utf8.RuneError)
		}
	}
	return whole.String()
}

// Flush returns, at the end of the text, what Add has held back.
func (j *Joiner) Flush() string {
	if j.held == 0 {
		return ""
	}
	j.held = 0
	return string(utf8.RuneError)
}
