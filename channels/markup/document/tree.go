package document

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// A tree makes a list of blocks of a document: what nests becomes prefixes and
// flags, so that nothing behind it needs to know of nesting.
type tree struct {
	source []byte
	blocks []Block

	quotes int
	indent string // of the lines of the list item
	first  string // instead of indent, before the item's first line
	gap    bool
}

func (t *tree) walk(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		t.gap = t.gap || n.HasBlankPreviousLines()
		switch n := n.(type) {
		case *ast.Heading:
			if n.ChildCount() == 0 {
				t.add(Block{Kind: Paragraph, Spans: []Span{{Text: strings.Repeat("#", n.Level)}}})
				continue
			}
			t.add(Block{Kind: Heading, Spans: t.inline(n), Level: n.Level})
		case *ast.FencedCodeBlock:
			t.add(Block{Kind: CodeBlock, Lines: t.lines(n.Lines()), Info: language(n.Language(t.source))})
		case *ast.CodeBlock:
			t.add(Block{Kind: CodeBlock, Lines: t.lines(n.Lines())})
		case *ast.HTMLBlock:
			t.html(n)
		case *ast.ThematicBreak:
			t.add(Block{Kind: Rule})
		case *ast.Blockquote:
			t.quotes++
			t.walk(n)
			t.quotes--
		case *ast.List:
			t.list(n)
		case *tables.Table:
			t.gap = true // the parser does not tell
			t.table(n)
		default:
			t.add(Block{Kind: Paragraph, Spans: t.inline(n)})
		}
	}
}

// add puts the list item's marker before the block, if it is the first in one.
func (t *tree) add(b Block) {
	prefix := t.indent
	if t.first != "" {
		prefix = t.first
	}
	switch {
	case b.Kind == Paragraph || b.Kind == Heading:
		if prefix != "" {
			b.Spans = append([]Span{{Text: prefix, Style: Marker}}, b.Spans...)
		}
		t.first = ""
	case t.first != "": // a code block right behind the marker
		t.add(Block{Kind: Paragraph})
	}
	b.Quote = t.quotes > 0 && (b.Kind == Paragraph || b.Kind == Heading)
	if len(b.Spans) == 0 && (b.Kind == Paragraph || b.Kind == Heading) {
		return
	}
	b.Gap, t.gap = t.gap, false
	t.blocks = append(t.blocks, b)
}

func (t *tree) list(list *ast.List) {
	indent := t.indent
	number := list.Start
	for item := list.FirstChild(); item != nil; item = item.NextSibling() {
		t.gap = t.gap || item.HasBlankPreviousLines()
		mark := "• "
		if list.IsOrdered() {
			mark = strconv.Itoa(number) + string(list.Marker) + " "
			number++
		}
		begin := indent
		if t.first != "" { // a list right within an item
			begin = t.first
		}
		t.first = begin + mark
		t.indent = indent + strings.Repeat(" ", len([]rune(mark)))
		t.walk(item)
		if t.first != "" { // an empty item
			t.first = strings.TrimRight(t.first, " ")
			t.add(Block{Kind: Paragraph})
		}
	}
	t.indent = indent
}

func (t *tree) html(n *ast.HTMLBlock) {
	lines := t.lines(n.Lines())
	if n.HasClosure() {
		lines = append(lines, strings.TrimRight(string(n.ClosureLine.Value(t.source)), "\n"))
	}
	t.add(Block{Kind: Paragraph, Spans: []Span{{Text: strings.Join(lines, "\n"+t.indent)}}})
}

func (t *tree) lines(segments *text.Segments) []string {
	lines := make([]string, segments.Len())
	for i := range lines {
		s := segments.At(i)
		lines[i] = strings.TrimRight(string(s.Value(t.source)), "\n")
	}
	return lines
}

// language is the first word of an info string, if it looks like a language.
func language(info []byte) string {
	s := string(info)
	if len(s) > 32 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+#-_.") != "" {
		return ""
	}
	return s
}

// inline is the text of a block, as spans.
func (t *tree) inline(n ast.Node) []Span {
	var s []Span
	t.collect(&s, n, 0, "")
	return coalesce(s)
}

