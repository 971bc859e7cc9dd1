package markup

import (
	"strings"
	"unicode"

	"parley/channels/markup/document"
)

// Blank tells of a Markdown text that there is nothing to see in it: Render
// makes no piece of such a text, so it cannot be said to anybody.
func Blank(md string) bool { return isBlank(document.Unescape(document.Clean(md))) }

// isBlank tells of a text in which there is nothing to see.
func isBlank(s string) bool { return strings.TrimLeftFunc(s, isUnseen) == "" }

// isUnseen tells of a character that platforms draw as nothing: blanks, control
// and format characters, fillers and variation selectors.
func isUnseen(r rune) bool {
	const brailleBlank = '\u2800'
	return r == brailleBlank || unicode.IsSpace(r) || unicode.IsControl(r) ||
		unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
