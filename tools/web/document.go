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

// documentKind returns what kind of document an answer is; None if it is none. The first bytes
// show it; but as an archive could hold anything, its media type or its name must also say that
// it is an office file.
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

// document reads a document and puts its text into the result out. It reads first what was read
// of the body already, and then the rest.
func (f *fetcher) document(ctx context.Context, kind pages.Kind, a answer, body io.Reader, choice string, out *fetchResult) error {
	whole := &counter{from: io.MultiReader(bytes.NewReader(a.first), body)}
	shown, err := f.documents.Read(ctx, pages.Request{
		Name: "the document", Kind: kind, Pages: choice, Most: pages.UsualMost, Content: whole,
	})
	out.Bytes = int(whole.read.Load())
	if _, none := errors.AsType[*pages.NoDocument](err); none {
		out.Body = a.aboutBinary()
		return nil
	}
	if err != nil {
		return unreachable(ctx, a.from.Hostname(), err)
	}
	out.Body, out.Pages, out.Next, out.Note = visibleText(shown.Content), shown.Pages, shown.Next, shown.Note
	return nil
}

// A counter counts the bytes that are read.
type counter struct {
	from io.Reader
	read atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read.Add(int64(n))
	return n, err
}
