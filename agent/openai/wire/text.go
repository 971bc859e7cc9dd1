package wire

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A Text is a piece of a longer text. Some servers cut the text within a character: the escape of one half of a
// surrogate pair ends a piece, and that of the other half begins the next. UnmarshalJSON turns such a half into
// three bytes that are not valid UTF-8; a Joiner joins two of them into a character. Apart from that, a Text is
// read like a String.
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
		*t = Text(encodeHalf(first)) + *t + Text(encodeHalf(last))
	}
	return nil
}

// cutHalves removes from a JSON string a low surrogate's escape at its beginning (first) and a high surrogate's
// escape at its end (last); 0 means that there is none.
func cutHalves(b []byte) (first, last rune, rest []byte) {
	const size = len(`\udc00`)
	if r := escaped(b[1 : len(b)-1]); isLowSurrogate(r) {
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
	if r := escaped(b[at : len(b)-1]); slashes%2 == 1 && isHighSurrogate(r) {
		last, b = r, append(append([]byte{}, b[:at]...), '"')
	}
	return first, last, b
}

// escaped returns the code unit whose escape is at the beginning of a text; 0 if there is none.
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

func isHighSurrogate(r rune) bool { return r >= 0xd800 && r < 0xdc00 }
func isLowSurrogate(r rune) bool  { return r >= 0xdc00 && r < 0xe000 }

// surrogateLead is the first byte of an encoded half, and of some characters.
const surrogateLead = 0xed

// encodeHalf returns the three bytes that encode one half of a surrogate pair; "" for 0.
func encodeHalf(r rune) string {
	if r == 0 {
		return ""
	}
	return string([]byte{surrogateLead, 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
}

// halfAt returns the half at the beginning of a text; 0 if there is none.
func halfAt(text string) rune {
	if len(text) < 3 || text[0] != surrogateLead || text[1] < 0xa0 || text[1] > 0xbf || text[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f)
}

// A Joiner joins pieces of one text.
type Joiner struct{ heldHalf rune } // the high surrogate at the end of the last piece

// Add returns a piece in which halves are joined to characters. It holds back a high surrogate at the end, and
// replaces a half without a partner by a replacement character.
func (j *Joiner) Add(piece Text) string {
	if j.heldHalf == 0 && strings.IndexByte(string(piece), surrogateLead) < 0 {
		return string(piece)
	}
	if piece == "" {
		return ""
	}
	text := encodeHalf(j.heldHalf) + string(piece)
	j.heldHalf = 0
	var whole strings.Builder
	for text != "" {
		r := halfAt(text)
		if r == 0 {
			_, n := utf8.DecodeRuneInString(text)
			whole.WriteString(text[:n])
			text = text[n:]
			continue
		}
		text = text[len(encodeHalf(r)):]
		next := halfAt(text)
		switch {
		case isHighSurrogate(r) && isLowSurrogate(next):
			whole.WriteRune(utf16.DecodeRune(r, next))
			text = text[len(encodeHalf(next)):]
		case isHighSurrogate(r) && text == "":
			j.heldHalf = r
		default:
			whole.WriteRune(utf8.RuneError)
		}
	}
	return whole.String()
}

// Flush returns, at the end of the text, a replacement character for the half that Add has held back; "" if it holds
// back none.
func (j *Joiner) Flush() string {
	if j.heldHalf == 0 {
		return ""
	}
	j.heldHalf = 0
	return string(utf8.RuneError)
}
