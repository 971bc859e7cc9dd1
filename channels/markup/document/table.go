package document

import (
	"strings"

	"github.com/rivo/uniseg"
	tables "github.com/yuin/goldmark/extension/ast"
)

// table lays a table out in columns. Where a platform has no tables, this is
// what it shows, in a code block.
func (t *tree) table(n *tables.Table) {
	var rows [][]string
	var widths []int
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			s := strings.ReplaceAll(Text(t.inline(cell), true), "\n", " ")
			if len(cells) == len(widths) {
				widths = append(widths, 0)
			}
			widths[len(cells)] = max(widths[len(cells)], min(uniseg.StringWidth(s), widestCell))
			cells = append(cells, s)
		}
		rows = append(rows, cells)
	}
	dashes := make([]string, len(widths))
	for c, w := range widths {
		dashes[c] = strings.Repeat("-", max(w, 1))
	}
	b := Block{Kind: Table}
	for i, cells := range rows {
		line := row(cells, widths, n.Alignments)
		if i == 0 {
			b.Head = []string{line, strings.Join(dashes, "-+-")}
			continue
		}
		b.Lines = append(b.Lines, line)
	}
	t.add(b)
}

// widestCell bounds how far one long cell pushes the column of all others.
const widestCell = 40

func row(cells []string, widths []int, align []tables.Alignment) string {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString(" | ")
		}
		pad := strings.Repeat(" ", max(0, widths[i]-uniseg.StringWidth(cell)))
		if i < len(align) && align[i] == tables.AlignRight {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
