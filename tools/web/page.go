package web

import (
	"context"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	readability "codeberg.org/readeck/go-readability"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// maxElements and maxNested limit the page that is turned into Markdown: beyond them the work
	// would grow faster than the page.
	maxElements = 30_000
	maxNested   = 100
	// maxSpan limits how many columns or rows a table cell may span.
	maxSpan = 8
	// minArticle is the smallest percentage of a page's text that its article must contain for only
	// the article to be shown.
	minArticle = 30
)

// markdown returns a page as a model reads it: what a person would see of it, or only its article
// if it has one, without scripts, pictures and decoration. If it cannot be read as HTML, the text says so. Soon after
// ctx has ended, markdown gives up and returns ctx's error.
func markdown(ctx context.Context, source string, at *url.URL) (string, error) {
	from := strings.NewReader(source)
	doc, err := html.Parse(readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return from.Read(p)
	}))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "[this page cannot be read as HTML: with raw you see its source]", nil
	}
	c := cleaner{base: at, sheet: newStyleSheet(), elementsLeft: maxElements}
	c.prepare(ctx, doc)
	c.cleanChildren(ctx, doc, 0)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	title := strings.Join(strings.Fields(c.title), " ")
	part := article(doc, at)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	text := render(part)
	switch {
	case c.elementsLeft < 0:
		text += "\n\n[cut: this page has more than " + strconv.Itoa(maxElements) + " elements]"
	case c.sheet.workLeft < 0:
		text += "\n\n[cut: this page's styles are too many to tell what they hide, so the rest is left out: with raw you see its source]"
	}
	if first, _, _ := strings.Cut(text, "\n"); title != "" && strings.Trim(first, "# ") != title {
		text = "# " + title + "\n\n" + text
	}
	return visibleText(text), nil
}

// A readFunc is a function used as an io.Reader.
type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// article returns the part of a page that contains its article, if there is one, or else the whole
// page.
func article(doc *html.Node, from *url.URL) *html.Node {
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	parser.Logger = slog.New(slog.DiscardHandler)
	found, err := parser.ParseDocument(doc, from)
	if err != nil || found.Node == nil || found.Length*100 < textLength(doc)*minArticle {
		return doc
	}
	return found.Node
}

// textLength returns the approximate number of letters in a page's text.
func textLength(n *html.Node) int {
	length := 0
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			length += len([]rune(strings.TrimSpace(d.Data)))
		}
	}
	return length
}

// render writes a page as Markdown.
func render(n *html.Node) string {
	conv := converter.NewConverter(
		converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithHeaderPromotion(true)),
		),
		// Escapes cost a model tokens, and the time to find out which are needed grows with the
		// square of the number of brackets in a text.
		converter.WithEscapeMode(converter.EscapeModeDisabled),
	)
	text, err := conv.ConvertNode(n)
	if err != nil {
		return "[this page cannot be shown as Markdown: with raw you see its source]"
	}
	return strings.TrimSpace(string(text))
}

// A cleaner removes the parts of a page that people would not see and that would cost too much to convert, and rewrites
// links so that they can be followed.
type cleaner struct {
	base         *url.URL
	sheet        styleSheet
	title        string
	elementsLeft int // how many more elements may follow
}

// prepare collects what applies to the whole page, until ctx ends: its title, its styles, and the URL that its links
// are relative to.
func (c *cleaner) prepare(ctx context.Context, doc *html.Node) {
	selector := compoundSelector()
	based := false
	for n := range doc.Descendants() {
		switch {
		case ctx.Err() != nil:
			return
		case n.Type != html.ElementNode || n.FirstChild == nil && n.DataAtom != atom.Base:
		case n.DataAtom == atom.Title && c.title == "" && n.Namespace == "":
			c.title = clip(n.FirstChild.Data, 300)
		case n.DataAtom == atom.Style:
			c.sheet.read(ctx, n.FirstChild.Data, selector)
		case n.DataAtom == atom.Base && !based:
			if href, err := c.base.Parse(attribute(n, "href")); err == nil {
				c.base, based = href, true
			}
		}
	}
}

