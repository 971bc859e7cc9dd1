// Package excerpt shows people texts that others wrote: shortened, and in a form in which the text can neither
// hide parts of itself nor end the quotation.
package excerpt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

const (
	// maxOfCall is how many bytes of what a call would do are shown in a chat message: together with the words
	// around them, they fit into one message on every platform, and so can have buttons. If there are more, the
	// message shows the first headOfCall and the last tailOfCall bytes.
	maxOfCall  = 1400
	headOfCall = 700
	tailOfCall = 500
	maxInline  = 200 // how many bytes of an argument's value are shown on the line with its name
)

// maxOfReason is how many bytes of a denial's reason people are shown. The reason replaces the instructions
// for answering and is no longer than these, so it fits into the message of the question, whose buttons are
// removed. The model is told the whole reason.
const maxOfReason = 200

// Gist returns the same as KeyArgument, cut after 60 characters, with an ellipsis if something was cut.
func Gist(args json.RawMessage) string {
	text := KeyArgument(args)
	if r := []rune(text); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return text
}

// KeyArgument returns the argument that says the most about what a call does, such as its path or its command, or
// "" if it has none of these.
func KeyArgument(args json.RawMessage) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return ""
	}
	for _, name := range []string{"path", "pattern", "query", "url", "command", "chat_id"} {
		var text string
		if value := all[name]; len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
			continue
		}
		return text
	}
	return ""
}

