package markup_test

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"parley/channels/markup"
	"parley/channels/markup/markuptest"
)

func specExamples(t *testing.T) []markuptest.Example {
	t.Helper()
	return markuptest.Examples(t, "testdata/spec")
}

// An htmlFlattener writes HTML in such a form that equivalent HTML is equal: blocks one below the other, and
// runs of text with all their styles, no matter how these are nested.
type htmlFlattener struct {
	out        []string
	currentRun strings.Builder
	runStyle   string // the style of the current run
	// applyDifferences makes the flattener change a specification's HTML in the ways in which this package
	// always differs from it.
	applyDifferences bool
}

// flattenHTML returns HTML as a list of blocks and runs.
func flattenHTML(t *testing.T, source string, asOurs bool) string {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader(source), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		t.Fatal(err)
	}
	f := &htmlFlattener{applyDifferences: asOurs}
	for _, n := range nodes {
		f.addNode(n, nil, false)
	}
	f.endRun()
	all := strings.Join(f.out, "\n")
	for _, twice := range []string{"⏎⏎", "⏎\n|⏎"} { // <br> and the line end after it
		all = strings.ReplaceAll(all, twice, "⏎")
	}
	all = strings.ReplaceAll(all, "%20", " ")
	return strings.ReplaceAll(strings.ReplaceAll(all, "\n|⏎\n<", "\n<"), "|⏎\n>", ">")
}

func (f *htmlFlattener) addNode(n *html.Node, styles []string, pre bool) {
	switch {
	case n.Type == html.TextNode:
		f.addText(n.Data, styles, pre)
	case n.Type != html.ElementNode:
	case n.DataAtom == atom.Br:
		f.addText("⏎", styles, true)
	case n.DataAtom == atom.Input:
		box := "☐"
		if _, checked := attribute(n, "checked"); checked {
			box = "☑"
		}
		f.addText(box, styles, pre)
	case n.DataAtom == atom.A, n.DataAtom == atom.Img && f.applyDifferences:
		f.addLink(n, styles, pre)
	case slices.Contains([]atom.Atom{atom.Em, atom.Strong, atom.Del, atom.Code}, n.DataAtom) && !pre:
		f.addChildren(n, append(slices.Clone(styles), n.Data), pre)
	default:
		f.endRun()
		var tag strings.Builder
		tag.WriteString(n.Data)
		for _, a := range n.Attr {
			tag.WriteString(" " + a.Key + "=" + a.Val)
		}
		f.out = append(f.out, "<"+tag.String())
		f.addChildren(n, nil, pre || n.DataAtom == atom.Pre)
		f.endRun()
		f.out = append(f.out, ">")
	}
}

func (f *htmlFlattener) addChildren(n *html.Node, styles []string, pre bool) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		f.addNode(c, styles, pre)
	}
}

func attribute(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

// addLink adds a link, or a picture, which this package renders as a link.
func (f *htmlFlattener) addLink(n *html.Node, styles []string, pre bool) {
	target, _ := attribute(n, "href")
	if n.DataAtom == atom.Img {
		target, _ = attribute(n, "src")
	}
	if plain, err := url.PathUnescape(target); err == nil {
		target = plain
	}
	linked := append(slices.Clone(styles), "a="+target)
	toTheWeb := strings.HasPrefix(target, "http") || strings.HasPrefix(strings.ToLower(target), "mailto:")
	if f.applyDifferences && (!toTheWeb || slices.ContainsFunc(styles, isLinkStyle)) {
		linked = styles
	}
	if n.DataAtom == atom.Img {
		alt, _ := attribute(n, "alt")
		f.addText(alt, linked, pre)
	}
	f.addChildren(n, linked, pre)
	if f.applyDifferences && !toTheWeb && target != "" && target != textOf(n) {
		f.addText(" ("+target+")", styles, pre)
	}
}

func textOf(n *html.Node) (s string) {
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			s += c.Data
		}
	}
	return s
}

func isLinkStyle(s string) bool { return strings.HasPrefix(s, "a=") }

func (f *htmlFlattener) addText(s string, styles []string, pre bool) {
	if pre {
		f.addStyled(s, styles)
		return
	}
	if f.currentRun.Len() == 0 && strings.TrimSpace(s) == "" {
		return
	}
	for i, line := range strings.Split(s, "\n") {
		if i > 0 {
			f.addStyled("⏎", nil)
		}
		if line != "" {
			f.addStyled(line, styles)
		}
	}
}

