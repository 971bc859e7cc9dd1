package files_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/documents"
	"parley/tools/documents/documentstest"
	"parley/tools/files"
	"parley/tools/sandbox"
	"parley/tools/testrace"
	"parley/tools/toolstest"
)

// The test binary is also the program that the sandbox starts.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if code, asked := documents.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(testrace.Run(m.Run))
}

func TestReadsDocuments(t *testing.T) {
	box, err := sandbox.Open(t.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have a sandbox: %v", err)
	}
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	must(t, err)
	defer all.Close()
	c := toolstest.New(files.New(func(_ context.Context, call tools.Call) (files.Dir, error) { return all.Open(call.Session) },
		documents.Reader{Sandbox: box, Log: slog.New(slog.DiscardHandler)})...)
	d, err := all.Open(c.Call.Session)
	must(t, err)
	dir := d.Path()
	writeFile(t, dir, "report.pdf", string(documentstest.Pages("one", "two", "three").Bytes()))
	writeFile(t, dir, "plain.csv", "a;b\n1;2\n")
	writeFile(t, dir, "latin.csv", "a;b\nM\xfcller;2\n")
	writeFile(t, dir, "pdf.go", "package pdf // begins with %PDF-1.7\n")
	writeFile(t, dir, "picture.png", "\x89PNG\r\n\x1a\n\x00\x00\x00")
	writeFile(t, dir, "other.zip", "PK\x03\x04\x00\x00\x00\x00 and so on")
	c.Want(t, "read_file", args("path", "report.pdf", "pages", "2-"), `{"content":"[page 2 of 3]\ntwo\n\n[page 3 of 3]\nthree","pages":3}`)
	c.Want(t, "read_file", args("path", "plain.csv"), `{"content":"a;b\n1;2\n"}`)
	c.Want(t, "read_file", args("path", "plain.csv", "pages", "1"), `{"content":"[page 1 of 1: rows 2 to 2]\n| a | b |\n|---|---|\n| 1 | 2 |","pages":1}`)
	c.Want(t, "read_file", args("path", "latin.csv", "limit", 1), `{"content":"a;b\n"}`)
	c.Want(t, "read_file", args("path", "latin.csv"), `{"content":"[page 1 of 1: rows 2 to 2]\n| a | b |\n|---|---|\n| Müller | 2 |","pages":1,"note":"its charset is not UTF-8 and was taken for windows-1252"}`)
	c.Want(t, "read_file", args("path", "pdf.go"), `{"content":"package pdf // begins with %PDF-1.7\n"}`)
	c.Want(t, "read_file", args("path", "pdf.go", "pages", "1"), `{"content":"[page 1 of 1]\npackage pdf // begins with %PDF-1.7","pages":1}`)
	c.WantError(t, "read_file", args("path", "report.pdf", "offset", 3), tools.InvalidArgs, "choose pages instead")
	c.WantError(t, "read_file", args("path", "report.pdf", "pages", "4"), tools.InvalidArgs, `"report.pdf" has 3 pages`)
	c.WantError(t, "read_file", args("path", "report.pdf", "pages", "x"), tools.InvalidArgs, "names no pages")
	c.WantError(t, "read_file", args("path", "picture.png", "pages", "1"), tools.ExecutionFailed, "isn't text (image/png")
	c.WantError(t, "read_file", args("path", "other.zip"), tools.ExecutionFailed, "isn't text (application/zip")
}

// Without a sandbox no document is read, and the tool's description says so.
func TestWithoutASandbox(t *testing.T) {
	c, dir := newCaller(t)
	writeFile(t, dir, "report.pdf", string(documentstest.Pages("one").Bytes()))
	writeFile(t, dir, "latin.csv", "a;b\nM\xfcller;2\n")
	c.WantError(t, "read_file", args("path", "report.pdf"), tools.ExecutionFailed, "inside the sandbox", "parley doctor")
	c.WantError(t, "read_file", args("path", "latin.csv", "pages", "1"), tools.InvalidArgs, "offset and limit")
	if got, err := c.Try(t.Context(), "read_file", args("path", "latin.csv")); err != nil || !strings.Contains(got, "a;b") {
		t.Errorf("it gave %s, %v", got, err)
	}
}
