package table_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"parley/tools/documents/pages"
	"parley/tools/documents/table"
)

func all(t *testing.T, d pages.Document) string {
	t.Helper()
	var out []string
	for n := 1; n <= d.Count(); n++ {
		page, err := d.Page(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimPrefix(page.Title+"\n"+page.Text, "\n"))
	}
	return strings.Join(out, "\f")
}

func wide(order binary.AppendByteOrder, mark, text string) []byte {
	raw := []byte(mark)
	for _, unit := range utf16.Encode([]rune(text)) {
		raw = order.AppendUint16(raw, unit)
	}
	return raw
}

func TestTables(t *testing.T) {
	plain := "rows 2 to 3\n| name | size |\n|---|---|\n| Äpfel | 1 |\n| Birnen | 2 |"
	for _, test := range []struct{ name, content, want, note string }{
		{"commas", "name,size\nÄpfel,1\nBirnen,2\n", plain, ""},
		{"semicolons and a mark", "\xef\xbb\xbfname;size\r\nÄpfel;1\r\nBirnen;2", plain, ""},
		{"tabs", "name\tsize\nÄpfel\t1\nBirnen\t2\n", plain, ""},
		{"windows-1252", "name,size\n\xc4pfel,1\nBirnen,2\n", plain, "windows-1252"},
		{"UTF-16", string(wide(binary.LittleEndian, "\xff\xfe", "name,size\nÄpfel,1\nBirnen,2\n")), plain, ""},
		{"UTF-16 without a mark", string(wide(binary.BigEndian, "", "name,size\nÄpfel,1\nBirnen,2\n")), plain, ""},
		{"Shift JIS", "a,b\n\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6\x8f\x91,1\n", "rows 2 to 2\n| a | b |\n|---|---|\n| 日本語の文書 | 1 |", "shift_jis"},
		{"quotes", "a;b\n\"x;\n\"\"y\"\" | z\";\"1,5\"\n", "rows 2 to 2\n| a | b |\n|---|---|\n| x; \"y\" \\| z | 1,5 |", ""},
		{"rows of different length", "a,b\n1\n1,2,3\n", "rows 2 to 3\n| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |", ""},
		{"one row", "a,b", "row 1\n| a | b |", ""},
		{"nothing", "", "", ""},
	} {
		d := table.Table([]byte(test.content))
		if got := all(t, d); got != test.want || !strings.Contains(d.Note(), test.note) || test.note == "" && d.Note() != "" {
			t.Errorf("%s: it reads %q and notes %q", test.name, got, d.Note())
		}
	}
}

func TestLongTables(t *testing.T) {
	var content strings.Builder
	content.WriteString("n,square\n")
	for i := range 1000 {
		fmt.Fprintf(&content, "%d,%d\n", i, i*i)
	}
	d := table.Table([]byte(content.String()))
	second, err := d.Page(2)
	if err != nil || d.Count() != 5 || second.Title != "rows 202 to 401" || !strings.HasPrefix(second.Text, "| n | square |\n|---|---|\n| 200 | 40000 |\n") {
		t.Errorf("it has %d parts, the second is %q %.100s, %v", d.Count(), second.Title, second.Text, err)
	}
}

func TestTexts(t *testing.T) {
	d := table.Text([]byte("Caf\xe9\r\n\r\n" + strings.Repeat("A line of it.\n", 1000)))
	got := all(t, d)
	if d.Count() < 3 || !strings.HasPrefix(got, "Café\n\nA line of it.\n") && !strings.HasPrefix(got, "Café\fA line") || strings.Count(got, "A line of it.") != 1000 {
		t.Errorf("it has %d parts: %.60q", d.Count(), got)
	}
	long := table.Text([]byte(strings.Repeat("ä", 20_000)))
	if got := all(t, long); strings.Count(got, "ä") != 20_000 || !utf8.ValidString(got) {
		t.Errorf("of a long line %d letters are left", strings.Count(got, "ä"))
	}
}

// FuzzTable reads tables and texts that nobody has written.
func FuzzTable(f *testing.F) {
	f.Add([]byte("a;b\n\"1\n;2\n"))
	f.Add([]byte("\xff\xfea\x00,\x00"))
	f.Add([]byte("\x93\xfa\x96\x7b\x8c\xea"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, d := range []pages.Document{table.Table(content), table.Text(content)} {
			for n := 1; n <= d.Count(); n++ {
				page, err := d.Page(n)
				if err != nil || !utf8.ValidString(page.Text) || page.Text == "" {
					t.Fatalf("page %d is %q, %v", n, page.Text, err)
				}
			}
		}
	})
}
