package canvas

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// stillElements returns the elements that may stay in a document without active parts. None of them runs anything,
// loads anything that the policy doesn't deny, or makes browsers connect to a server, as a link with rel=preconnect
// does.
func stillElements() []string {
	return strings.Fields(`html head body title style
		h1 h2 h3 h4 h5 h6 p div span section article header footer main nav aside hgroup address blockquote pre code kbd samp var
		a abbr b bdi bdo br cite data dfn em hr i img ins del mark q rp rt ruby s small strong sub sup time u wbr
		ul ol li dl dt dd menu figure figcaption details summary table caption colgroup col thead tbody tfoot tr th td
		meter progress label button input fieldset legend output
		svg g path rect circle ellipse line polyline polygon text tspan defs lineargradient radialgradient stop clippath mask marker symbol`)
}

// A Reader reads documents. At most two are read at once, because reading one takes up to a second of a processor, and
// nothing can stop it. The zero Reader is ready to use.
type Reader struct{ places fairSlots }

// Still returns a document of a session without everything that can run, move or reach another server, even by a
// connection or the look-up of a name, which no policy of a browser denies. While others are read, it waits; sessions
// take turns. It returns an error if the elements are nested too deep, if there are too many html and body tags, or if
// ctx is done before this document's turn comes.
func (r *Reader) Still(ctx context.Context, session string, doc []byte) ([]byte, error) {
	leave, err := r.places.take(ctx, session)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := checkRoots(doc); err != nil {
		return nil, err
	}
	root, err := html.Parse(bytes.NewReader(doc))
	if err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	for _, name := range stillElements() {
		keep[name] = true
	}
	removeActive(root, keep)
	var out bytes.Buffer
	if err := html.Render(&out, root); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// Limits of the html and body tags of a document. Parsing time is the number of these tags times the number of their
// attributes, because each further tag adds its new attributes to the element.
const (
	maxRootTags       = 32
	maxRootAttributes = 300
)

// checkRoots refuses a document that exceeds these limits. It checks all places where such a tag could begin, because
// whether it is a tag depends on the text before it.
func checkRoots(doc []byte) error {
	tags, attributes := 0, 0
	for at, b := range doc {
		if b != '<' || len(doc)-at < len("<html") || !bytes.EqualFold(doc[at+1:at+5], []byte("html")) && !bytes.EqualFold(doc[at+1:at+5], []byte("body")) {
			continue
		}
		tag := html.NewTokenizer(bytes.NewReader(doc[at:]))
		tag.Next()
		for more := true; more; attributes++ {
			_, _, more = tag.TagAttr()
		}
		if tags++; tags > maxRootTags || attributes > maxRootAttributes+maxRootTags {
			return fmt.Errorf(errRoots, maxRootTags, maxRootAttributes)
		}
	}
	return nil
}

// removeActive removes the nodes below a node that may not stay.
func removeActive(n *html.Node, keep map[string]bool) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if mayStay(child, keep) {
			child.Attr = slices.DeleteFunc(child.Attr, func(a html.Attribute) bool { return !mayStayAttribute(a) })
			removeActive(child, keep)
		} else {
			n.RemoveChild(child)
		}
		child = next
	}
}

// mayStay reports whether a node may stay. A style sheet within a drawing may not, because browsers parse its text
// differently than it is written here.
func mayStay(n *html.Node, keep map[string]bool) bool {
	switch n.Type {
	case html.TextNode, html.DoctypeNode:
		return true
	case html.ElementNode:
		return keep[strings.ToLower(n.Data)] && (n.Namespace == "" || n.Namespace == "svg" && n.Data != "style" && n.Data != "title")
	}
	return false
}

// mayStayAttribute reports whether an attribute may stay. Handlers of events may not, nor srcset, nor one in addressAttributes,
// unless it names a place in the document itself or contains an image. Addresses in other attributes, such as style, stay: the
// policy denies loading them.
func mayStayAttribute(a html.Attribute) bool {
	key := strings.ToLower(a.Key)
	value := strings.ToLower(strings.TrimSpace(a.Val))
	switch {
	case strings.HasPrefix(key, "on"), key == "srcset": // which has several addresses
		return false
	case slices.Contains(addressAttributes(), key):
		return strings.HasPrefix(value, "#") || strings.HasPrefix(value, "data:image/")
	}
	return true
}

// addressAttributes are the attributes whose values are addresses.
func addressAttributes() []string {
	return strings.Fields("href src action formaction ping poster background data cite longdesc usemap manifest codebase attributionsrc xlink:href from to values by")
}
