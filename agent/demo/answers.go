package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/tools"
)

// An outcome has the fields that can occur in the results of the tools that the model
// calls.
type outcome struct {
	Error     *tools.Error      `json:"error"`
	Content   string            `json:"content"`
	Message   string            `json:"message"`
	Status    string            `json:"status"`
	Entries   []json.RawMessage `json:"entries"`
	Matches   []json.RawMessage `json:"matches"`
	Truncated string            `json:"truncated"`       // why more matches are missing
	Cut       json.RawMessage   `json:"_truncated_json"` // set if the result was too long; the other fields are missing then
}

// resultText returns a text that tells the person the result of a request.
func (q request) resultText(result json.RawMessage) string {
	var o outcome
	done := "Done: " + q.words + ". "
	if err := json.Unmarshal(result, &o); err != nil || o.Cut != nil {
		return done + textCameBack + fenced(string(result))
	}
	found := o.text()
	switch {
	case o.Error != nil:
		return fmt.Sprintf(textFailed, q.words, o.Error.Message, o.Error.Code)
	case strings.TrimSpace(found) != "":
		return done + textFound + fenced(found)
	case o.Message != "":
		return done + o.Message + "."
	case o.Status != "":
		return done + textOnItsWay
	}
	return done + textFoundNothing
}

// text returns what was found, line by line, or "" if nothing was found.
func (o outcome) text() string {
	lines := []string{strings.TrimSuffix(o.Content, "\n")}
	for _, raw := range append(o.Entries, o.Matches...) {
		lines = append(lines, entryText(raw))
	}
	if o.Truncated != "" {
		lines = append(lines, "… and more")
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// entryText returns the text for an entry of a directory, a line of a file, or a paragraph of the memory.
func entryText(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var e struct {
		Name, Path, Text string
		Line             int
		IsDir            bool `json:"is_dir"`
	}
	switch err := json.Unmarshal(raw, &e); {
	case err == nil && e.Path != "":
		return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Text)
	case err == nil && e.IsDir:
		return e.Name + "/"
	case err == nil && e.Name != "":
		return e.Name
	}
	return "… and more" // the last element of a shortened list is of another type
}

// fenced returns a text between fences that are longer than any in the text.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}