// coalesce joins what looks the same.
func coalesce(spans []Span) []Span {
	joined := spans[:0]
	for i := 0; i < len(spans); {
		j := i + 1
		for j < len(spans) && spans[j].Style == spans[i].Style && spans[j].URL == spans[i].URL {
			j++
		}
		one := spans[i]
		if j > i+1 {
			one.Text = Text(spans[i:j], false)
		}
		joined = append(joined, one)
		i = j
	}
	return joined
}

func (t *tree) collect(to *[]Span, parent ast.Node, st Style, url string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			t.text(to, n, st, url)
		case *ast.String:
			put(to, string(n.Value), st, url)
		case *ast.CodeSpan:
			if _, ok := n.AttributeString(formulaMark); ok {
				t.formula(to, n, st, url)
				continue
			}
			t.codeSpan(to, n, st, url)
		case *ast.Emphasis:
			more := Italic
			if n.Level > 1 {
				more = Bold
			}
			t.collect(to, n, st|more, url)
		case *tables.Strikethrough:
			t.collect(to, n, st|Strike, url)
		case *ast.Link:
			t.link(to, n, Unescape(string(n.Destination)), st)
		case *ast.Image:
			if url != "" { // a badge: what counts is where it leads
				t.collect(to, n, st, url)
				continue
			}
			t.link(to, n, Unescape(string(n.Destination)), st)
		case *ast.AutoLink:
			label, target := string(n.Label(t.source)), string(n.URL(t.source))
			if n.AutoLinkType == ast.AutoLinkEmail || !isLink(target) {
				target = ""
			}
			put(to, label, st, target)
		case *ast.RawHTML:
			t.rawHTML(to, n, st, url)
		case *tables.TaskCheckBox:
			box := "☐ "
			if n.IsChecked {
				box = "☑ "
			}
			put(to, box, st, url)
		default:
			t.collect(to, n, st, url)
		}
	}
}

func (t *tree) text(to *[]Span, n *ast.Text, st Style, url string) {
	s := string(n.Segment.Value(t.source))
	if !n.IsRaw() {
		s = Unescape(s)
	}
	put(to, s, st, url)
	if n.SoftLineBreak() || n.HardLineBreak() {
		t.newline(to)
	}
}

// newline is never within a style: not every platform carries one over lines.
func (t *tree) newline(to *[]Span) {
	put(to, "\n", 0, "")
	if t.indent != "" {
		put(to, t.indent, Marker, "")
	}
}

func (t *tree) codeSpan(to *[]Span, n ast.Node, st Style, url string) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c, ok := c.(*ast.Text); ok {
			b.Write(c.Segment.Value(t.source))
		}
	}
	put(to, strings.ReplaceAll(b.String(), "\n", " "), st|Code, url)
}

// formula is written as it came; a line of it that begins anew is indented.
func (t *tree) formula(to *[]Span, n ast.Node, st Style, url string) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		line, ok := c.(*ast.Text)
		if !ok {
			continue
		}
		s, more := strings.CutSuffix(string(line.Segment.Value(t.source)), "\n")
		put(to, s, st, url)
		if more {
			t.newline(to)
		}
	}
}

func (t *tree) rawHTML(to *[]Span, n *ast.RawHTML, st Style, url string) {
	var b strings.Builder
	for i := range n.Segments.Len() {
		s := n.Segments.At(i)
		b.Write(s.Value(t.source))
	}
	switch tag := b.String(); strings.ToLower(strings.ReplaceAll(tag, " ", "")) {
	case "<br>", "<br/>":
		t.newline(to)
	default:
		put(to, tag, st, url)
	}
}

// link keeps the target of a link that leads nowhere from a chat as text.
func (t *tree) link(to *[]Span, n ast.Node, target string, st Style) {
	before := len(*to)
	if !isLink(target) {
		t.collect(to, n, st, "")
		if target != "" {
			put(to, " ("+target+")", st, "")
		}
		return
	}
	t.collect(to, n, st, target)
	if len(*to) == before {
		put(to, target, st, target)
	}
}

// isLink tells of a target that may be a link; others could run or open things.
func isLink(target string) bool {
	scheme, rest, ok := strings.Cut(target, ":")
	if !ok || len(rest) < 2 || strings.ContainsAny(target, " \t\n<>\"`|\\") {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto", "tg":
		return true
	}
	return false
}

func put(to *[]Span, s string, st Style, url string) {
	if s != "" {
		*to = append(*to, Span{Text: s, Style: st, URL: url})
	}
}
