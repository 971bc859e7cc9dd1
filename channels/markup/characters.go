package markup

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/markup/document"
)

// IsBlank reports whether a Markdown text contains nothing visible. Render returns no piece for such a text, so it
// can't be sent to anybody.
func IsBlank(md string) bool { return hasNothingVisible(document.Unescape(document.Clean(md))) }

// hasNothingVisible reports whether a text contains nothing visible.
func hasNothingVisible(s string) bool { return strings.TrimLeftFunc(s, isInvisible) == "" }

// isInvisible reports whether platforms draw a character as nothing: true for blanks, control
// and format characters, fillers and variation selectors.
func isInvisible(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank || unicode.IsSpace(r) || unicode.IsControl(r) ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Verbatim returns Markdown that shows a name literally, as code. It leaves out backticks and characters that can't
// be seen.
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

// OneLine returns a text on one line for people: without control characters and characters that change the
// direction of writing, with single spaces, and cut to at most `most` characters.
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

// EmojiNamed returns the emoji with a name such as "tada"; false if there is none.
func EmojiNamed(name string) (string, bool) { return document.Emoji(name) }

// WithEmoji replaces emojis' names between colons, as in :tada:, by the emojis. It leaves unknown names and
// everything in code unchanged.
func WithEmoji(text string) string {
	if strings.Count(text, ":") < 2 {
		return text
	}
	var b strings.Builder
	end := 0 // the end of the last emoji
	for i := 0; i < len(text); {
		n := 1
		switch text[i] {
		case '`':
			n = codeLength(text[i:])
		case ':':
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			if i == end {
				before = 0
			}
			if name, character, ok := document.ReadEmoji(before, text[i:]); ok {
				b.WriteString(character)
				i += len(name) + 2
				end = i
				continue
			}
		}
		b.WriteString(text[i : i+n])
		i += n
	}
	return b.String()
}

// codeLength returns the length in bytes of the code span at the beginning of the text; if the span has no end,
// only the length of its opening backticks.
func codeLength(text string) int {
	n := 1
	for n < len(text) && text[n] == '`' {
		n++
	}
	for i := n; i < len(text); {
		at := strings.IndexByte(text[i:], '`')
		if at < 0 {
			break
		}
		i += at
		from := i
		for i < len(text) && text[i] == '`' {
			i++
		}
		if i-from == n {
			return i
		}
	}
	return n
}
