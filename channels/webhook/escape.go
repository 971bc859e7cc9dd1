package webhook

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// zeroWidth is an invisible space. Between two characters, it keeps a platform from reading them together as a mark
// or mention.
const zeroWidth = "\u200b"

// escapedMarks are the characters that get a backslash because Markdown may give them a meaning. The opening parenthesis
// and bracket are not among them, because a backslash in front of one of them begins a formula. Instead, the
// bracket is written as an entity; the parenthesis then has no meaning, because it never follows a bracket.
const escapedMarks = "\\`*_{}]<>)#+-.!|~&=$^"

// bracketEntity is the HTML entity for an opening bracket, which is shown as a bracket but begins no link.
const bracketEntity = "&#91;"

// escape returns Markdown that shows s literally: without formatting, mentions and blocks. URLs remain links.
func escape(s string) string {
	s = clean(s)
	if isURL(s) {
		return escapeURL(s)
	}
	var b strings.Builder
	for s != "" {
		from, to := findURL(s)
		escapeText(&b, s[:from])
		b.WriteString(escapeURL(s[from:to]))
		s = s[to:]
	}
	return b.String()
}

// findURL returns where the first URL in a text begins and ends. The URL ends before the first space, line end, quote,
// bracket, or other character that a URL can't contain. If there is no URL, both results are the length of the text.
func findURL(s string) (from, to int) {
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

// clean removes what must not be shown: bytes that are not UTF-8, control characters, and characters that change
// the direction of writing. It also removes each line's indentation, because Markdown treats indented lines as
// code.
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

// isURL reports whether s is a URL and nothing else.
func isURL(s string) bool {
	return (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")) && !strings.ContainsAny(s, " \n")
}

// escapeURL percent-encodes the characters of a URL that would end the link or begin markup.
func escapeURL(s string) string {
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

// escapeText escapes a text without URLs. Slack's markup has no backslash escapes, so zeroWidth separates
// backticks, which would otherwise begin a code block, the > of a quotation from the beginning of its line, and @
// from the name that it would mention.
func escapeText(b *strings.Builder, s string) {
	before := '\n'
	for i, r := range s {
		if r == '`' && before == '`' || r == '>' && before == '\n' {
			b.WriteString(zeroWidth)
		}
		switch {
		case r == '[':
			b.WriteString(bracketEntity)
		case r < utf8.RuneSelf && strings.ContainsRune(escapedMarks, r), r == ':' && !isNameRune(before) && mayBeName(s[i+1:]):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		if r == '@' && !isNameRune(before) {
			if next, _ := utf8.DecodeRuneInString(s[i+1:]); isNameRune(next) || next == '&' || next == '!' {
				b.WriteString(zeroWidth)
			}
		}
		before = r
	}
}

// mayBeName reports whether s, which follows a colon, begins like an emoji's name.
func mayBeName(s string) bool {
	return s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= '0' && s[0] <= '9' || strings.IndexByte("+-_", s[0]) >= 0)
}

// isNameRune reports whether r can occur in an emoji's name.
func isNameRune(r rune) bool {
	return r == '_' || r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
