// Package quote shows people what others wrote: cut to a bearable length, and such that
// its letters can neither hide nor end the quotation.
package quote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// mostOfCall is how much of a call's arguments people are shown in a chat, in bytes.
// Over HTTP and by the command line they see all.
const mostOfCall = 2500

// mostOfReason is how much of a denial's reason people are shown, in bytes: no more than
// the words on how to answer took, which it replaces, so that it takes the place of the
// question and the buttons go. The model is told all of it.
const mostOfReason = 200

// Visible writes out the letters of a JSON value that nobody sees, or that turn the
// others around: who approves a call reads what will run.
func Visible(raw json.RawMessage) json.RawMessage {
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

func isHidden(r rune) bool { return unicode.Is(unicode.Cf, r) }

// Arguments are a call's arguments as a block of code, as much of them as is shown in a
// chat; it says how much is not.
func Arguments(raw json.RawMessage) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	if len(text) > mostOfCall {
		kept := strings.ToValidUTF8(text[:mostOfCall], "")
		text = fmt.Sprintf("%s\n… and %d bytes more, which `parley approvals list` shows", kept, len(text)-len(kept))
	}
	return fenced(text)
}

// fenced is a text as a block of code, with a fence longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// Reason is a denial's reason as a quotation of Markdown.
func Reason(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) > mostOfReason {
		reason = strings.ToValidUTF8(reason[:mostOfReason], "") + " …"
	}
	return "> " + strings.ReplaceAll(reason, "\n", "\n> ")
}

// Inline is a text that can stand in backquotes.
func Inline(text string) string { return strings.ReplaceAll(text, "`", "'") }
