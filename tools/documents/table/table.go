// Package table reads tables of values separated by commas, semicolons or tabs, and other plain
// text, in any charset.
package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"parley/tools/documents/charset"
	"parley/tools/documents/pages"
)

// rowsEach limits how many rows a part contains.
const rowsEach = 200

// Text splits a text into parts.
func Text(content []byte) *pages.Parts {
	parts := &pages.Parts{}
	text, note := charset.Decode(content)
	if note != "" {
		parts.AddNote(note)
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(text)
	for block := range strings.SplitSeq(text, "\n\n") {
		parts.Add(block)
	}
	return parts
}

// Table splits a table of separated values into parts. Each part contains some of the table's rows
// below its first row, which is taken as the header.
func Table(content []byte) *pages.Parts {
	parts := &pages.Parts{}
	text, note := charset.Decode(content)
	if note != "" {
		parts.AddNote(note)
	}
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	rows := csv.NewReader(strings.NewReader(text))
	rows.Comma, rows.LazyQuotes, rows.FieldsPerRecord, rows.ReuseRecord = separator(text), true, -1, true
	var first string
	w := writer{parts: parts}
	for n := 1; !parts.IsFull(); n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			parts.AddNote(fmt.Sprintf("what is behind row %d cannot be read: %v", n-1, err))
			break
		}
		if n == 1 {
			first = Row(row)
			w.head = first + "\n" + Rule(len(row))
			continue
		}
		w.add(n, Row(row))
	}
	if w.from == 0 && first != "" {
		parts.Put("row 1", first)
	}
	w.end()
	return parts
}

// A writer collects rows into parts.
type writer struct {
	parts    *pages.Parts
	head     string
	rows     strings.Builder
	from, to int
}

const partSize = 4000

func (w *writer) add(n int, row string) {
	if w.rows.Len() > 0 && (w.rows.Len()+len(row) > partSize || n-w.from >= rowsEach) {
		w.end()
	}
	if w.rows.Len() == 0 {
		w.from = n
	}
	w.to = n
	w.rows.WriteString("\n" + row)
}

func (w *writer) end() {
	if w.rows.Len() == 0 {
		return
	}
	w.parts.Put(fmt.Sprintf("rows %d to %d", w.from, w.to), w.head+w.rows.String())
	w.rows.Reset()
}

// Limits of a row.
const (
	maxCells = 500
	maxCell  = 2000
)

// Row returns one row of a Markdown table. If it would have more than maxCells, the last cell says how many more.
func Row(cells []string) string {
	var out strings.Builder
	out.WriteByte('|')
	for i, cell := range cells {
		if i == maxCells {
			fmt.Fprintf(&out, " … %d more cells |", len(cells)-i)
			break
		}
		out.WriteByte(' ')
		out.WriteString(Cell(cell))
		out.WriteString(" |")
	}
	return out.String()
}

// Cell returns a text, or the beginning of a long one, in a form that fits into one cell of a Markdown table.
func Cell(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) > maxCell {
		text = strings.ToValidUTF8(text[:maxCell], "") + "…"
	}
	return strings.ReplaceAll(text, "|", `\|`)
}

// Rule returns the line of dashes below the first row of a Markdown table with this many cells.
func Rule(cells int) string { return "|" + strings.Repeat("---|", min(max(cells, 1), maxCells)) }

// separator returns the character that separates the values: the one that splits the first rows most evenly; a comma
// if none does.
func separator(text string) rune {
	lines := firstRows(text, 20)
	best, most := ',', 0
	for _, s := range []byte{',', ';', '\t', '|'} {
		counts := make([]int, 0, len(lines))
		for _, line := range lines {
			counts = append(counts, bytes.Count(line, []byte{s}))
		}
		if score := evenness(counts); score > most {
			best, most = rune(s), score
		}
	}
	return best
}

// evenness scores a separator by how often it occurs in each row: high if it occurs often and
// equally often in each row.
func evenness(counts []int) int {
	if len(counts) == 0 || counts[0] == 0 {
		return 0
	}
	same := 0
	for _, n := range counts {
		if n == counts[0] {
			same++
		}
	}
	return same*1000/len(counts)*10 + min(counts[0], 100)
}

// firstRows returns the first rows of a text, at most most of them, without the text between
// quotes.
func firstRows(text string, most int) (rows [][]byte) {
	quoted := false
	var row []byte
	for i := 0; i < len(text) && i < 64<<10 && len(rows) < most; i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			if len(bytes.TrimSpace(row)) > 0 {
				rows = append(rows, row)
			}
			row = nil
		default:
			row = append(row, c)
		}
	}
	if len(bytes.TrimSpace(row)) > 0 && len(rows) < most {
		rows = append(rows, row)
	}
	return rows
}
