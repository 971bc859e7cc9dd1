package documents

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"parley/tools/documents/office"
	"parley/tools/documents/pages"
	"parley/tools/documents/pdf"
	"parley/tools/documents/table"
	"parley/tools/plainjson"
)

// childCommand is the argument with which this program starts itself inside the sandbox, to parse
// a document there. Nobody types it.
const childCommand = "read-document"

// maxMemory is the memory limit, in bytes, that the Go runtime of that process tries to stay below.
const maxMemory = 320 << 20

// Main parses a document if args (in the form of os.Args) say that this process was started for
// that, which asked reports. code is the process's exit code.
func Main(args []string) (code int, asked bool) {
	if len(args) < 2 || args[1] != childCommand {
		return 0, false
	}
	debug.SetMemoryLimit(maxMemory)
	out := bufio.NewWriter(os.Stdout)
	err := serve(os.Stdin, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley: read a document:", err)
		return 1, true
	}
	return 0, true
}

// serve reads one request with its document and writes one answer.
func serve(in io.Reader, out io.Writer) error {
	from := bufio.NewReader(in)
	line, err := from.ReadBytes('\n')
	if err != nil {
		return err
	}
	var ask request
	if err := json.Unmarshal(line, &ask); err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(from, pages.MaxBytes+1))
	if err != nil {
		return err
	}
	got, err := read(ask, content)
	if problem, ok := errors.AsType[*pages.Error](err); ok {
		got, err = answer{Problem: problem.Problem, Detail: problem.Detail}, nil
	}
	if err != nil {
		return err
	}
	return plainjson.NewEncoder(out).Encode(got)
}

// read returns the pages that the request asks for, as many as fit into its limits of size and
// time, and at least one. Next names the others.
func read(ask request, content []byte) (answer, error) {
	document, err := openDocument(ask.Kind, content)
	if err != nil {
		return answer{}, err
	}
	got := answer{Count: document.Count()}
	left, began := ask.Most, time.Now()
	chosen := pages.ClipRanges(ask.Pages, got.Count)
	for i, r := range chosen {
		for n := r.First; n <= r.Last; n++ {
			rest := append([]pages.Range{{First: n, Last: r.Last}}, chosen[i+1:]...)
			if len(got.Pages) > 0 && time.Since(began) > ask.Within {
				got.Next, got.Note = rest, document.Note()
				return got, nil
			}
			page, err := document.Page(n)
			if err != nil {
				page.Text = "[" + err.Error() + "]"
			}
			if left -= len(page.Text) + len(page.Title) + len("[page 1234 of 1234: ]"); left < 0 {
				if len(got.Pages) > 0 {
					got.Next, got.Note = rest, document.Note()
					return got, nil
				}
				page.Text = strings.ToValidUTF8(page.Text[:min(len(page.Text), ask.Most)], "") + "\n[the rest of this page is left out: it is too long]"
			}
			got.Pages = append(got.Pages, pageText{n, page})
		}
	}
	got.Note = document.Note()
	return got, nil
}

// openDocument parses a document of the given kind.
func openDocument(kind pages.Kind, content []byte) (pages.Document, error) {
	switch kind {
	case pages.PDF:
		engine, err := pdf.Start(context.Background())
		if err != nil {
			return nil, err
		}
		return engine.Open(content) // the engine and the document end with this process
	case pages.Office:
		return office.Open(content)
	case pages.Old:
		return nil, office.OldFormatError(content)
	case pages.Table:
		return table.Table(content), nil
	case pages.Text:
		return table.Text(content), nil
	}
	return nil, pages.Errorf(pages.Unknown, "")
}
