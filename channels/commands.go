package channels

import (
	"strings"
	"unicode"

	"parley/bus"
)

// Commands lists the names of the commands that people can give in a chat.
func Commands() []string {
	return []string{"new", "stop", "status", "usage", "context", "compact", "approve", "deny", "answer", "forget", "export", "memory", "recall", "link", "undo", "ui", "help"}
}

// AsCommand turns a message that begins with a slash and the name of a known command into that command; `urgent`
// reports that the command must not wait for the running turn. /start, which platforms send when a chat begins,
// becomes help. Any other message is returned unchanged.
func AsCommand(in bus.Inbound) (said bus.Inbound, urgent bool) {
	in.Kind = bus.Said
	first, args := cutWord(in.Text)
	name, ok := strings.CutPrefix(first, "/")
	if !ok {
		return in, false
	}
	name = strings.ToLower(name)
	switch name {
	case "new", "compact", "help", "undo", "forget", "export", "memory", "recall", "link", "ui":
	case "stop", "status", "usage", "context", "approve", "deny", "answer":
		urgent = true
	case "start":
		name = "help"
	default:
		return in, false
	}
	in.Kind, in.Text, in.Args = bus.Command, name, args
	return in, urgent
}

// UnknownCommand returns the name of the command in a text that looks like a command but names none that exists, so
// that a typo does not reach a model. It returns "" for any other text, such as one that begins with a path.
func UnknownCommand(text string) string {
	first, _ := cutWord(text)
	name, is := strings.CutPrefix(first, "/")
	if !is || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != '_' }) {
		return ""
	}
	if said, _ := AsCommand(bus.Inbound{Text: text}); said.Kind == bus.Command {
		return ""
	}
	return strings.ToLower(name)
}

// IsOwnData reports whether a command concerns the sender's own data and no session's turns: what they said, what
// is remembered about them, searches in either, their accounts on other channels, and their link to the web page.
func IsOwnData(command bus.Inbound) bool {
	if command.Kind != bus.Command {
		return false
	}
	switch command.Text {
	case "forget", "export", "memory", "recall", "link", "ui":
		return true
	}
	return false
}

// AnswersAsk reports whether a command answers an ask and names the ask's id.
func AnswersAsk(command bus.Inbound) bool {
	switch command.Text {
	case "approve", "deny", "answer":
	default:
		return false
	}
	id, _ := cutWord(command.Args)
	id = strings.ToLower(strings.Trim(id, "`"))
	return len(id) == bus.AskIDLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// cutWord splits a text at its first white space into the first word and the trimmed rest.
func cutWord(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}
