package webhook

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// zeroWidth parts what would be read as one.
const zeroWidth = "\u200b"

// marks are the characters that may mean something in Markdown. An opening
// parenthesis means nothing behind a bracket that is no mark; a backslash before it
// would begin a formula, and so would one before an opening bracket.
const marks = "\\`*_{}]<>)#+-.!|~&=$^"

// bracket is an opening bracket that begins no link.
const bracket = "&#91;"

// escape makes Markdown that shows s and does nothing else: no marks, no
// mentions, no blocks. Addresses stay addresses.
func escape(s string) string {
	s = clean(s)
	if whole(s) {
		return address(s)
	}
	var b strings.Builder
	for s != "" {
		from, to := link(s)
		words(&b, s[:from])
		b.WriteString(address(s[from:to]))
		s = s[to:]
	}
	return b.String()
}

// link finds the first address in a text, up to where markup could begin; the
// end of the text if there is none.
func link(s string) (from, to int) {
	for from < len(s) {
		i := strings.Index(s[from:], "http")
		if i < 0 {
			break
		}
		from += i
		rest := s[from:]
		if strings.HasPrefix(rest, "http://") || strings.HasPrefix(rest, "https://") {
			if end := strings.IndexAny(rest, " \n\"'<>()[]{}|^`\\"); end >= 0 {
				return from, from + end
			}
			return from, len(s)
		}
		from += len("http")
	}
	return len(s), len(s)
}

// clean takes out what is not to be seen: bytes that are no text, control
// characters, and what changes the direction of writing. Each line loses its
// indentation, which could make code of it.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t', unicode.Is(unicode.Zs, r):
			return ' '
		case r == utf8.RuneError, unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

// whole says that s is an address and nothing else.
func whole(s string) bool {
	return (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")) && !strings.ContainsAny(s, " \n")
}

// address percent-encodes what would end a link or begin a mark.
func address(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte("\\`*~<>()[]{}|^\"'", s[i]) >= 0 {
			const hex = "0123456789ABCDEF"
			b.WriteString("%" + hex[s[i]>>4:s[i]>>4+1] + hex[s[i]&15:s[i]&15+1])
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// words escapes a text without addresses. Slack's markup has no escapes: ticks
// are parted, so that they make no block of code, and so is what begins a
// quotation. And @ is parted from the name that it would call.
func words(b *strings.Builder, s string) {
	before := '\n'
	for i, r := range s {
		if r == '`' && before == '`' || r == '>' && before == '\n' {
			b.WriteString(zeroWidth)
		}
		switch {
		case r == '[':
			b.WriteString(bracket)
		case r < utf8.RuneSelf && strings.ContainsRune(marks, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		if r == '@' && !wordy(before) {
			if next, _ := utf8.DecodeRuneInString(s[i+1:]); wordy(next) || next == '&' || next == '!' {
				b.WriteString(zeroWidth)
			}
		}
		before = r
	}
}

func wordy(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
