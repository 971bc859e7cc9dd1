//go:build linux

package documents_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"parley/tools"
	"parley/tools/documents"
	"parley/tools/documents/documentstest"
	"parley/tools/documents/pages"
	"parley/tools/sandbox"
	"parley/tools/testrace"
)

// The test binary is three programs: the tests, what the sandbox runs this program
// for, and what reads a document inside.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if code, asked := documents.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(testrace.Run(m.Run))
}

// eachMode runs a test within each kind of walls, and without.
func eachMode(t *testing.T, test func(t *testing.T, r pages.Reader)) {
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock, sandbox.None} {
		t.Run(string(mode), func(t *testing.T) { test(t, open(t, mode, 512)) })
	}
}

func open(t *testing.T, mode sandbox.Mode, memory int) pages.Reader {
	t.Helper()
	cfg := sandbox.Config{
		Mode: mode, MemoryMB: memory, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler),
		Network: sandbox.Network{Full: mode == sandbox.None},
	}
	box, err := sandbox.Open(t.Context(), cfg)
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have the sandbox %s: %v", mode, err)
	}
	return documents.Reader{Sandbox: box, Log: slog.New(slog.DiscardHandler)}
}

func ask(kind pages.Kind, choice string, content []byte) pages.Request {
	return pages.Request{Name: `"file"`, Kind: kind, Pages: choice, Most: 48 << 10, Content: strings.NewReader(string(content))}
}

func read(t *testing.T, r pages.Reader, request pages.Request) (pages.ShownPart, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	return r.Read(ctx, request)
}

func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("Text %d.", i+1)
	}
	return all
}

func TestReadsPages(t *testing.T) {
	content := documentstest.Pages(numbered(40)...).Bytes()
	eachMode(t, func(t *testing.T, r pages.Reader) {
		got, err := read(t, r, ask(pages.PDF, "2, 39-", content))
		want := "[page 2 of 40]\nText 2.\n\n[page 39 of 40]\nText 39.\n\n[page 40 of 40]\nText 40."
		if err != nil || got.Content != want || got.Pages != 40 || got.Next != "" || got.Note != "" {
			t.Errorf("it gave %+v, %v", got, err)
		}
	})
}

// Each kind of office document is read inside too.
func TestReadsOfficeDocuments(t *testing.T) {
	eachMode(t, func(t *testing.T, r pages.Reader) {
		for _, test := range []struct {
			content []byte
			want    string
		}{
			{documentstest.DOCX("<w:p><w:r><w:t>Hello.</w:t></w:r></w:p>"), "[page 1 of 1]\nHello."},
			{documentstest.XLSX(`<row r="7"><c r="B7"><v>42</v></c></row>`), "[page 1 of 2: sheet \"Sales\", rows 7 to 7]\n|  | A | B |\n|---|---|---|\n| 7 |  | 42 |\n\n[page 2 of 2: sheet \"Old\", hidden, no text]"},
			{documentstest.PPTX(documentstest.Shape("title", "Hello")), "[page 1 of 1: slide 1]\n# Hello\n\nNotes: Say it slowly."},
		} {
			got, err := read(t, r, ask(pages.Office, "", test.content))
			if err != nil || got.Content != test.want {
				t.Errorf("it gave %+v, %v", got, err)
			}
		}
	})
	_, err := read(t, open(t, sandbox.Bubblewrap, 512), ask(pages.Office, "", documentstest.Archive("a.txt", "x")))
	if _, none := errors.AsType[*pages.NoDocument](err); !none {
		t.Errorf("another archive gave %v", err)
	}
}

func TestShowsWhatFitsAndSaysWhatIsLeft(t *testing.T) {
	r := open(t, sandbox.Bubblewrap, 512)
	request := ask(pages.PDF, "", documentstest.Pages(numbered(40)...).Bytes())
	request.Most = 100
	got, err := read(t, r, request)
	if err != nil || got.Content != "[page 1 of 40]\nText 1.\n\n[page 2 of 40]\nText 2.\n\n[page 3 of 40]\nText 3." || got.Next != "4-40" {
		t.Errorf("it gave %+v, %v", got, err)
	}
	request = ask(pages.PDF, "", documentstest.Pages(strings.Repeat("A long line of it.\n", 60), "two").Bytes())
	request.Most = 100
	got, err = read(t, r, request)
	if err != nil || !strings.HasSuffix(got.Content, "\n[the rest of this page is left out: it is too long]") || len(got.Content) > 200 || got.Next != "2" {
		t.Errorf("a long page gave %+v, %v", got, err)
	}
}

