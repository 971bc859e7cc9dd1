package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/tools"
)

// what says in words what a request is about.
func (q request) what() string {
	switch q.tool {
	case toolList:
		return "list " + place(q.args["path"])
	case toolRead:
		return "read " + code(q.args["path"])
	case toolWrite:
		return "write " + code(q.args["path"])
	case toolGrep:
		return "search " + place(q.args["path"])
	case toolRemember:
		return "remember that"
	case toolRecall:
		return "look at what I remember"
	default:
		return "pass that on to " + destination(q.args)
	}
}

func place(path string) string {
	if path == "" || path == "." {
		return "the workspace"
	}
	return code(path)
}

func destination(args map[string]string) string {
	return strings.TrimSpace(args["channel"] + " " + args["chat_id"])
}

func code(text string) string { return "`" + text + "`" }

// tell says in words what came of a request.
func (q request) tell(s step) string {
	raw := s.result.Content
	if failure, failed := failureOf(raw); failed {
		return fmt.Sprintf("I could not %s. %s (%s)", q.what(), failure.Message, failure.Code)
	}
	if s.result.Failed || len(raw) == 0 {
		return fmt.Sprintf("I could not %s.", q.what())
	}
	var result outcome
	if err := json.Unmarshal(raw, &result); err != nil || result.Cut != nil {
		return fmt.Sprintf("I did %s, and this came back:\n\n%s", q.what(), fenced(string(raw)))
	}
	switch q.tool {
	case toolList:
		return result.list(place(q.args["path"]))
	case toolRead:
		if result.Content == "" {
			return code(q.args["path"]) + " is empty."
		}
		return code(q.args["path"]) + " says:\n\n" + fenced(result.Content)
	case toolGrep:
		return result.found(place(q.args["path"]))
	case toolRecall:
		return result.recalled()
	case toolRemember:
		return "I will remember that. " + result.Message + "."
	case toolWrite:
		return result.Message + "."
	default:
		return fmt.Sprintf("I have handed that over for %s; it is on its way.", destination(q.args))
	}
}

// outcome is what the tools give back, all of them in one.
type outcome struct {
	Content string            `json:"content"`
	Message string            `json:"message"`
	Entries []json.RawMessage `json:"entries"`
	Matches []json.RawMessage `json:"matches"`
	Query   string            `json:"query"`
	// Truncated says why there are no more matches.
	Truncated string `json:"truncated"`
	// Cut stands in place of all else when the result was too long.
	Cut json.RawMessage `json:"_truncated_json"`
}

func (o outcome) list(where string) string {
	var b strings.Builder
	count := 0
	for _, raw := range o.Entries {
		var e struct {
			Name  string `json:"name"`
			IsDir bool   `json:"is_dir"`
			Size  int64  `json:"size"`
		}
		if json.Unmarshal(raw, &e) != nil || e.Name == "" { // what a cut list ends with
			b.WriteString("\n- … and more")
			continue
		}
		count++
		if e.IsDir {
			fmt.Fprintf(&b, "\n- %s", code(e.Name+"/"))
		} else {
			fmt.Fprintf(&b, "\n- %s (%s)", code(e.Name), counted(int(e.Size), "byte", "bytes"))
		}
	}
	if count == 0 {
		return capital(where) + " is empty."
	}
	return fmt.Sprintf("%s has %s:\n%s", capital(where), counted(count, "entry", "entries"), b.String())
}

func (o outcome) found(where string) string {
	var b strings.Builder
	count := 0
	for _, raw := range o.Matches {
		var m struct {
			Path string `json:"path"`
			Line int    `json:"line"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &m) != nil || m.Path == "" {
			b.WriteString("… and more\n")
			continue
		}
		count++
		fmt.Fprintf(&b, "%s:%d: %s\n", m.Path, m.Line, strings.TrimRight(m.Text, "\r\n"))
	}
	if o.Truncated != "" {
		b.WriteString("… and more\n")
	}
	if count == 0 {
		return fmt.Sprintf("I found nothing of the kind in %s.", where)
	}
	return fmt.Sprintf("I found %s in %s:\n\n%s", counted(count, "line", "lines"), where, fenced(b.String()))
}

func (o outcome) recalled() string {
	if o.Query == "" {
		if strings.TrimSpace(o.Content) == "" {
			return "I remember nothing yet."
		}
		return "This is what I remember:\n\n" + strings.TrimSpace(o.Content)
	}
	var paragraphs []string
	for _, raw := range o.Matches {
		var p string
		if json.Unmarshal(raw, &p) != nil {
			p = "… and more"
		}
		paragraphs = append(paragraphs, p)
	}
	if len(paragraphs) == 0 {
		return fmt.Sprintf("I remember nothing about %s.", o.Query)
	}
	return fmt.Sprintf("This is what I remember about %s:\n\n%s", o.Query, strings.Join(paragraphs, "\n\n"))
}

// failureOf reads a result that is an error.
func failureOf(content json.RawMessage) (tools.Error, bool) {
	var f struct {
		Error *tools.Error `json:"error"`
	}
	if json.Unmarshal(content, &f) != nil || f.Error == nil {
		return tools.Error{}, false
	}
	f.Error.Message = strings.TrimSpace(f.Error.Message)
	if m := f.Error.Message; m != "" && !strings.HasSuffix(m, ".") {
		f.Error.Message = capital(m) + "."
	}
	return *f.Error, true
}

// fenced puts a text between fences that are longer than any in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// capital begins a sentence, unless with something quoted.
func capital(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