// EscapeHidden returns a JSON value on one line, in which characters that a reader can't see, or may mistake
// for others, are written as escapes: a person who approves a call must be able to read what will run.
func EscapeHidden(raw json.RawMessage) json.RawMessage {
	var line bytes.Buffer
	if json.Compact(&line, raw) == nil { // then anything that is hidden is in a string
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

// ShowHidden returns a text in which hidden characters are written as escapes, except line feeds and tabs.
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

// isHidden reports whether a reader can't see a character, or may mistake it for another: control characters,
// spaces other than the usual one, characters that change the direction of the text, characters that programs
// should ignore, and unassigned ones.
func isHidden(r rune) bool {
	switch r {
	case '\u2800', '\U00016fe4', '\ufffc': // letters and signs that look like blanks
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// A Call is a tool call as people are shown it: what it would do, and its arguments. The caller has removed
// secrets and invisible characters from both.
type Call struct {
	Shown     string          // what the call would do; "" if only the arguments are known
	Of        []string        // the names of the arguments that Shown includes completely
	Arguments json.RawMessage // all arguments
}

// An argument is a call's argument with its name.
type argument struct{ name, value string }

// remainingArguments returns the arguments that Shown doesn't include, sorted by name. It returns false if the
// arguments are not an object, or if a name occurs twice, because then nobody can tell which of the two counts.
func (c Call) remainingArguments() (list []argument, ok bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(c.Arguments, &all) != nil || countNames(c.Arguments) != len(all) {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if c.Shown != "" && slices.Contains(c.Of, name) {
			continue
		}
		text := string(EscapeHidden(all[name]))
		var words string
		if json.Unmarshal(all[name], &words) == nil {
			text = ShowHidden(words)
		}
		list = append(list, argument{ShowHidden(name), text})
	}
	return list, true
}

// countNames returns how many names a JSON object has. A name that occurs twice counts twice.
func countNames(object json.RawMessage) (n int) {
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token()
	for err == nil && d.More() {
		n++
		var value json.RawMessage
		if _, err = d.Token(); err == nil {
			err = d.Decode(&value)
		}
	}
	return n
}

// Text returns what the call would do, and the arguments that this doesn't include, as lines of text. If nobody can
// tell which arguments count, it returns only the arguments, as they were written.
func (c Call) Text() string {
	others, ok := c.remainingArguments()
	if !ok {
		return strings.ToValidUTF8(string(c.Arguments), "\uFFFD")
	}
	var b strings.Builder
	b.WriteString(c.Shown)
	for _, o := range others {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: %s", o.name, o.value)
	}
	return b.String()
}

// Markdown returns the same as Text, as code blocks and a list, which no text in them can end early.
func (c Call) Markdown() string {
	others, ok := c.remainingArguments()
	if !ok || c.Shown == "" && len(others) == 0 {
		return fenced(strings.ToValidUTF8(string(c.Arguments), "\uFFFD"))
	}
	var parts []string
	if c.Shown != "" {
		parts = append(parts, fenced(c.Shown))
	}
	var list []string
	for _, o := range others {
		if strings.ContainsAny(o.value, "\n`") || len(o.value) > maxInline || o.value == "" {
			list = append(list, fmt.Sprintf("%s:\n\n%s", Words(o.name), fenced(o.value)))
		} else {
			list = append(list, fmt.Sprintf("%s: `%s`", Words(o.name), o.value))
		}
	}
	if len(list) > 0 {
		parts = append(parts, strings.Join(list, "\n\n"))
	}
	return strings.Join(parts, "\n\n")
}

// IsLong reports whether the text that people are shown of a call is too long for a chat message.
func IsLong(text string) bool { return len(text) > maxOfCall }

// BeginningAndEnd returns the beginning and the end of a long text as code blocks, and says how many bytes are
// left out between them.
func BeginningAndEnd(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	// Each run of invalid bytes became one character, so the text may be shorter than it was.
	head := strings.ToValidUTF8(text[:min(headOfCall, len(text))], "")
	tail := strings.ToValidUTF8(text[max(len(text)-tailOfCall, len(head)):], "")
	return fmt.Sprintf("%s\n\n… %d bytes are left out here …\n\n%s", fenced(head), len(text)-len(head)-len(tail), fenced(tail))
}

// A Part is one piece of what people are shown of a call.
type Part struct {
	Name string `json:"name,omitempty"` // of the argument; "" for what the call would do
	Text string `json:"text"`
}

// Parts returns the same as Text in pieces: what the call would do, then each of the other arguments. If nobody
// can tell which arguments count, there is only one piece, with the arguments as they were written.
func (c Call) Parts() []Part {
	others, ok := c.remainingArguments()
	if !ok || c.Shown == "" && len(others) == 0 {
		return []Part{{Text: ShowHidden(string(c.Arguments))}}
	}
	var parts []Part
	if c.Shown != "" {
		parts = append(parts, Part{Text: c.Shown})
	}
	for _, o := range others {
		parts = append(parts, Part{cmp.Or(o.name, `""`), o.value})
	}
	return parts
}

// File returns the call as a document for a person: what it would do, then all arguments as JSON, and then,
// line by line, each long or multi-line text in the arguments that Shown doesn't include.
func (c Call) File() string {
	var b strings.Builder
	b.WriteString(textEscapes)
	if c.Shown != "" {
		b.WriteString(textWouldDo)
		writeLines(&b, c.Shown)
	}
	b.WriteString(textCalledWith)
	var indented bytes.Buffer
	if json.Indent(&indented, EscapeHidden(c.Arguments), "", "  ") != nil {
		indented.Reset()
		indented.WriteString(ShowHidden(string(c.Arguments)))
	}
	b.Write(indented.Bytes())
	b.WriteByte('\n')
	var args any
	if json.Unmarshal(c.Arguments, &args) == nil {
		if all, ok := args.(map[string]any); ok && c.Shown != "" { // Shown includes some of them
			maps.DeleteFunc(all, func(name string, _ any) bool { return slices.Contains(c.Of, name) })
		}
		writeTexts(&b, "", args)
	}
	return b.String()
}

// writeLines writes a text line by line. Every line begins with a mark, so that no text can pretend to be the
// end of another.
func writeLines(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(ShowHidden(text), "\n") {
		b.WriteString("  | " + line + "\n")
	}
}

// writeTexts writes each long text in a JSON value line by line, under its path in the value.
func writeTexts(b *strings.Builder, path string, value any) {
	switch v := value.(type) {
	case string:
		if len(v) <= 80 && !strings.Contains(v, "\n") {
			return
		}
		fmt.Fprintf(b, textLineByLine, strings.TrimPrefix(path, "."))
		writeLines(b, v)
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

// fenced returns a text as a code block, in a fence that is longer than any in the text.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// Reason returns a denial's reason, shortened, as a Markdown quotation.
func Reason(reason string) string {
	reason = strings.ToValidUTF8(reason, "\uFFFD")
	if len(reason) > maxOfReason {
		reason = strings.ToValidUTF8(reason[:maxOfReason], "") + " …"
	}
	return "> " + strings.ReplaceAll(reason, "\n", "\n> ")
}

// Inline returns a text that can be put between backquotes.
func Inline(text string) string {
	return strings.NewReplacer("`", "'", "\n", `\n`, "\t", `\t`).Replace(ShowHidden(text))
}

// Words returns a text on one line of Markdown that shows the text literally, without any markup of its own. It
// uses character references, because a backslash begins a formula before some characters.
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
