package web_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"parley/tools"
	"parley/tools/documents"
	"parley/tools/documents/documentstest"
	"parley/tools/sandbox"
	"parley/tools/testrace"
	"parley/tools/toolstest"
	"parley/tools/web"
)

func newDocumentCaller(t *testing.T) *toolstest.Caller {
	t.Helper()
	box, err := sandbox.Open(t.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have a sandbox: %v", err)
	}
	return toolstest.New(web.New(web.Config{
		Settings:  func() web.Settings { return web.Settings{} },
		Documents: documents.Reader{Sandbox: box, Log: slog.New(slog.DiscardHandler)},
		Refuse:    func(netip.Addr) string { return "" },
	})...)
}

func TestDocuments(t *testing.T) {
	c := newDocumentCaller(t)
	pdf := documentstest.Pages("one", "two")
	pdf.Stream("", incompressible(3<<20)) // longer than the limit for pages
	long := pdf.Bytes()
	word := documentstest.DOCX("<w:p><w:r><w:t>Hel\u200blo.</w:t></w:r></w:p>")
	for _, test := range []struct {
		name, contentType, path, pages string
		content                        []byte
		want                           string
	}{
		{"PDF", "application/pdf", "/a", "2", long, "[page 2 of 2]\ntwo"},
		{"without a type", "application/octet-stream", "/a.docx", "", word, "[page 1 of 1]\nHello."},
		{"by its type", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "/a", "", word, "[page 1 of 1]\nHello."},
		{"another archive", "application/zip", "/a", "", documentstest.Archive("a", "b"), "[application/zip, " + strconv.Itoa(len(documentstest.Archive("a", "b"))) + " bytes: not a text, so not shown]"},
	} {
		at := serveBody(t, test.contentType, test.content) + test.path
		var got result
		if err := json.Unmarshal([]byte(c.Want(t, "web_fetch", args("url", at, "pages", test.pages), "")), &got); err != nil {
			t.Fatal(err)
		}
		if got.Body != test.want || got.Bytes != len(test.content) {
			t.Errorf("%s: of %d bytes it gave %+v", test.name, len(test.content), got)
		}
	}
	c.WantError(t, "web_fetch", args("url", serveBody(t, "application/pdf", []byte("%PDF-1.7 no"))), tools.ExecutionFailed, "the document is damaged")
	if got := c.Want(t, "web_fetch", args("url", serveBody(t, "application/pdf", long), "raw", true), ""); !strings.Contains(got, "a PDF document of more than 1048576 bytes") {
		t.Errorf("its source is %s", got)
	}
}

// A document that its server does not send completely is an error.
func TestADocumentThatIsCutOff(t *testing.T) {
	c := newDocumentCaller(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/pdf")
		w.Header().Set("Content-Length", "9000000")
		content := append(documentstest.Pages("one").Bytes(), incompressible(1<<20)...)
		if _, err := w.Write(content); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	c.WantError(t, "web_fetch", args("url", s.URL), tools.ExecutionFailed, "gave no answer", "unexpected EOF")
}

// incompressible returns n bytes that cannot be compressed.
func incompressible(n int) []byte {
	out := make([]byte, n)
	for i, x := 0, uint32(1); i < n; i++ {
		x = x*1664525 + 1013904223
		out[i] = byte(x >> 24)
	}
	return out
}
