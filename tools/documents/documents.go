// Package documents reads PDF and office files as text, page by page, inside the sandbox.
//
// Code that parses a stranger's file can be turned against the process that runs it, so none of
// it runs in the server: the file goes to a child, which is this program run once more inside the
// sandbox (see Main), with no workspace, no network, and limits on time and memory; the child
// answers with text. Where there is no sandbox, no document is read.
//
// The files: documents.go is the server's side, and child.go the child's. The package pages defines
// the types that both use; pdf, office and table each parse some kinds.
package documents

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"parley/tools"
	"parley/tools/documents/pages"
	"parley/tools/plainjson"
	"parley/tools/sandbox"
)

const (
	// defaultTime is how long reading one document may take.
	defaultTime = 25 * time.Second
	// maxMost bounds the text of one answer, in bytes.
	maxMost = 2 << 20
)

// A Reader reads documents by letting a child process, which runs in a sandbox, parse them.
type Reader struct {
	Sandbox sandbox.Sandbox
	Log     *slog.Logger
	Time    time.Duration // how long reading one document may take; 0 means 25 s
}

// A request tells the child what to do. The child reads it as JSON in its first line of input; the
// document follows.
type request struct {
	Kind   pages.Kind
	Pages  []pages.Range
	Most   int
	Within time.Duration // how long the child may go on starting further pages
}

// An answer is what the child writes.
type answer struct {
	Count   int           `json:"count"`
	Pages   []pageText    `json:"pages,omitempty"`
	Next    []pages.Range `json:"next,omitempty"`
	Note    string        `json:"note,omitempty"`
	Problem pages.Problem `json:"problem,omitempty"`
	Detail  string        `json:"detail,omitempty"`
}

// A pageText is the text of one page.
type pageText struct {
	Number int `json:"number"`
	pages.Page
}

// Read implements pages.Reader: it runs the child and returns the pages that the child has read.
func (r Reader) Read(ctx context.Context, ask pages.Request) (pages.ShownPart, error) {
	chosen, err := pages.Parse(ask.Pages)
	if err != nil {
		return pages.ShownPart{}, tools.Errorf(tools.InvalidArgs, "pages: %v", err)
	}
	content := &limitedReader{from: ask.Content}
	content.left.Store(pages.MaxBytes)
	got, err := r.runChild(ctx, request{Kind: ask.Kind, Pages: chosen, Most: min(ask.Most, maxMost), Within: r.timeLimit() / 2}, content, ask.Name)
	switch {
	case content.err() != nil:
		return pages.ShownPart{}, content.err()
	case content.over.Load():
		return pages.ShownPart{}, tools.Errorf(tools.ExecutionFailed, "%s has more than %d MB: a document of this size is not read", ask.Name, pages.MaxBytes>>20)
	case err != nil:
		return pages.ShownPart{}, err
	case got.Problem == pages.Unknown:
		return pages.ShownPart{}, &pages.NoDocument{}
	case got.Problem != "":
		return pages.ShownPart{}, problemError(ask.Name, ask.Kind, got)
	case len(got.Pages) == 0 && got.Count > 0:
		return pages.ShownPart{}, tools.Errorf(tools.InvalidArgs, "%s has %d pages: %s is beyond them", ask.Name, got.Count, pages.Format(chosen))
	}
	return pages.ShownPart{Content: joinPages(got), Pages: got.Count, Next: pages.Format(got.Next), Note: noteOf(got)}, nil
}

// timeLimit returns how long reading one document may take.
func (r Reader) timeLimit() time.Duration { return cmp.Or(r.Time, defaultTime) }