// What is wrong is said so that a model can do something about it.
func TestSaysWhatIsWrong(t *testing.T) {
	r := open(t, sandbox.Bubblewrap, 512)
	secret := "secret"
	locked := documentstest.Pages("not for all")
	locked.Password = &secret
	for _, test := range []struct {
		name string
		ask  pages.Request
		code tools.Code
		says string
	}{
		{"a password", ask(pages.PDF, "", locked.Bytes()), tools.ExecutionFailed, `"file" is protected with a password: ask for a copy without one`},
		{"damaged", ask(pages.PDF, "", []byte("%PDF-1.4 nothing")), tools.ExecutionFailed, `"file" is damaged, or not what its name says (pdf)`},
		{"no such page", ask(pages.PDF, "3", documentstest.Pages("one", "two").Bytes()), tools.InvalidArgs, `"file" has 2 pages: 3 is beyond them`},
		{"no pages", ask(pages.PDF, "two", nil), tools.InvalidArgs, `pages: "two" names no pages`},
		{"too large", ask(pages.PDF, "", make([]byte, pages.MaxBytes+1)), tools.ExecutionFailed, `"file" has more than 32 MB`},
		{"old", ask(pages.Old, "", append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 1000)...)), tools.ExecutionFailed, "before 2007"},
		{"old for its password", ask(pages.Old, "", wide("EncryptedPackage")), tools.ExecutionFailed, "protected with a password"},
	} {
		_, err := read(t, r, test.ask)
		wrong, ok := errors.AsType[*tools.Error](err)
		if !ok || wrong.Code != test.code || !strings.Contains(wrong.Message, test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func wide(text string) (raw []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		raw = binary.LittleEndian.AppendUint16(raw, unit)
	}
	return raw
}

// A document that would take much is ended, or gives what it has. Nothing of it stays.
func TestBombs(t *testing.T) {
	r, ok := open(t, sandbox.Bubblewrap, 512).(documents.Reader)
	if !ok {
		t.Fatal("it is another reader")
	}
	r.Time = 2 * time.Second
	for name, content := range bombs() {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, r, ask(pages.PDF, "", content))
			if _, known := errors.AsType[*tools.Error](err); err != nil && !known {
				t.Errorf("it gave %v", err)
			}
			if len(got.Content) > 64<<10 {
				t.Errorf("it gave %d bytes", len(got.Content))
			}
		})
	}
}

// bombs are documents that ask for more than there is.
func bombs() map[string][]byte {
	spaces := documentstest.Pages(strings.Repeat(" ", 60<<20)) // 60 MB that take 60 KB
	deep := &documentstest.PDF{}
	deep.Add("<</Type/Pages/Count 1/Kids[" + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + "]>>")
	deep.Add("<</Type/Catalog/Pages 1 0 R>>")
	circle := &documentstest.PDF{}
	circle.Add("<</Type/Pages/Count 2000000000/Kids[1 0 R 1 0 R 1 0 R]>>")
	circle.Add("<</Type/Catalog/Pages 1 0 R>>")
	return map[string][]byte{"a stream": spaces.Bytes(), "depth": deep.Bytes(), "a circle of pages": circle.Bytes()}
}

func TestTakesNoMoreMemoryThanItMay(t *testing.T) {
	r := open(t, sandbox.Bubblewrap, 48)
	_, err := read(t, r, ask(pages.PDF, "", documentstest.Pages("one").Bytes()))
	wrong, ok := errors.AsType[*tools.Error](err)
	if !ok || !strings.Contains(wrong.Message, "more memory than [sandbox] memory_mb allows") {
		t.Errorf("it gave %v", err)
	}
}

func TestEndsWithItsCall(t *testing.T) {
	r := open(t, sandbox.Bubblewrap, 512)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, ask(pages.PDF, "", documentstest.Pages("one").Bytes())); !errors.Is(err, context.Canceled) {
		t.Errorf("it gave %v", err)
	}
}

func TestTables(t *testing.T) {
	r := open(t, sandbox.Bubblewrap, 512)
	got, err := read(t, r, ask(pages.Table, "", []byte("Name;Gr\xf6\xdfe\nM\xfcller;\"1;5\"\n")))
	want := "[page 1 of 1: rows 2 to 2]\n| Name | Größe |\n|---|---|\n| Müller | 1;5 |"
	if err != nil || got.Content != want || !strings.Contains(got.Note, "windows-1252") {
		t.Errorf("it gave %+v, %v", got, err)
	}
	got, err = read(t, r, ask(pages.Text, "", append([]byte("\xff\xfe"), wide("Grüße\r\nan 世界")...)))
	if err != nil || got.Content != "[page 1 of 1]\nGrüße\nan 世界" || got.Note != "" {
		t.Errorf("it gave %+v, %v", got, err)
	}
}
