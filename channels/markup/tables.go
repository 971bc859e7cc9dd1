package markup

import (
	"slices"
	"sort"
	"strings"

	"github.com/rivo/uniseg"

	"parley/channels/markup/document"
)

const (
	// phoneWidth is the maximum width of a table, in characters, on platforms that are read on phones: a wider
	// table would be broken into lines, and its columns lost.
	phoneWidth = 32
	// deskWidth is the maximum width of a table, in characters, on platforms where people probably have a wider
	// window.
	deskWidth = 72
)

// columnsOrRecords returns formColumns if the table is no wider than width, and otherwise formRecords.
func columnsOrRecords(width int, t document.Block) form {
	if sum(columnWidths(t))+(len(t.Head)-1)*len(columnGap) > width {
		return formRecords
	}
	return formColumns
}

// columnGap separates columns.
const columnGap = " | "

// sum returns the sum of widths.
func sum(widths []int) (n int) {
	for _, w := range widths {
		n += w
	}
	return n
}

// cellText returns the text of a cell on one line.
func cellText(c document.Cell) string {
	return strings.ReplaceAll(document.Text(c, true), "\n", " ")
}

// columnWidths returns, for each column, the width that its widest cell has on a screen; for a part of a table, the
// widths of the whole table's columns.
func columnWidths(t document.Block) []int {
	if t.Widths != nil {
		return t.Widths
	}
	widths := make([]int, len(t.Head))
	for _, row := range append([][]document.Cell{t.Head}, t.Rows...) {
		for i, cell := range row[:min(len(row), len(widths))] {
			widths[i] = max(widths[i], uniseg.StringWidth(cellText(cell)), 1)
		}
	}
	return widths
}

// layoutTable returns a table as lines in a code block.
func layoutTable(t document.Block) string {
	widths := columnWidths(t)
	dashes := make([]string, len(widths))
	for i, w := range widths {
		dashes[i] = strings.Repeat("-", w)
	}
	lines := []string{layoutRow(t.Head, widths, t.Align), strings.Join(dashes, "-+-")}
	for _, row := range t.Rows {
		lines = append(lines, layoutRow(row, widths, t.Align))
	}
	return strings.Join(lines, "\n")
}

// layoutRow returns a row as a line with columns of these widths.
func layoutRow(cells []document.Cell, widths []int, align []document.Align) string {
	var b strings.Builder
	for i, width := range widths {
		if i > 0 {
			b.WriteString(columnGap)
		}
		text := ""
		if i < len(cells) {
			text = cellText(cells[i])
		}
		b.WriteString(aligned(text, width, alignOf(align, i)))
	}
	return strings.TrimRight(b.String(), " ")
}

// alignOf returns the alignment of a column; Unaligned if the table specifies none.
func alignOf(align []document.Align, column int) document.Align {
	if column < len(align) {
		return align[column]
	}
	return document.Unaligned
}

// aligned pads a text with blanks to a width.
func aligned(text string, width int, a document.Align) string {
	left, right := padding(uniseg.StringWidth(text), width, a)
	return strings.Repeat(" ", left) + text + strings.Repeat(" ", right)
}

// padding returns how many blanks go before and after a text to fill a column's width. text is the text's own
// width.
func padding(text, width int, a document.Align) (left, right int) {
	pad := max(0, width-text)
	switch a {
	case document.Right:
		left = pad
	case document.Center:
		left = pad / 2
	}
	return left, pad - left
}

// emptyCell is shown for an empty cell.
const emptyCell = "–"

