package markup

import (
	"strconv"
	"strings"

	"parley/channels/markup/document"
)

// htmlDialect is the dialect of HTML pages. Its HTML loads and runs nothing: it contains no pictures, only links,
// code and cells have attributes, and HTML in the source becomes text.
type htmlDialect struct{}

// size counts what is visible, so it leaves out line ends between tags.
func (htmlDialect) size(text string) size {
	return size{units: telegramSize(strings.ReplaceAll(text, ">\n", ">")).units, bytes: len(text)}
}

func (htmlDialect) largest(limit int) size { return limitedByLength(limit) }

// rendersLink allows links to the web and to email addresses.
func (htmlDialect) rendersLink(s document.Span, _ int) bool {
	scheme, _, _ := strings.Cut(strings.ToLower(s.URL), ":")
	return len(s.URL) <= document.MaxLink && (scheme == "http" || scheme == "https" || scheme == "mailto")
}

func (htmlDialect) tableForm(document.Block) form { return formTable }

func (x htmlDialect) renderBlock(b document.Block) string {
	switch b.Kind {
	case document.Heading:
		level := strconv.Itoa(b.Level)
		return "<h" + level + ">" + inlineText(x, b.Spans) + "</h" + level + ">"
	case document.CodeBlock:
		code := "<pre><code>"
		if b.Info != "" {
			code = `<pre><code class="language-` + escapeHTML(b.Info) + `">`
		}
		for _, line := range b.Lines {
			code += escapeHTML(line) + "\n"
		}
		return code + "</code></pre>"
	case document.Table:
		return x.renderTable(b)
	case document.Rule:
		return "<hr>"
	}
	text := inlineText(x, b.Spans)
	if c := b.Container; text == "" || c != nil && c.List != nil && c.List.Tight {
		return text
	}
	return "<p>" + text + "</p>"
}

func (x htmlDialect) renderTable(b document.Block) string {
	var t strings.Builder
	row := func(tag string, cells []document.Cell) {
		t.WriteString("<tr>")
		for i := range b.Head {
			t.WriteString("\n<" + tag + [...]string{"", ` align="left"`, ` align="center"`, ` align="right"`}[alignOf(b.Align, i)] + ">")
			if i < len(cells) {
				t.WriteString(inlineText(x, cells[i]))
			}
			t.WriteString("</" + tag + ">")
		}
		t.WriteString("\n</tr>\n")
	}
	t.WriteString("<table>\n<thead>\n")
	row("th", b.Head)
	t.WriteString("</thead>\n")
	if len(b.Rows) > 0 {
		t.WriteString("<tbody>\n")
		for _, cells := range b.Rows {
			row("td", cells)
		}
		t.WriteString("</tbody>\n")
	}
	t.WriteString("</table>")
	return t.String()
}

// join opens and closes quotes, lists and items around the blocks inside them.
func (htmlDialect) join(all *strings.Builder, frags []renderedBlock) {
	var to strings.Builder
	var open []*document.Container
	for i, f := range frags {
		path := pathTo(f.container)
		shared := 0
		for shared < len(open) && shared < len(path) && open[shared] == path[shared] {
			shared++
		}
		if i > 0 && len(open) == shared && !strings.HasSuffix(to.String(), "\n") {
			to.WriteString("\n")
		}
		closeContainers(&to, open, shared, path)
		openContainers(&to, open, path[shared:], shared)
		to.WriteString(f.text)
		open = path
	}
	closeContainers(&to, open, 0, nil)
	all.WriteString(strings.TrimSpace(to.String()))
}

// pathTo returns the containers around c, outermost first, with c at the end.
func pathTo(c *document.Container) (path []*document.Container) {
	for ; c != nil; c = c.Parent {
		path = append([]*document.Container{c}, path...)
	}
	return path
}

// closeContainers writes the closing tags of open containers (quotes and list items), innermost first. The
// outermost shared containers stay open, because the next block is inside them too. next are all containers of that
// block: if the first one that is not shared is an item in the same list as the item that was closed last, the list
// stays open.
func closeContainers(to *strings.Builder, open []*document.Container, shared int, next []*document.Container) {
	for i := len(open) - 1; i >= shared; i-- {
		c := open[i]
		if c.List == nil {
			to.WriteString("\n</blockquote>\n")
			continue
		}
		to.WriteString("</li>\n")
		if i == shared && i < len(next) && next[i].List == c.List {
			continue
		}
		to.WriteString(listTag(c, "</", "") + "\n")
	}
}

// openContainers writes the opening tags of the inner containers. The first shared of the open containers stay open
// around them; a list that stayed open is not opened again.
func openContainers(to *strings.Builder, open, inner []*document.Container, shared int) {
	for i, c := range inner {
		if c.List == nil {
			to.WriteString("<blockquote>\n")
			continue
		}
		goesOn := i == 0 && shared < len(open) && open[shared].List == c.List
		if !goesOn {
			start := ""
			if c.List.Ordered && c.Number != 1 {
				start = ` start="` + strconv.Itoa(c.Number) + `"`
			}
			to.WriteString(listTag(c, "<", start) + "\n")
		}
		to.WriteString("<li>")
	}
}

// listTag returns a tag for the list around an item, with its beginning (< or </) and attributes.
func listTag(c *document.Container, begin, attributes string) string {
	if c.List.Ordered {
		return begin + "ol" + attributes + ">"
	}
	return begin + "ul" + attributes + ">"
}

func (htmlDialect) defuse(plain string) string { return plain }

func (htmlDialect) linksInnermost() bool { return false }

func (htmlDialect) shownStyle(s document.Span) document.Style {
	return s.Style & (document.Bold | document.Italic | document.Strike)
}

// htmlElement returns the name of the HTML element of a style.
func (m mark) htmlElement() string {
	switch m.style {
	case document.Bold:
		return "strong"
	case document.Italic:
		return "em"
	}
	return "del"
}

func (htmlDialect) openMark(b *strings.Builder, m mark) {
	if m.url != "" {
		b.WriteString(`<a href="` + escapeHTML(m.url) + `" rel="nofollow noopener noreferrer">`)
		return
	}
	b.WriteString("<" + m.htmlElement() + ">")
}

func (htmlDialect) closeMark(b *strings.Builder, m mark, _ rune) {
	if m.url != "" {
		b.WriteString("</a>")
		return
	}
	b.WriteString("</" + m.htmlElement() + ">")
}

func (htmlDialect) writeText(b *strings.Builder, s document.Span, _ bool) {
	switch {
	case s.Style == document.Marker: // its list shows it
	case s.Style&document.Code != 0:
		b.WriteString("<code>" + escapeHTML(s.Text) + "</code>")
	default:
		b.WriteString(strings.ReplaceAll(escapeHTML(s.Text), "\n", "<br>\n"))
	}
}

func (x htmlDialect) writeBareLink(b *strings.Builder, s document.Span) {
	x.openMark(b, mark{url: s.URL})
	b.WriteString(escapeHTML(s.Text))
	x.closeMark(b, mark{url: s.URL}, 0)
}
