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

// documentOf tells what an answer is whose text has to be read out of it. The first
// bytes say so; of an archive, which could be anything, its type or its name as well.
func documentOf(a answer) pages.Kind {
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

// document puts the text of a document into a result. What was read of it for a look
// comes first, and then the rest of the answer's body.
func (f *fetcher) document(ctx context.Context, kind pages.Kind, a answer, body io.Reader, choice string, out *fetched) error {
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
	out.Body, out.Pages, out.Next, out.Note = plain(shown.Content), shown.Pages, shown.Next, shown.Note
	return nil
}

// A counter counts what is read.
type counter struct {
	from io.Reader
	read atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.read.Add(int64(n))
	return n, err
}
