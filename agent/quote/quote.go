// Package quote shows people what others wrote: shortened, and in a form in which the
// text can neither hide parts of itself nor end the quotation.
package quote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// mostOfCall is how many bytes of a call's arguments people are shown in a chat. Over
// HTTP and on the command line they see all.
const mostOfCall = 2500

// mostOfReason is how many bytes of a denial's reason people are shown. That is no more
// than the words on how to answer took, which the reason replaces: it then fits into the
// message of the question, whose buttons go. The model is told the whole reason.
const mostOfReason = 200

// EscapeHidden writes the invisible characters of a JSON value, and those that turn the text
// around, as escapes: the person who approves a call must read what will run.
func EscapeHidden(raw json.RawMessage) json.RawMessage {
	if !bytes.ContainsFunc(raw, isHidden) {
		return raw
	}
	var b bytes.Buffer
	for _, r := range string(raw) {
		if !isHidden(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

// isHidden reports whether a character is invisible or changes the direction of the
// text.
func isHidden(r rune) bool { return unicode.Is(unicode.Cf, r) }

// Arguments returns a call's arguments as a block of code, shortened for a chat and with
// the number of bytes that are missing.
func Arguments(raw json.RawMessage) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if len(text) > mostOfCall {
		kept := strings.ToValidUTF8(text[:mostOfCall], "")
		text = fmt.Sprintf("%s\n… and %d bytes more, which `parley approvals list` shows", kept, len(text)-len(kept))
	}
	return fenced(text)
}

// fenced returns a text as a block of code, in a fence that is longer than any in the
// text.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// Reason returns a denial's reason, shortened, as a quotation in Markdown.
func Reason(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) > mostOfReason {
		reason = strings.ToValidUTF8(reason[:mostOfReason], "") + " …"
	}
	return "> " + strings.ReplaceAll(reason, "\n", "\n> ")
}

// Inline returns a text that can stand between backquotes.
func Inline(text string) string { return strings.ReplaceAll(text, "`", "'") }
