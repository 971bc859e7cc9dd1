package prompt

import (
	"fmt"
	"strings"
)

// A Place describes where a conversation takes place, as far as that never changes during the conversation.
type Place struct {
	Channel  string // its configured name
	Platform string // what the platform is called; "" for a channel that isn't on a platform
	Private  bool   // nobody but one person and the bot reads it
	Thread   bool   // it is a thread, and the rest of the chat is not part of it
	Length   int    // the most characters in one message; 0 if there is no limit
	Files    bool   // files can be sent there
	Buttons  bool   // asks are shown with buttons
	Edits    bool   // people see an answer grow while it is written
}

// File returns what the model is told about the place; the zero File for a place that
// isn't on a platform.
func (p Place) File() File {
	if p.Platform == "" {
		return File{}
	}
	what, who := "a chat", "several people may write there, and others read along"
	if p.Private {
		what, who = "a private chat", "nobody reads it but you and the person who writes to you"
	}
	if p.Thread {
		what = "a thread in " + what
	}
	lines := []string{fmt.Sprintf("You talk in %s on %s (the channel `%s`): %s.", what, p.Platform, p.Channel, who)}
	if p.Length > 0 {
		lines = append(lines, fmt.Sprintf("- Markdown is shown as %s can. What is longer than %d characters goes out as several messages.", p.Platform, p.Length))
	}
	if p.Edits {
		lines = append(lines, "- People may see your answer while you write it.")
	}
	if p.Files {
		lines = append(lines, "- Files can be sent there.")
	} else {
		lines = append(lines, "- No files can be sent there: say where a file is, or what is in it.")
	}
	if p.Buttons {
		lines = append(lines, "- Requests for approval, and questions with choices, have buttons there.")
	}
	return File{Name: "conversation", From: "system", Text: strings.Join(lines, "\n")}
}
