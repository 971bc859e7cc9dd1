package console

import (
	"strings"
	"unicode"
)

// Obeyed tells whether a terminal would act on a character of a text instead of
// showing it: all control characters, with which escape sequences begin, but
// newlines and tabs, and those that turn the direction of what follows.
func Obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// clean takes out of a text what a terminal would obey. What is no UTF-8 becomes
// a replacement character.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if Obeyed(r) {
			return -1
		}
		return r
	}, s)
}

// wordsShown is how many characters a line of news shows of a text.
const wordsShown = 72

// oneLine is a text on one line, no longer than wordsShown.
func oneLine(s string) string {
	runes := []rune(strings.Join(strings.Fields(clean(s)), " "))
	if len(runes) > wordsShown {
		return string(runes[:wordsShown-1]) + "…"
	}
	return string(runes)
}

// visibleCharacters is what is left of a text without spaces and what a terminal obeys. Two
// texts with the same visibleCharacters look the same to those who have read one of them.
func visibleCharacters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || Obeyed(r) {
			return -1
		}
		return r
	}, s)
}

// afterShown is what follows in a text once those characters of it were seen; false if
// they are not its beginning.
func afterShown(text, seen string) (string, bool) {
	seen = visibleCharacters(seen)
	if seen == "" {
		return text, true
	}
	for i, r := range text {
		if unicode.IsSpace(r) || Obeyed(r) {
			continue
		}
		if !strings.HasPrefix(seen, string(r)) {
			return "", false
		}
		if seen = seen[len(string(r)):]; seen == "" {
			return text[i+len(string(r)):], true
		}
	}
	return "", false
}
