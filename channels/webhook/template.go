package webhook

import (
	"bytes"
	"errors"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode/utf8"
)

const (
	maxText = 8000    // the maximum number of characters in a message
	cutMark = "\n\n…" // the end of a message that was cut
)

// errTooLong stops a template once it has written more than a message may contain.
var errTooLong = errors.New("the text is too long")

// Check returns an error that says what is wrong with an operator's template, and in which of its lines; nil if the
// template can be used.
func Check(text string) error {
	_, err := compile("template", text)
	return err
}

// compile parses a template and changes it so that every value is escaped when it is printed. Conditions and
// comparisons still see the values as they were posted.
func compile(name, text string) (*template.Template, error) {
	t, err := template.New(name).Funcs(functions()).Parse(text)
	if err != nil {
		return nil, errors.New(parserMessage(err))
	}
	for _, each := range t.Templates() {
		if each.Tree != nil {
			escapeList(each.Root)
		}
	}
	return t, nil
}

// compileGroup parses the template for a group's name. Nothing in it is escaped, because nobody is shown the name
// as Markdown.
func compileGroup(text string) (*template.Template, error) {
	t, err := template.New("group").Funcs(functions()).Parse(text)
	if err != nil {
		return nil, errors.New(parserMessage(err))
	}
	return t, nil
}

// parserMessage returns the message of an error from text/template, which has no typed errors, without the prefix
// that only says that it is about a template.
func parserMessage(err error) string { return strings.TrimPrefix(err.Error(), "template: ") }

// escaperName is the name of the function that compile puts at the end of each pipeline that prints.
const escaperName = "_shown"

// escapeList puts the escaper at the end of every pipeline (such as {{ .text | line }}) that prints. A pipeline
// that declares a variable prints nothing and stays as it is.
func escapeList(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				call := parse.NewIdentifier(escaperName).SetPos(n.Pos)
				n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{call}})
			}
		case *parse.IfNode:
			escapeBranch(&n.BranchNode)
		case *parse.RangeNode:
			escapeBranch(&n.BranchNode)
		case *parse.WithNode:
			escapeBranch(&n.BranchNode)
		}
	}
}

func escapeBranch(n *parse.BranchNode) {
	escapeList(n.List)
	escapeList(n.ElseList)
}

// execute runs a template. If the text is too long, it is cut, at the end of a line if there is one nearby.
func execute(t *template.Template, data any) (string, error) {
	b := &boundedBuffer{}
	if err := t.Execute(b, data); err != nil && !errors.Is(err, errTooLong) {
		return "", errors.New(parserMessage(err))
	}
	text := tidy(b.String())
	if short := cut(text, maxText); len(short) < len(text) {
		if end := strings.LastIndexByte(short, '\n'); end > maxText/2 {
			short = short[:end]
		}
		return short + cutMark, nil
	}
	return text, nil
}

// tidy removes what a template leaves behind when values are missing: blanks at the ends of lines, and all but one
// of several empty lines.
func tidy(text string) string {
	var lines []string
	empty := true
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if line != "" || !empty {
			lines = append(lines, line)
		}
		empty = line == ""
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// cut shortens a text to at most the given number of characters.
func cut(s string, most int) string {
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	for i := range s {
		if most == 0 {
			return s[:i]
		}
		most--
	}
	return s
}

// A boundedBuffer is a buffer that accepts about twice as many bytes as a message can have, and then fails with
// errTooLong.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	const most = 2 * utf8.UTFMax * maxText
	if room := most - b.Len(); len(p) > room {
		b.Buffer.Write(p[:room])
		return room, errTooLong
	}
	return b.Buffer.Write(p)
}