// addStyled adds text to the current run; a line end has no style.
func (f *htmlFlattener) addStyled(s string, styles []string) {
	if s == "⏎" {
		styles = nil
	}
	slices.Sort(styles)
	if style := strings.Join(slices.Compact(styles), ","); style != f.runStyle {
		f.endRun()
		f.runStyle = style
	}
	f.currentRun.WriteString(s)
}

func (f *htmlFlattener) endRun() {
	if f.currentRun.Len() > 0 {
		f.out = append(f.out, f.runStyle+"|"+f.currentRun.String())
	}
	f.currentRun.Reset()
	f.runStyle = ""
}

// knownDifferences returns, by reason, the examples whose HTML differs in this package.
// testdata/spec/differences.txt contains this package's HTML.
func knownDifferences() map[string][]string {
	return map[string][]string{
		"HTML is text: on a page it could load and run things, and no chat knows it": exampleNames("commonmark", "21", "31", "148-191", "308", "309", "344",
			"475-477", "491", "494", "524", "613-617", "623", "625-631", "642", "643", "gfm disallowed raw HTML 1"),
		"what defines the target of links elsewhere is text: in a chat somebody wants to read it": exampleNames("commonmark", "23", "33",
			"192-196", "198", "200-208", "210", "214-218", "317", "527-545", "549", "550", "553-571", "573", "576", "577", "582-589", "591-593"),
		"a star within a word or a number is one: 2*3*4, a*b":                                  exampleNames("commonmark", "355", "356", "370", "429"),
		"a single tilde is one: ~5, 1~2":                                                       exampleNames("", "gfm strikethrough 3"),
		"a heading, a quote or code without a text shows its marks: a message cannot be empty": exampleNames("commonmark", "79", "126", "129", "130", "144", "239", "240"),
		"of a text in which nothing is seen the marks are shown":                               exampleNames("commonmark", "334", "487"),
		"an address is a link without brackets too, as GFM has it":                             exampleNames("commonmark", "608", "611", "612"),
		"a language is a word of ASCII":                                                        exampleNames("commonmark", "34"),
		"an empty line may be written by number":                                               exampleNames("commonmark", "39"),
		"a link within the text of a picture leads where it leads":                             exampleNames("commonmark", "520", "574", "575"),
	}
}

// exampleNames returns the names of examples, given by their numbers as from-to.
func exampleNames(spec string, numbers ...string) (names []string) {
	for _, n := range numbers {
		from, to, many := strings.Cut(n, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			names = append(names, n)
			continue
		}
		last := first
		if many {
			last, _ = strconv.Atoi(to)
		}
		for i := first; i <= last; i++ {
			names = append(names, spec+" "+strconv.Itoa(i))
		}
	}
	return names
}

func TestHTMLMatchesTheSpecifications(t *testing.T) {
	r := markup.New()
	reasons := map[string]string{}
	for reason, names := range knownDifferences() {
		for _, name := range names {
			reasons[name] = reason
		}
	}
	ours := map[string][]string{}
	for _, e := range specExamples(t) {
		got := renderHTML(r, e.Markdown)
		have, want := flattenHTML(t, got, false), flattenHTML(t, e.HTML, true)
		reason, differs := reasons[e.Name]
		switch {
		case have == want && differs:
			t.Errorf("%s is as in the specification", e.Name)
		case have != want && !differs:
			t.Errorf("%s: %q is\n%s\nwant\n%s", e.Name, e.Markdown, have, want)
		case differs:
			ours[reason] = append(ours[reason], fmt.Sprintf("%s: %q\n%s\n", e.Name, e.Markdown, got))
		}
	}
	var all strings.Builder
	for _, reason := range slices.Sorted(maps.Keys(ours)) {
		all.WriteString("# " + reason + "\n\n" + strings.Join(ours[reason], "\n") + "\n")
	}
	compareGolden(t, "testdata/spec/differences.txt", all.String())
}

func renderHTML(r *markup.Renderer, md string) (text string) {
	for _, p := range r.Render(md, markup.HTML, 0) {
		text += p.Text
	}
	return text
}
