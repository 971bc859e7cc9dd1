package console

import (
	"strings"
	"unicode"
)

// IsTerminalControl reports whether a terminal would act on a character instead of showing it. It returns true for
// all control characters (with which escape sequences begin) except newline and tab, and for characters that change
// the direction of the text after them.
func IsTerminalControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// clean returns a text without the characters that a terminal would act on. Invalid UTF-8 becomes a replacement
// character.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if IsTerminalControl(r) {
			return -1
		}
		return r
	}, s)
}

// oneLineLength is how many characters of a text are shown in a one-line message about it.
const oneLineLength = 72

// oneLine returns a text on one line, cut to oneLineLength characters.
func oneLine(s string) string {
	runes := []rune(strings.Join(strings.Fields(clean(s)), " "))
	if len(runes) > oneLineLength {
		return string(runes[:oneLineLength-1]) + "…"
	}
	return string(runes)
}

// visibleCharacters returns a text without spaces and without the characters that a terminal acts on, so that what
// a person sees of two texts can be compared.
func visibleCharacters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || IsTerminalControl(r) {
			return -1
		}
		return r
	}, s)
}

// afterShown returns the rest of text and true if text begins with the same visible characters as seen, and false
// otherwise.
func afterShown(text, seen string) (string, bool) {
	seen = visibleCharacters(seen)
	if seen == "" {
		return text, true
	}
	for i, r := range text {
		if unicode.IsSpace(r) || IsTerminalControl(r) {
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
