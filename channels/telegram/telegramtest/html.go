package telegramtest

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf16"
)

// What Telegram accepts in one message.
const (
	maxTextUnits    = 4096    // the maximum number of UTF-16 units in a text, without its tags
	maxCaptionUnits = 1024    // the same, for the text that goes with a file
	maxRawBytes     = 1 << 15 // the maximum number of bytes in a text with its tags
	// maxEntities is how many pieces of a text can be formatted. Any more are left unformatted, without an error.
	maxEntities = 100
	// maxEntityWeight is the maximum size of all entities together, mostly the addresses of links. More is refused.
	maxEntityWeight = 9500
)

// utf16Length returns the length of a text in UTF-16 units.
func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// A hypertext is a text decoded from Telegram's HTML.
type hypertext struct {
	text     string
	entities int
	weight   int // the size of the entities together, in bytes
}

// readHTML decodes Telegram's HTML.
func readHTML(s string) (hypertext, error) {
	var (
		out  strings.Builder
		open []string
		h    hypertext
	)
	for at := 0; at < len(s); {
		i := strings.IndexByte(s[at:], '<')
		if i < 0 {
			out.WriteString(html.UnescapeString(s[at:]))
			break
		}
		out.WriteString(html.UnescapeString(s[at : at+i]))
		at += i
		end := strings.IndexByte(s[at:], '>')
		if end < 0 {
			return h, fmt.Errorf("unclosed start tag at byte offset %d", at)
		}
		tag := s[at+1 : at+end]
		if name, ok := strings.CutPrefix(tag, "/"); ok {
			if len(open) == 0 || open[len(open)-1] != strings.TrimSpace(name) {
				return h, fmt.Errorf("unexpected end tag at byte offset %d", at)
			}
			open = open[:len(open)-1]
		} else {
			name, attributes, _ := strings.Cut(tag, " ")
			if !isTag(name) {
				return h, fmt.Errorf("unsupported start tag %q at byte offset %d", name, at)
			}
			open = append(open, name)
			if !strings.HasSuffix(s[:at], "<pre>") { // code inside a pre is the same piece
				h.entities++
			}
			h.weight += 12 + len(attributes)
		}
		at += end + 1
	}
	if len(open) > 0 {
		return h, fmt.Errorf("can't find end tag corresponding to start tag %q", open[len(open)-1])
	}
	h.text = out.String()
	return h, nil
}

// isTag reports whether Telegram knows a tag.
func isTag(name string) bool {
	switch name {
	case "b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "span", "tg-spoiler", "tg-emoji", "a", "code", "pre", "blockquote":
		return true
	}
	return false
}
