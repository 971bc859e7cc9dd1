package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
	"unicode/utf8"
)

// markdown is a text that is printed as it is.
type markdown string

// errLong ends a template that writes more than anybody reads.
var errLong = errors.New("the text is too long")

// maxText bounds what a template writes, in bytes.
const maxText = 8000

// Check says what is wrong with a template that somebody wrote, with the line
// of the template, or nil.
func Check(text string) error {
	_, err := compile("template", text)
	return err
}

// compile parses a template and makes it escape every value that it prints.
// Conditions and comparisons see values as they were posted.
func compile(name, text string) (*template.Template, error) {
	t, err := template.New(name).Funcs(functions()).Option("missingkey=zero").Parse(text)
	if err != nil {
		return nil, errors.New(parserWords(err))
	}
	for _, each := range t.Templates() {
		if each.Tree != nil {
			escapeList(each.Root)
		}
	}
	return t, nil
}

// parserWords is what the parser says of a template, which it gives as text only:
// its prefix says nothing.
func parserWords(err error) string {
	return strings.TrimPrefix(err.Error(), "template: ")
}

// escaper is the name under which templates call shown; no template can.
const escaper = "_shown"

// escapeList puts the escaper at the end of every pipeline that prints.
func escapeList(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				escapePipe(n.Pipe)
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

func escapePipe(p *parse.PipeNode) {
	call := parse.NewIdentifier(escaper).SetPos(p.Pos)
	p.Cmds = append(p.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: p.Pos, Args: []parse.Node{call}})
}

// functions are what templates can call beside Go's own.
func functions() template.FuncMap {
	return template.FuncMap{
		escaper:    shown,
		"raw":      func(v any) markdown { return markdown(plain(v)) },
		"code":     func(v any) markdown { return markdown(codeSpan(plain(v))) },
		"upper":    func(v any) string { return strings.ToUpper(plain(v)) },
		"lower":    func(v any) string { return strings.ToLower(plain(v)) },
		"join":     join,
		"default":  otherwise,
		"truncate": truncate,
		"date":     date,
		"json":     indented,
	}
}

// shown is a value as it is printed: escaped, unless it is markdown already.
func shown(v any) markdown {
	if m, ok := v.(markdown); ok {
		return m
	}
	return markdown(escape(plain(v)))
}

// plain is a value of JSON as text; what is missing is nothing.
func plain(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case markdown:
		return string(x)
	case json.Number:
		return x.String()
	case bool, int:
		return fmt.Sprint(x)
	case map[string]any, []any:
		body, err := json.Marshal(x)
		if err != nil { // it came from JSON
			return ""
		}
		return string(body)
	}
	return fmt.Sprint(v)
}

// codeSpan shows a text as code on one line; a tick in it becomes a quote.
func codeSpan(s string) string {
	s = strings.Join(strings.Fields(clean(s)), " ")
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(s, "`", "'") + "`"
}

func join(by string, v any) string {
	list, ok := v.([]any)
	if !ok {
		return plain(v)
	}
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = plain(item)
	}
	return strings.Join(texts, by)
}

// otherwise is {{ .key | default "none" }}.
func otherwise(instead string, v any) string {
	if s := plain(v); s != "" {
		return s
	}
	return instead
}

// truncate cuts a text to so many characters.
func truncate(most int, v any) string {
	s := plain(v)
	if most < 1 || utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// date shows a time of RFC 3339 in a layout of Go's, in UTC.
func date(layout string, v any) string {
	at, err := time.Parse(time.RFC3339Nano, plain(v))
	if err != nil {
		return plain(v)
	}
	return at.UTC().Format(layout)
}

// indented is a value as a block of JSON.
func indented(v any) markdown {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // it came from JSON
		return ""
	}
	return codeBlock("json", string(body), maxText)
}

// codeBlock shows a text as it is, cut to so many bytes.
func codeBlock(kind, text string, most int) markdown {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, ""), "```", "``"+zeroWidth+"`")
	return markdown("```" + kind + "\n" + cut(text, most) + "\n```")
}

// cut shortens a text to so many bytes, at a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// execute runs a template. What is too long is an error: half a link, or half
// of a mark, would not be what was meant.
func execute(t *template.Template, data any) (string, error) {
	b := &bounded{}
	if err := t.Execute(b, data); err != nil {
		return "", fmt.Errorf("run the template: %w", err)
	}
	return b.String(), nil
}

// A bounded buffer refuses what is beyond maxText.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxText {
		return 0, errLong
	}
	return b.Buffer.Write(p)
}

// count is a number in words for few, as titles have it.
func count(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return strconv.Itoa(n) + " " + many
}