// attribute returns the value of an attribute; "" if the element has none.
func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// cleanChildren cleans everything below a node, until ctx ends. If there are too many elements, it removes the rest; of
// elements that are nested too deep, it keeps only the content.
func (c *cleaner) cleanChildren(ctx context.Context, n *html.Node, depth int) {
	var next *html.Node
	for child := n.FirstChild; child != nil && ctx.Err() == nil; child = next {
		next = child.NextSibling
		switch child.Type {
		case html.CommentNode, html.DoctypeNode:
			n.RemoveChild(child)
		case html.TextNode:
			child.Data = strings.ReplaceAll(child.Data, "![", "[") // ![ would begin a picture
		case html.ElementNode:
			if c.elementsLeft--; c.elementsLeft < 0 || c.isDropped(child) {
				n.RemoveChild(child)
				continue
			}
			if depth > maxNested {
				next = unwrap(child)
				continue
			}
			if child.DataAtom == atom.Img {
				c.replacePicture(child)
				continue
			}
			c.cleanChildren(ctx, child, depth+1)
			c.keepAttributes(child)
		}
	}
}

// unwrap replaces an element with its children. It returns the node that comes next.
func unwrap(n *html.Node) *html.Node {
	next := n.NextSibling
	if n.FirstChild != nil {
		next = n.FirstChild
	}
	for child := n.FirstChild; child != nil; child = n.FirstChild {
		n.RemoveChild(child)
		n.Parent.InsertBefore(child, n)
	}
	n.Parent.RemoveChild(n)
	return next
}

// isDropped reports whether an element is left out of the page, with everything in it.
func (c *cleaner) isDropped(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Object, atom.Embed, atom.Svg, atom.Math,
		atom.Canvas, atom.Audio, atom.Video, atom.Input, atom.Select, atom.Datalist, atom.Link, atom.Meta, atom.Title, atom.Base:
		return true
	case atom.Dialog:
		return attribute(n, "open") == ""
	case atom.Html, atom.Body:
		return false // often hidden until a script has run
	}
	style := c.sheet.styleOf(n)
	return c.sheet.workLeft < 0 || isHidden(n, style)
}

// replacePicture replaces a picture with its description. It leaves out the address, because a chat
// program that shows the agent's answer would fetch the picture, and so tell its server whatever
// the address contains.
func (c *cleaner) replacePicture(n *html.Node) {
	if alt := strings.Join(strings.Fields(attribute(n, "alt")), " "); alt != "" {
		n.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: " [image: " + clip(alt, 200) + "] "}, n)
	}
	n.Parent.RemoveChild(n)
}

// keepAttributes removes an element's attributes, except those that Markdown needs.
func (c *cleaner) keepAttributes(n *html.Node) {
	kept := n.Attr[:0]
	for _, a := range n.Attr {
		switch a.Key {
		case "href":
			if href, ok := c.resolveLink(a.Val); ok && n.DataAtom == atom.A {
				kept = append(kept, html.Attribute{Key: "href", Val: href})
			}
		case "colspan", "rowspan":
			if span, err := strconv.Atoi(strings.TrimSpace(a.Val)); err == nil && span > 1 {
				kept = append(kept, html.Attribute{Key: a.Key, Val: strconv.Itoa(min(span, maxSpan))})
			}
		case "class", "id", "role", "start", "dir", "lang":
			kept = append(kept, html.Attribute{Key: a.Key, Val: clip(a.Val, 300)})
		}
	}
	n.Attr = kept
}

// resolveLink returns the complete URL that a link of the page leads to; false unless that is a web
// page or a mail address.
func (c *cleaner) resolveLink(href string) (string, bool) {
	u, err := c.base.Parse(strings.TrimSpace(href))
	if err != nil || len(href) > 2000 || u.User != nil {
		return "", false
	}
	switch u.Scheme {
	case "http", "https", "mailto":
		return u.String(), true
	}
	return "", false
}
