package pdf_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/tools/documents/documentstest"
	"parley/tools/documents/pages"
	"parley/tools/documents/pdf"
)

// engine is one PDFium for all tests: the race detector makes its start long.
var engine = sync.OnceValues(func() (*pdf.Engine, error) { return pdf.Start(context.Background()) })

func open(t *testing.T, content []byte) (*pdf.Document, error) {
	t.Helper()
	e, err := engine()
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.Open(content)
	if err == nil {
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return d, err
}

// texts are those of a document's pages.
func texts(t *testing.T, content []byte) []string {
	t.Helper()
	d, err := open(t, content)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]string, d.Count())
	for i := range all {
		page, err := d.Page(i + 1)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = page.Text
	}
	return all
}

func TestReadsText(t *testing.T) {
	none := ""
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("This is page %d.\nIts second line (in brackets), with \u00fcmlauts.", i+1)
	}
	compressed, lost, open := documentstest.Pages(many...), documentstest.Pages(many...), documentstest.Pages("For all to read.")
	compressed.Compressed, lost.Lost, open.Password = true, true, &none
	for _, test := range []struct {
		name string
		file *documentstest.PDF
		want []string
	}{
		{"40 pages", documentstest.Pages(many...), many},
		{"objects in streams", compressed, many},
		{"a table of objects in the wrong place", lost, many},
		{"a font with a table of its characters", documentstest.Chinese("你好，世界。第一季度报告"), []string{"你好，世界。第一季度报告"}},
		{"a font in a charset of its country", documentstest.Japanese([]byte("\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\x91")), []string{"日本語の文書"}},
		{"encrypted, without a password", open, []string{"For all to read."}},
		{"a word on two lines", documentstest.Pages("A long docu-\nment of words."), []string{"A long docu-\nment of words."}},
		{"an empty page", documentstest.Pages("one", "", "three"), []string{"one", "", "three"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := texts(t, test.file.Bytes())
			if strings.Join(got, "\f") != strings.Join(test.want, "\f") {
				t.Errorf("it has %d pages: %q", len(got), got)
			}
		})
	}
}

func TestSaysWhichPagesHaveNoText(t *testing.T) {
	d, err := open(t, documentstest.Pages("one", "").Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= d.Count(); n++ {
		if _, err := d.Page(n); err != nil {
			t.Fatal(err)
		}
	}
	if note := d.Note(); !strings.HasPrefix(note, "1 of the pages read have no text") {
		t.Errorf("it notes %q", note)
	}
}

func TestSaysWhatIsWrong(t *testing.T) {
	secret := "secret"
	locked := documentstest.Pages("not for all")
	locked.Password = &secret
	whole := documentstest.Pages("one", "two").Bytes()
	for _, test := range []struct {
		name    string
		content []byte
		want    pages.Problem
	}{
		{"a password", locked.Bytes(), pages.Encrypted},
		{"no PDF", []byte("%PDF-1.7\nthis is none"), pages.Damaged},
		{"cut off", whole[:200], pages.Damaged},
		{"nothing", nil, pages.Damaged},
	} {
		_, err := open(t, test.content)
		problem, ok := errors.AsType[*pages.Error](err)
		if !ok || problem.Problem != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
