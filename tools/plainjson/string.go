package plainjson

import (
	"slices"
	"unicode/utf8"
)

// AppendString appends a text as a JSON string, with the bytes that Marshal writes. It is for many or long texts,
// where encoding takes noticeable time: it copies whatever needs no escape in one step.
func AppendString(to []byte, text string) []byte {
	const hex = "0123456789abcdef"
	to = append(slices.Grow(to, len(text)+2), '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				to = append(append(to, text[from:i]...), `\ufffd`...)
				from = i + size
			case r == '\u2028' || r == '\u2029': // some parsers take these for the end of a line
				to = append(append(append(to, text[from:i]...), `\u202`...), hex[r&0xF])
				from = i + size
			}
			i += size
			continue
		}
		to = append(append(to, text[from:i]...), '\\')
		switch c {
		case '"', '\\':
			to = append(to, c)
		case '\b':
			to = append(to, 'b')
		case '\f':
			to = append(to, 'f')
		case '\n':
			to = append(to, 'n')
		case '\r':
			to = append(to, 'r')
		case '\t':
			to = append(to, 't')
		default:
			to = append(to, 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
		i++
		from = i
	}
	return append(append(to, text[from:]...), '"')
}