// runChild runs the child with a request and a document, and returns its answer.
func (r Reader) runChild(ctx context.Context, ask request, content io.Reader, name string) (answer, error) {
	head, err := plainjson.Marshal(ask)
	if err != nil {
		return answer{}, err
	}
	limited, cancel := context.WithTimeout(ctx, r.timeLimit())
	defer cancel()
	began := time.Now()
	out, err := r.Sandbox.Run(limited, sandbox.Command{
		OwnProgram: true, Args: []string{childCommand}, MaxOutput: 6*ask.Most + 1<<20,
		Stdin: io.MultiReader(bytes.NewReader(append(head, '\n')), content),
	})
	var got answer
	switch {
	case ctx.Err() != nil && (err != nil || out.Killed != ""):
		return answer{}, ctx.Err()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return answer{}, err
	case err != nil:
		return answer{}, tools.Errorf(tools.ExecutionFailed, "%s could not be read: %v", name, err)
	case out.Killed == sandbox.Timeout:
		return answer{}, tools.Errorf(tools.Timeout, "reading %s took longer than %s: ask for fewer pages, or it cannot be read", name, r.timeLimit())
	case out.Killed == sandbox.Memory:
		return answer{}, tools.Errorf(tools.ExecutionFailed, "reading %s took more memory than [sandbox] memory_mb allows", name)
	case out.Killed != "":
		return answer{}, tools.Errorf(tools.ExecutionFailed, "reading %s was ended: %s", name, out.Detail)
	}
	if err := json.Unmarshal([]byte(out.Stdout), &got); err != nil || out.ExitCode != 0 {
		r.Log.Warn("the reader of a document failed", slog.String("kind", string(ask.Kind)), slog.Int("code", out.ExitCode),
			slog.Duration("took", time.Since(began)))
		return answer{}, tools.Errorf(tools.ExecutionFailed, "%s cannot be read: what reads it failed", name)
	}
	return got, nil
}

// problemError returns the error that tells the model why there is no text.
func problemError(name string, kind pages.Kind, got answer) error {
	detail := ""
	if got.Detail != "" {
		detail = " (" + got.Detail + ")"
	}
	switch got.Problem {
	case pages.Encrypted:
		return tools.Errorf(tools.ExecutionFailed, "%s is protected with a password%s: ask for a copy without one", name, detail)
	case pages.TooMuch:
		return tools.Errorf(tools.ExecutionFailed, "%s is not read, because it would take too much%s", name, detail)
	case pages.Legacy:
		return tools.Errorf(tools.ExecutionFailed, "%s is in the format that office programs had before 2007, which is not read: ask for it as DOCX, XLSX, PPTX or PDF", name)
	}
	return tools.Errorf(tools.ExecutionFailed, "%s is damaged, or not what its name says (%s): its text cannot be read%s", name, kind, detail)
}

// joinPages joins the texts of the pages, each below a line with its title.
func joinPages(got answer) string {
	var out strings.Builder
	for i, page := range got.Pages {
		if i > 0 {
			out.WriteString("\n\n")
		}
		fmt.Fprintf(&out, "[page %d of %d", page.Number, got.Count)
		if page.Title != "" {
			out.WriteString(": " + page.Title)
		}
		if page.Text == "" {
			out.WriteString(", no text]")
			continue
		}
		out.WriteString("]\n" + page.Text)
	}
	return out.String()
}

// noteOf returns what the model has to know about how the text was read; "" if nothing.
func noteOf(got answer) string {
	if got.Count == 0 {
		return strings.TrimPrefix(got.Note+"; the document is empty", "; ")
	}
	return got.Note
}

// A limitedReader is a reader that fails after a number of bytes. It records whether there were
// more, or why not everything could be read. Read and the other methods may be called at the same
// time, because the process that starts the child may still read when the child has ended.
type limitedReader struct {
	from   io.Reader
	left   atomic.Int64
	over   atomic.Bool
	failed atomic.Pointer[error]
}

func (c *limitedReader) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if c.left.Add(-int64(n)) < 0 {
		c.over.Store(true)
		return 0, errors.New("the document is too long")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		c.failed.Store(&err)
	}
	return n, err
}

// err returns why not everything could be read; nil if it could.
func (c *limitedReader) err() error {
	if failed := c.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}
