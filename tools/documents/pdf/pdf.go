// Package pdf reads the text of PDF files.
//
// It runs PDFium, which can read even badly broken files. PDFium is a large C++ program and a
// document is a stranger's, so it runs as WebAssembly, which reaches nothing but its own memory;
// besides, callers run this package in a process inside the sandbox.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/klippa-app/go-pdfium"
	wrong "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"parley/tools/documents/pages"
)

// maxMemory is how much memory PDFium may use, in WebAssembly pages of 64 KiB.
const maxMemory = 256 << 20 / (64 << 10)

// An Engine is a running PDFium, the library that reads PDF files.
type Engine struct {
	pool     pdfium.Pool
	instance pdfium.Pdfium
}

// Start starts PDFium. That takes about 0.3 s, because PDFium is interpreted: compiling it would
// take ten times as long, and most documents take less than that to read.
func Start(ctx context.Context) (_ *Engine, err error) {
	defer recoverPanic(&err)
	wasm, err := module()
	if err != nil {
		return nil, err
	}
	pool, err := webassembly.InitWithWASM(webassembly.Config{
		Context: ctx, WASM: wasm, MaxTotal: 1, MaxIdle: 1, ReuseWorkers: true,
		FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
		RuntimeConfig: wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(maxMemory).
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling),
	})
	if err != nil {
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	instance, err := pool.GetInstance(time.Minute)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start PDFium: %w", err), pool.Close())
	}
	return &Engine{pool: pool, instance: instance}, nil
}

// Close ends PDFium.
func (e *Engine) Close() error { return errors.Join(e.instance.Close(), e.pool.Close()) }

// recoverPanic turns a panic into an error, because the library that runs PDFium panics in some
// places where PDFium fails.
func recoverPanic(err *error) {
	if what := recover(); what != nil {
		*err = pages.Errorf(pages.Damaged, "PDFium failed: %v", what)
	}
}

// A Document is an open PDF.
type Document struct {
	engine *Engine
	ref    references.FPDF_DOCUMENT
	count  int
	empty  int // pages without text, among those that were read
	read   int
}

// Open opens a document, or returns why it cannot be read.
func (e *Engine) Open(content []byte) (_ *Document, err error) {
	defer recoverPanic(&err)
	opened, err := e.instance.OpenDocument(&requests.OpenDocument{File: &content})
	switch {
	case errors.Is(err, wrong.ErrPassword):
		return nil, pages.Errorf(pages.Encrypted, "")
	case errors.Is(err, wrong.ErrSecurity):
		return nil, pages.Errorf(pages.Encrypted, "in a way that is not known here")
	case err != nil:
		return nil, pages.Errorf(pages.Damaged, "")
	}
	count, err := e.instance.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return nil, pages.Errorf(pages.Damaged, "its pages cannot be counted")
	}
	return &Document{engine: e, ref: opened.Document, count: count.PageCount}, nil
}

// Close releases what the document uses.
func (d *Document) Close() error {
	_, err := d.engine.instance.FPDF_CloseDocument(&requests.FPDF_CloseDocument{Document: d.ref})
	return err
}

// Count implements pages.Document: it returns how many pages PDFium has found.
func (d *Document) Count() int { return d.count }

// Page implements pages.Document: it reads the text of page n.
func (d *Document) Page(n int) (_ pages.Page, err error) {
	defer recoverPanic(&err)
	d.read++
	page := requests.Page{ByIndex: &requests.PageByIndex{Document: d.ref, Index: n - 1}}
	got, err := d.engine.instance.GetPageText(&requests.GetPageText{Page: page})
	if err != nil {
		return pages.Page{}, pages.Errorf(pages.Damaged, "page %d cannot be read", n)
	}
	text := tidy(got.Text)
	if text == "" {
		d.empty++
	}
	return pages.Page{Text: text}, nil
}

// Note implements pages.Document: it says how many pages have no text, so that they may be
// pictures.
func (d *Document) Note() string {
	if d.empty == 0 {
		return ""
	}
	return fmt.Sprintf("%d of the pages read have no text: they are empty, or pictures, as of a scanner", d.empty)
}

// tidy turns PDFium's text into ordinary lines. In PDFium's text, one character represents both a
// hyphen at the end of a line and the line end.
func tidy(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x02", "-\n", "\ufffe", "-\n", "\x00", "").Replace(text)
	lines := strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
