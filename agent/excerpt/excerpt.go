// Package excerpt shows people what others wrote: shortened, and in a form in which the
// text can neither hide parts of itself nor end the quotation.
package excerpt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

const (
	// mostOfCall is how many bytes of a call's arguments a message in a chat may have. Of a longer
	// call it has the first headOfCall and the last tailOfCall bytes, which with the words around
	// them fit into one message on every platform, and so beside buttons.
	mostOfCall = 2500
	headOfCall = 700
	tailOfCall = 500
)

// mostOfReason is how many bytes of a denial's reason people are shown. That is no more
// than the words on how to answer took, which the reason replaces: it then fits into the
// message of the question, whose buttons go. The model is told the whole reason.
const mostOfReason = 200

// Gist returns the argument that tells watchers best what a call does, such as
// its path or its command, in at most 60 characters; "" if it has none of these.
func Gist(args json.RawMessage) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return ""
	}
	for _, name := range []string{"path", "pattern", "query", "url", "command", "chat_id"} {
		var text string
		if value := all[name]; len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
			continue
		}
		if r := []rune(text); len(r) > 60 {
			return string(r[:60]) + "…"
		}
		return text
	}
	return ""
}

// EscapeHidden returns a JSON value on one line, with the characters that a reader cannot see, or
// takes for others, as escapes: who approves a call must read what will run.
func EscapeHidden(raw json.RawMessage) json.RawMessage {
	var line bytes.Buffer
	if json.Compact(&line, raw) == nil { // then whatever is hidden is within a text
		raw = line.Bytes()
	}
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

// ShowHidden returns a text with such characters as escapes; those for a line end and a tab stay.
func ShowHidden(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '\n' || r == '\t' || !isHidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// isHidden reports whether a reader cannot see a character, or may take it for another: controls,
// blanks other than the usual one, what changes the direction of the text, characters that
// programs are to ignore, and those that stand for nothing.
func isHidden(r rune) bool {
	switch r {
	case '\u2800', '\U00016fe4', '\ufffc': // letters and signs that look like blanks
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// IsLong reports whether a call's arguments are too long for a message in a chat.
func IsLong(raw json.RawMessage) bool { return len(raw) > mostOfCall }

// Arguments returns a call's arguments as a block of code.
func Arguments(raw json.RawMessage) string {
	return fenced(strings.ToValidUTF8(string(raw), "\uFFFD"))
}

// Ends returns the beginning and the end of a call's long arguments as blocks of code, with the
// number of bytes between them.
func Ends(raw json.RawMessage) string {
	text := strings.ToValidUTF8(string(raw), "\uFFFD")
	// A run of broken bytes has become one character, so the text may be shorter than it was.
	head := strings.ToValidUTF8(text[:min(headOfCall, len(text))], "")
	tail := strings.ToValidUTF8(text[max(len(text)-tailOfCall, len(head)):], "")
	return fmt.Sprintf("%s\n\n… %d bytes are left out here …\n\n%s", fenced(head), len(text)-len(head)-len(tail), fenced(tail))
}

// File returns a call's arguments as a page for a person: first exactly as they are, and then each
// text among them that is long or has several lines, as whoever gets it will read it.
func File(raw json.RawMessage) string {
	var b strings.Builder
	b.WriteString("What it is called with, all of it. Characters that cannot be seen are written as escapes, such as \\u200b.\n\n")
	var indented bytes.Buffer
	if json.Indent(&indented, EscapeHidden(raw), "", "  ") != nil {
		indented.Reset()
		indented.WriteString(ShowHidden(string(raw)))
	}
	b.Write(indented.Bytes())
	b.WriteByte('\n')
	var args any
	if json.Unmarshal(raw, &args) == nil {
		writeTexts(&b, "", args)
	}
	return b.String()
}

// writeTexts writes each long text of a JSON value line by line, under the path that leads to it. Every
// line has a mark, so that no text looks like the end of another.
func writeTexts(b *strings.Builder, path string, value any) {
	switch v := value.(type) {
	case string:
		if len(v) <= 80 && !strings.Contains(v, "\n") {
			return
		}
		fmt.Fprintf(b, "\nThe text %s, line by line:\n\n", strings.TrimPrefix(path, "."))
		for line := range strings.SplitSeq(ShowHidden(v), "\n") {
			b.WriteString("  | " + line + "\n")
		}
	case []any:
		for i, one := range v {
			writeTexts(b, fmt.Sprintf("%s[%d]", path, i), one)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			writeTexts(b, path+"."+ShowHidden(name), v[name])
		}
	}
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
func Inline(text string) string {
	return strings.NewReplacer("`", "'", "\n", `\n`, "\t", `\t`).Replace(ShowHidden(text))
}

// Words returns a text on one line in Markdown that shows it as it is, without any markup of its
// own. It uses character references, because a backslash begins a formula before some signs.
func Words(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(ShowHidden(text)), " ") {
		if strings.ContainsRune("\\`*_[]<>~|#!&$:", r) {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
