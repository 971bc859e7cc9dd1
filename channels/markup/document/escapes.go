package document

import (
	"html"
	"strings"
	"unicode/utf8"
)

// Clean returns the text as valid UTF-8 with plain newlines and without control characters,
// which platforms refuse or drop.
func Clean(md string) string {
	if utf8.ValidString(md) && strings.IndexFunc(md, isControl) < 0 {
		return md
	}
	md = strings.ReplaceAll(strings.ToValidUTF8(md, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case isControl(r):
			return -1
		}
		return r
	}, md)
}

func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
}

// Unescape resolves backslashes before punctuation, and character references such as &amp;.
func Unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && isPunct(s[i+1]):
			i++
			b.WriteByte(s[i])
		case s[i] == '&':
			name, character := readEntity(s[i:])
			b.WriteString(Clean(character))
			i += len(name) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// readEntity reads the character reference at the beginning of a text, and returns it with the character that it
// represents; a lone & represents itself. HTML knows some references without a semicolon, but Markdown does not:
// "?a=1&region=2;" contains none.
func readEntity(s string) (name, character string) {
	const longest = 40
	end := strings.IndexByte(s[:min(len(s), longest)], ';')
	if end < 2 {
		return "&", "&"
	}
	name = s[:end+1]
	if digits, ok := strings.CutPrefix(name[1:end], "#"); ok {
		const most = 7
		if strings.Trim(digits, "xX") == "" || len(digits) > most {
			return "&", "&"
		}
	} else if strings.TrimFunc(digits, isAlphanumeric) != "" {
		return "&", "&"
	}
	character = html.UnescapeString(name)
	if character != ";" && strings.HasSuffix(character, ";") {
		return "&", "&" // not a reference, or only its beginning is one
	}
	return name, character
}

func isAlphanumeric(r rune) bool { return r < 0x80 && isWord(byte(r)) }

func isPunct(c byte) bool {
	return c > ' ' && c < 0x7f && !isWord(c)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
