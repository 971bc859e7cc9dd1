package pages_test

import (
	"strings"
	"testing"

	"parley/tools/documents/pages"
)

func TestChoices(t *testing.T) {
	for choice, want := range map[string]string{
		"": "1-9", " 3 ": "3", "2-5": "2-5", "7-": "7-9", "1,3-4, 8-": "1,3-4,8-9", "5-100": "5-9", "12": "", "9,10": "9",
	} {
		ranges, err := pages.Parse(choice)
		if got := pages.Format(pages.ClipRanges(ranges, 9)); err != nil || got != want {
			t.Errorf("%q is %q, %v", choice, got, err)
		}
	}
	for _, wrong := range []string{"0", "-3", "a", "3-2", "1,,2", "2-x", "99999999999999999999", "1.5"} {
		if ranges, err := pages.Parse(wrong); err == nil {
			t.Errorf("%q is %v", wrong, ranges)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, test := range []struct {
		name, start string
		want        pages.Kind
	}{
		{"a.pdf", "%PDF-1.7\n", pages.PDF},
		{"a.PDF", "a line of the mail program\n%PDF-1.7\n", pages.PDF},
		{"a", "\x00\xffjunk%PDF-1.7\n", pages.PDF},
		{"pdf.go", "// it begins with %PDF-", pages.None},
		{"a.docx", "PK\x03\x04", pages.Office},
		{"a", "PK\x03\x04", pages.Office},
		{"a.zip", "PK\x03\x04", pages.None},
		{"a.doc", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", pages.Old},
		{"a.csv", "a,b\nä", pages.None},
		{"a.csv", "a,b\n\xe4", pages.Table},
		{"a.csv", strings.Repeat("a", pages.Sniffed) + "\xc3", pages.None}, // a letter that is cut off
		{"a.txt", "\xff\xfea\x00", pages.Text},
		{"a.txt", "\xe4", pages.None},
		{"a.png", "\x89PNG\x00", pages.None},
		{"empty.csv", "", pages.None},
	} {
		if got := pages.KindOf(test.name, []byte(test.start)); got != test.want {
			t.Errorf("%s, which begins with %q, is %q", test.name, test.start, got)
		}
	}
}
