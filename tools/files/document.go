package files

import (
	"context"
	"errors"
	"io"
	"strconv"

	"parley/tools"
	"parley/tools/documents/pages"
)

// documentsHint tells the model what happens when it reads a file that is not text.
func (b fileTools) documentsHint() string {
	if b.documents == nil {
		return "Documents (PDF, DOCX, XLSX, PPTX) cannot be read here."
	}
	return "Documents (PDF, DOCX, XLSX, PPTX) come as text, page by page: pages chooses, and next in the result names those that did not fit. With pages, CSV comes as a table and other text in parts."
}

// documentKind returns the kind of document as which a file is read; None means as plain text. A
// text is read as a document, in parts, if the model asks for pages of it, or if it is not in UTF-8
// and the model asks for no lines.
func (b fileTools) documentKind(args readArgs, start []byte) pages.Kind {
	kind := pages.KindOf(args.Path, start)
	switch lines := args.Offset > 0 || args.Limit > 0; {
	case kind == pages.None && args.Pages != "" && !tools.IsBinary(start):
		return pages.ChosenKind(args.Path)
	case kind == pages.Table && args.Pages == "" && !tools.IsBinary(start) && (lines || b.documents == nil):
		return pages.None // read as plain text
	}
	return kind
}

// readDocument returns pages of a document.
func (b fileTools) readDocument(ctx context.Context, kind pages.Kind, args readArgs, size int64, start []byte, content io.Reader) (any, error) {
	name := strconv.Quote(shorten(args.Path))
	switch {
	case b.documents == nil && (kind == pages.Text || kind == pages.Table) && !tools.IsBinary(start):
		return nil, tools.Errorf(tools.InvalidArgs, "%s is a text, and parts of it cannot be read here: leave out pages, and choose lines with offset and limit", name)
	case b.documents == nil:
		return nil, tools.Errorf(tools.ExecutionFailed,
			"%s is a document (%s). Documents are read inside the sandbox, and none works on this machine: its operator learns from parley doctor what is missing. Ask for it as plain text", name, kind)
	case args.Offset > 0 || args.Limit > 0:
		return nil, tools.Errorf(tools.InvalidArgs, "%s is a document (%s), and has no lines to count: choose pages instead of offset and limit", name, kind)
	}
	shown, err := b.documents.Read(ctx, pages.Request{Name: name, Kind: kind, Pages: args.Pages, Most: pages.UsualMost, Content: content})
	if _, none := errors.AsType[*pages.NoDocument](err); none {
		return nil, notTextError(args.Path, size, start)
	}
	if err != nil {
		return nil, err
	}
	return tools.Typed{Value: shown, Field: "content"}, nil
}
