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