// recordParagraphs returns a paragraph for each row in a table, with a line for each cell. A table without rows
// becomes one paragraph with its header.
func recordParagraphs(t document.Block) []document.Block {
	record := document.Block{Kind: document.Record, Container: t.Container, Indent: t.Indent, Gap: t.Gap}
	names := make([][]document.Span, len(t.Head))
	for i, name := range t.Head {
		names[i] = makeBold(name)
	}
	if len(t.Rows) == 0 {
		for _, name := range names {
			if len(name) > 0 {
				record.Fields = append(record.Fields, document.Field{Name: name})
			}
		}
		return []document.Block{record}
	}
	all := make([]document.Block, 0, len(t.Rows))
	for i, row := range t.Rows {
		record.Fields = pairFields(names, row)
		record.AsTable = &document.Block{Kind: document.Table, Head: t.Head, Align: t.Align, Rows: t.Rows[i : i+1]}
		if len(record.Fields) > 0 {
			all = append(all, record)
			record.Gap = true
		}
		if len(all) == 1 {
			names = shortenNames(names, t)
		}
	}
	return all
}

// pairFields pairs each cell in a row with the name of its column; an empty row has no fields.
func pairFields(names [][]document.Span, row []document.Cell) []document.Field {
	if !slices.ContainsFunc(row, func(c document.Cell) bool { return len(c) > 0 }) {
		return nil
	}
	var all []document.Field
	for i, name := range names {
		var value document.Cell
		if i < len(row) {
			value = row[i]
		}
		if len(value) == 0 && len(name) > 0 {
			value = document.Cell{{Text: emptyCell}}
		}
		if len(value) == 0 {
			continue
		}
		f := document.Field{Value: slices.Clone(value)} // a copy, because it may be cut
		if len(name) > 0 {
			f.Name = slices.Concat(name, []document.Span{{Text: ":", Style: document.Bold}, {Text: " "}})
		}
		all = append(all, f)
	}
	return all
}

const (
	// maxName is how many bytes of a column's name are repeated in later records.
	maxName = 60
	// maxNames is how many bytes of repeated names any table may have.
	maxNames = 16 << 10
)

// shortenNames returns the names of columns, cut if necessary: they are repeated for what may be thousands of rows,
// and must not take up more than a few times as much space as the table itself.
func shortenNames(names [][]document.Span, t document.Block) [][]document.Span {
	size, cells := 0, 1
	for _, row := range t.Rows {
		cells += len(row)
		for _, cell := range row {
			for _, s := range cell {
				size += len(s.Text)
			}
		}
	}
	most := min(maxName, max(maxNames, 2*size)/cells)
	short := make([][]document.Span, len(names))
	for i, name := range names {
		text := document.Text(name, false)
		if short[i] = name; len(text) > most+len("…") {
			cut := lastBoundary(text, max(most, 1))
			short[i] = []document.Span{{Text: text[:cut] + "…", Style: document.Bold}}
		}
	}
	return short
}

// recordSpans returns a record as the text of a paragraph.
func recordSpans(fields []document.Field) []document.Span {
	var spans []document.Span
	for i, f := range fields {
		if i > 0 {
			spans = append(spans, document.Span{Text: "\n"})
		}
		spans = append(append(spans, f.Name...), f.Value...)
	}
	return spans
}

// fitColumns narrows the widest columns so that all columns together fit into width, but no column becomes narrower
// than its longest word. natural are the widths that the columns would like to have, and words the widths of their
// longest words. It returns false if a column would become too narrow.
func fitColumns(natural, words []int, width int) ([]int, bool) {
	capped := func(most int) (widths []int, total int) {
		for i, n := range natural {
			n = max(min(n, most), words[i])
			widths = append(widths, n)
			total += n
		}
		return widths, total
	}
	// over is the smallest n for which a maximum width of minColumn + n makes the table too wide.
	over := sort.Search(max(width, 0), func(n int) bool {
		_, total := capped(minColumn + n)
		return total > width
	})
	if over == 0 && width < sum(natural) {
		return nil, false
	}
	widths, total := capped(minColumn + max(over-1, 0))
	return widths, total <= width
}

// longestWord returns the width of the longest part of a text that should not be broken.
func longestWord(text string) (most int) {
	run, state := 0, -1
	for text != "" {
		var c string
		var bounds int
		c, text, bounds, state = uniseg.StepString(text, state)
		w := bounds >> uniseg.ShiftWidth
		if strings.TrimSpace(c) == "" || w > 1 {
			run = 0
		} else {
			run += w
		}
		most = max(most, run, w)
	}
	return most
}
