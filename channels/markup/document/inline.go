package document

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// spansOf returns the text of a block as spans.
func (t *tree) spansOf(n ast.Node) []Span {
	var s []Span
	t.appendSpans(&s, n, 0, "")
	return coalesce(s)
}

// coalesce joins adjacent spans that look the same.
func coalesce(spans []Span) []Span {
	joined := spans[:0]
	for i := 0; i < len(spans); {
		j := i + 1
		for j < len(spans) && spans[j].Style == spans[i].Style && spans[j].URL == spans[i].URL && spans[i].Emoji == "" && spans[j].Emoji == "" {
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

// appendSpans appends the content of a node, in the style and with the link of the surrounding node.
func (t *tree) appendSpans(to *[]Span, parent ast.Node, st Style, url string) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			t.addText(to, n, st, url)
		case *emoji:
			*to = append(*to, Span{Text: n.character, Style: st, URL: url, Emoji: n.name})
		case *ast.CodeSpan:
			if _, ok := n.AttributeString(formulaMark); ok {
				t.addFormula(to, n, st, url)
				continue
			}
			t.addCodeSpan(to, n, st, url)
		case *ast.Emphasis:
			more := Italic
			if n.Level > 1 {
				more = Bold
			}
			t.appendSpans(to, n, st|more, url)
		case *tables.Strikethrough:
			t.appendSpans(to, n, st|Strike, url)
		case *ast.Link:
			t.addLink(to, n, linkTarget(n.Destination), st)
		case *ast.Image:
			t.addImage(to, n, st, url)
		case *ast.AutoLink:
			label, target := string(n.Label(t.source)), string(n.URL(t.source))
			if n.AutoLinkType == ast.AutoLinkEmail {
				target = "mailto:" + label
			}
			target = percentEncode(target)
			if !isLink(target) {
				target = ""
			}
			appendSpan(to, label, st, target)
		case *ast.RawHTML:
			t.addRawHTML(to, n, st, url)
		case *tables.TaskCheckBox:
			box := "☐ "
			if n.IsChecked {
				box = "☑ "
			}
			appendSpan(to, box, st, url)
		default:
			t.appendSpans(to, n, st, url)
		}
	}
}

func (t *tree) addText(to *[]Span, n *ast.Text, st Style, url string) {
	s := string(n.Segment.Value(t.source))
	if !n.IsRaw() {
		s = Unescape(s)
	}
	appendSpan(to, s, st, url)
	if n.SoftLineBreak() || n.HardLineBreak() {
		t.addNewline(to)
	}
}

// addNewline adds a line end without any style, because not every platform continues a style across lines. It
// removes blanks before the line end.
func (t *tree) addNewline(to *[]Span) {
	for n := len(*to); n > 0 && (*to)[n-1].Style&(Code|Marker) == 0; n = len(*to) {
		last := &(*to)[n-1]
		if last.Text = strings.TrimRight(last.Text, " \t"); last.Text != "" {
			break
		}
		*to = (*to)[:n-1]
	}
	appendSpan(to, "\n", 0, "")
	if t.indent != "" {
		appendSpan(to, t.indent, Marker, "")
	}
}

func (t *tree) addCodeSpan(to *[]Span, n ast.Node, st Style, url string) {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c, ok := c.(*ast.Text); ok {
			b.Write(c.Segment.Value(t.source))
		}
	}
	appendSpan(to, strings.ReplaceAll(b.String(), "\n", " "), st|Code, url)
}

// addFormula adds a formula as it was written, with its later lines indented.
func (t *tree) addFormula(to *[]Span, n ast.Node, st Style, url string) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		line, ok := c.(*ast.Text)
		if !ok {
			continue
		}
		s, more := strings.CutSuffix(string(line.Segment.Value(t.source)), "\n")
		appendSpan(to, s, st, url)
		if more {
			t.addNewline(to)
		}
	}
}

func (t *tree) addRawHTML(to *[]Span, n *ast.RawHTML, st Style, url string) {
	var b strings.Builder
	for i := range n.Segments.Len() {
		s := n.Segments.At(i)
		b.Write(s.Value(t.source))
	}
	switch tag := b.String(); strings.ToLower(strings.ReplaceAll(tag, " ", "")) {
	case "<br>", "<br/>":
		t.addNewline(to)
	default:
		appendSpan(to, tag, st, url)
	}
}

// addLink adds a link; if its target leads nowhere from a chat, the target is written as text.
func (t *tree) addLink(to *[]Span, n ast.Node, target string, st Style) {
	before := len(*to)
	if !isLink(target) {
		t.appendSpans(to, n, st, "")
		if target != "" {
			appendSpan(to, " ("+target+")", st, "")
		}
		return
	}
	t.appendSpans(to, n, st, target)
	if len(*to) == before {
		appendSpan(to, target, st, target)
	}
}

// addImage appends an image as its description, which links to the picture. Styles and links inside the description
// are dropped, because whoever wrote it could make it look like something else.
func (t *tree) addImage(to *[]Span, n *ast.Image, st Style, url string) {
	var described []Span
	t.appendSpans(&described, n, 0, "")
	var text strings.Builder
	for _, s := range described {
		text.WriteString(s.Text)
	}
	target, more := url, "" // for a badge, the link matters more than the picture
	if target == "" {
		if target = linkTarget(n.Destination); !isLink(target) {
			if target != "" {
				more = " (" + target + ")"
			}
			target = ""
		}
	}
	if text.Len() == 0 && url == "" {
		text.WriteString(target)
	}
	appendSpan(to, text.String(), st, target)
	appendSpan(to, more, st, "")
}

// isLink reports whether a target may be a link; other targets could run or open something.
func isLink(target string) bool {
	scheme, rest, ok := strings.Cut(target, ":")
	if !ok || len(rest) < 2 || strings.ContainsAny(target, linkEndingCharacters+"\t\n") {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "tg":
		return len(rest) > 2 && strings.HasPrefix(rest, "//")
	case "mailto":
		return true
	}
	return false
}

// linkTarget returns a link's target, given the form in which it is written in the text.
func linkTarget(written []byte) string { return percentEncode(Unescape(string(written))) }

// linkEndingCharacters contains the characters that could end a link where it is written in a text.
const linkEndingCharacters = " <>\"`|\\"

// percentEncode percent-encodes the characters that may not occur in a link's target, as browsers do.
func percentEncode(target string) string {
	if !strings.ContainsAny(target, linkEndingCharacters) || !strings.Contains(target, "://") {
		return target
	}
	var b strings.Builder
	for i := range len(target) {
		if c := target[i]; strings.IndexByte(linkEndingCharacters, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// appendSpan appends a span with the text s, unless s is empty.
func appendSpan(to *[]Span, s string, st Style, url string) {
	if s != "" {
		*to = append(*to, Span{Text: s, Style: st, URL: url})
	}
}
