package channels

import (
	"strings"
	"unicode"

	"parley/bus"
)

// Commands are the names of the commands that a chat has.
func Commands() []string {
	return []string{"new", "stop", "status", "usage", "context", "compact", "approve", "deny", "answer", "forget", "export", "memory", "link", "undo", "help"}
}

// AsCommand makes a command of what begins with a slash and the name of one that
// is known; /start is what platforms send to begin with, and means help. Other
// words with a slash are ordinary text.
func AsCommand(in bus.Inbound) (said bus.Inbound, urgent bool) {
	in.Kind = bus.Said
	first, args := cutWord(in.Text)
	name, ok := strings.CutPrefix(first, "/")
	if !ok {
		return in, false
	}
	name = strings.ToLower(name)
	switch name {
	case "new", "compact", "help", "undo", "forget", "export", "memory", "link":
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

// IsOwnData tells of a command that it is about its sender: what they said, what is
// remembered of them, and who they are on other channels.
func IsOwnData(command bus.Inbound) bool {
	if command.Kind != bus.Command {
		return false
	}
	switch command.Text {
	case "forget", "export", "memory", "link":
		return true
	}
	return false
}

// Answers tells of a command that it answers a request by its id.
func Answers(command bus.Inbound) bool {
	switch command.Text {
	case "approve", "deny", "answer":
	default:
		return false
	}
	id, _ := cutWord(command.Args)
	id = strings.ToLower(strings.Trim(id, "`"))
	return len(id) == bus.AskIDLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func cutWord(text string) (first, rest string) {
	text = strings.TrimSpace(text)
	if i := strings.IndexFunc(text, unicode.IsSpace); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:])
	}
	return text, ""
}
