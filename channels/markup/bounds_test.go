package markup_test

import (
	"fmt"
	"strings"
	"testing"

	"parley/channels/markup"
)

// The time to parse a paragraph grows with the square of its marks, so only a limited number is parsed. The
// rest of the paragraph is text; the count starts again with the next paragraph.
func TestTheMarksReadInAParagraphAreLimited(t *testing.T) {
	const many, most = 5000, 1000
	r := markup.New()
	for mark, tag := range map[string]string{
		"*a* ": "<i>", "__a__ ": "<b>", "~~a~~ ": "<s>", "`a` ": "<code>", "[a](https://a.example) ": "<a ", "<https://a.example> a ": "", "<br> ": "", `\(a\) `: "",
		"_a*": "<i>", "*a _b ": "<i>", "![": "<a ", "[]": "<a ", "<a ": "",
	} {
		var html, plain strings.Builder
		for _, p := range r.Render(strings.Repeat(mark, many)+"\n\n**end**", markup.TelegramHTML, 4096) {
			html.WriteString(p.Text)
			plain.WriteString(p.Plain)
		}
		if n := strings.Count(html.String(), tag); tag != "" && n > most+1 {
			t.Errorf("%q %d times is read %d times", mark, many, n)
		}
		if !strings.HasSuffix(html.String(), "<b>end</b>") {
			t.Errorf("behind %q the next paragraph ends in %.50q", mark, html.String()[html.Len()-40:])
		}
		if n := strings.Count(plain.String(), "a"); strings.Contains(mark, "a") && n < many {
			t.Errorf("of %q %d of %d are left", mark, n, many)
		}
	}
}

// Short rows of a table are padded, so a wide table with many rows would become far larger than its text.
func TestTablesWithTooManyCellsAreText(t *testing.T) {
	for _, c := range []struct {
		columns, rows int
		table         bool
	}{{8, 900, true}, {2000, 2, true}, {2000, 500, false}, {20_000, 20_000, false}} {
		md := strings.Repeat("|a", c.columns) + "|\n" + strings.Repeat("|-", c.columns) + "|\n" + strings.Repeat("|\n", c.rows)
		got := markup.Render(md, markup.HTML, 0)
		if len(got) != 1 || strings.HasPrefix(got[0].Text, "<table>") != c.table {
			t.Errorf("%d columns and %d rows became %d pieces, %.40q", c.columns, c.rows, len(got), got[0].Text)
		}
	}
}

// BenchmarkHostile shows that the time grows no faster than the length.
func BenchmarkHostile(b *testing.B) {
	r := markup.New()
	for _, s := range []string{"_a*", "[", "[a](", "`", "<a ", "> ", "~", `\(`, "&", "|a\n|-\n", ":", ":a:", ":tada:", "- ", "> - ", "a b\n|-|-\n|x|y\n"} {
		for _, size := range []int{64 << 10, 1 << 20} {
			md := strings.Repeat(s, size/len(s))
			b.Run(fmt.Sprintf("%q/%dKB", s, size>>10), func(b *testing.B) {
				b.SetBytes(int64(len(md)))
				for b.Loop() {
					r.Render(md, markup.TelegramHTML, 4096)
				}
			})
		}
	}
}
