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
)

// childCommand is the command of this program that nobody types: it runs itself under
// it, inside the sandbox.
const childCommand = "read-document"

// memory is what the child's own part of it is to stay below, in bytes.
const memory = 320 << 20

// Main carries out what this program runs itself for. It tells whether args, as in
// os.Args, asked for that, and if so the exit code.
func Main(args []string) (code int, asked bool) {
	if len(args) < 2 || args[1] != childCommand {
		return 0, false
	}
	debug.SetMemoryLimit(memory)
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

// serve reads one document and writes one answer.
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
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(got)
}

// read gives the pages that are asked for.
func read(ask request, content []byte) (answer, error) {
	document, err := open(ask.Kind, content)
	if err != nil {
		return answer{}, err
	}
	got := answer{Count: document.Count()}
	left, began := ask.Most, time.Now()
	chosen := pages.Within(ask.Pages, got.Count)
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

// open parses a document as what it is.
func open(kind pages.Kind, content []byte) (pages.Document, error) {
	switch kind {
	case pages.PDF:
		engine, err := pdf.Start(context.Background())
		if err != nil {
			return nil, err
		}
		return engine.Open(content) // both end with this process
	case pages.Office:
		return office.Open(content)
	case pages.Old:
		return nil, office.Old(content)
	case pages.Table:
		return table.Table(content), nil
	case pages.Text:
		return table.Text(content), nil
	}
	return nil, pages.Errorf(pages.Unknown, "")
}
