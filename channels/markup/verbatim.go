package markup

import (
	"strings"
	"unicode"
)

// Verbatim is Markdown that shows a name and does nothing else.
func Verbatim(name string) string {
	shown := strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '`' || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name))
	if shown == "" {
		return "without a name"
	}
	return "`" + shown + "`"
}

// OneLine is a name as people are shown it: without control characters and those
// that turn the direction of writing, its spaces single, and cut to so many characters.
func OneLine(s string, most int) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
	runes := []rune(strings.Join(strings.Fields(clean), " "))
	return string(runes[:min(len(runes), most)])
}
