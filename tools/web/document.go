package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strings"
	"sync/atomic"

	"parley/tools/documents/pages"
)

// documentKind returns the kind of document of an answer; None if it is not a document. The first bytes show it;
// but since an archive could contain anything, its media type or its name must also say that it is an office file.
func documentKind(a answer) pages.Kind {
	if a.kind != isBinary {
		return pages.None
	}
	name := path.Base(a.from.Path)
	kind := pages.KindOf(name, a.content)
	switch extension := strings.ToLower(path.Ext(name)); {
	case kind == pages.PDF:
		return kind
	case kind != pages.Office && kind != pages.Old:
		return pages.None
	case strings.Contains(a.mediaType, "officedocument"), strings.Contains(a.mediaType, "ms-word"), strings.Contains(a.mediaType, "msword"),
		strings.Contains(a.mediaType, "ms-excel"), strings.Contains(a.mediaType, "ms-powerpoint"):
		return kind
	case len(extension) >= 4 && strings.Contains(".docx .docm .xlsx .xlsm .pptx .pptm ", extension):
		return kind
	}
	return pages.None
}

// A document is what was read from a document.
type document struct {
	text      string
	bytesRead int // how many bytes of it were read
	// The number of its pages, those of the requested pages that didn't fit ("" if all did), and a note for the reader.
	pages              int
	missingPages, note string
}

// readDocument has a document read: first the part of the body that was already read, and then the rest. choice names
// the pages. If the body turns out to be no document, the text says what it is instead.
func readDocument(ctx context.Context, by pages.Reader, kind pages.Kind, a answer, body io.Reader, choice string) (document, error) {
	whole := &byteCounter{from: io.MultiReader(bytes.NewReader(a.head), body)}
	shown, err := by.Read(ctx, pages.Request{
		Name: "the document", Kind: kind, Pages: choice, Most: pages.UsualMost, Content: whole,
	})
	d := document{bytesRead: int(whole.read.Load())}
	if _, none := errors.AsType[*pages.NoDocument](err); none {
		d.text = a.describeBinary()
		return d, nil
	}
	if err != nil {
		return d, unreachableError(ctx, a.from.Hostname(), err)
	}
	d.text, d.pages, d.missingPages, d.note = visibleText(shown.Content), shown.Pages, shown.Next, shown.Note
	return d, nil
}

// A byteCounter counts the bytes that are read.
type byteCounter struct {
	from io.Reader
	read atomic.Int64
}

func (c *byteCounter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read.Add(int64(n))
	return n, err
}
