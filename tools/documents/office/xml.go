package office

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"parley/tools/documents/pages"
)

// maxDepth limits how deep elements may be nested.
const maxDepth = 200

// A partReader reads one part, element by element.
type partReader struct {
	d     *xml.Decoder
	depth int
}

// next returns the next token and keeps count of the depth.
func (r *partReader) next() (xml.Token, error) {
	t, err := r.d.Token()
	if err != nil {
		return nil, err
	}
	switch t.(type) {
	case xml.StartElement:
		if r.depth++; r.depth > maxDepth {
			return nil, pages.Errorf(pages.TooMuch, "its elements lie more than %d deep in one another", maxDepth)
		}
	case xml.EndElement:
		r.depth--
	}
	return t, nil
}

// eachChild calls fn for every child of the element that was read last, or for the document's root
// element. It skips whatever fn leaves unread of a child.
func (r *partReader) eachChild(fn func(e xml.StartElement) error) error {
	level := r.depth
	for {
		t, err := r.next()
		if errors.Is(err, io.EOF) && level == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := fn(t); err != nil {
				return err
			}
			for r.depth > level {
				if _, err := r.next(); err != nil {
					return err
				}
			}
		case xml.EndElement:
			return nil
		}
	}
}

// walk calls fn for every element of the part, at any depth. It doesn't visit the children of an
// element that fn has read itself.
func (r *partReader) walk(fn func(e xml.StartElement) error) error {
	return r.eachChild(func(e xml.StartElement) error {
		level := r.depth
		if err := fn(e); err != nil {
			return err
		}
		if r.depth < level {
			return nil
		}
		return r.walk(fn)
	})
}

// text returns the text of the element that was read last, without the text of its children.
func (r *partReader) text() (string, error) {
	var out strings.Builder
	level := r.depth
	for {
		t, err := r.next()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			if r.depth == level {
				out.Write(t)
			}
		case xml.EndElement:
			if r.depth < level {
				return out.String(), nil
			}
		}
	}
}

// attribute returns the value of an attribute by its local name; "" if the element has none.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// relatedPart returns the id of the part that an element refers to. It checks the namespace,
// because some elements have another attribute of this name without one.
func relatedPart(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name && strings.HasSuffix(a.Name.Space, "/relationships") {
			return a.Value
		}
	}
	return ""
}
