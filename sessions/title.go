package sessions

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxTitle is the maximum number of characters in a title, without the … at the end of a cut one.
const MaxTitle = 60

// FirstWords returns the first words of a text as the title of a session: on one line, without invisible
// characters, and cut at the end of a word; "" if there are none.
func FirstWords(text string) string {
	title := ""
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		word = strings.Map(dropInvisible, word)
		longer := strings.TrimSpace(title + " " + word)
		if utf8.RuneCountInString(longer) <= MaxTitle {
			title = longer
			continue
		}
		if title == "" {
			title = string([]rune(word)[:MaxTitle])
		}
		return title + "…"
	}
	return title
}

// dropInvisible drops a character that is invisible or changes the direction of a text, but keeps those that
// join other characters.
func dropInvisible(r rune) rune {
	if unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d' || r == utf8.RuneError {
		return -1
	}
	return r
}
