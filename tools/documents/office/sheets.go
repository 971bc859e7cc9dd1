package office

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/tools/documents/pages"
	"parley/tools/documents/table"
)

// Limits of the parts that a sheet is divided into.
const (
	maxPartSize    = 4000 // bytes
	maxRowsPerPart = 200
	maxColumns     = 200
)

// A bookReader is an XLSX workbook that is being read.
type bookReader struct {
	parts   *pages.Parts
	strings []string // the texts that cells share
	formats formats
}

// A sheet is one sheet of a workbook.
type sheet struct {
	name, state, part string
}

// readSheets reads an XLSX file: it adds the rows of each sheet to parts.
func readSheets(a *archive, main string, parts *pages.Parts) error {
	b := &bookReader{parts: parts}
	links, err := a.relations(main)
	if err != nil {
		return err
	}
	sheets, err := b.listSheets(a, main, links)
	if err != nil {
		return err
	}
	for _, l := range links {
		switch l.kind {
		case "sharedStrings":
			err = a.readOptional(l.target, b.readStrings)
		case "styles":
			err = a.readOptional(l.target, b.formats.read)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range sheets {
		if parts.IsFull() {
			break
		}
		if err := b.readSheet(a, s); err != nil {
			return err
		}
	}
	return nil
}

// listSheets lists the sheets in order, at most maxParts.
func (b *bookReader) listSheets(a *archive, main string, links map[string]relation) (sheets []sheet, err error) {
	err = a.read(main, func(r *partReader) error {
		return r.walk(func(e xml.StartElement) error {
			switch e.Name.Local {
			case "sheet":
				if len(sheets) < maxParts {
					sheets = append(sheets, sheet{attribute(e, "name"), attribute(e, "state"), links[relatedPart(e, "id")].target})
				}
			case "workbookPr":
				b.formats.since1904 = attribute(e, "date1904") == "1" || attribute(e, "date1904") == "true"
			}
			return nil
		})
	})
	return sheets, err
}

func (b *bookReader) readStrings(r *partReader) error {
	return r.walk(func(e xml.StartElement) error {
		if e.Name.Local != "si" {
			return nil
		}
		text, err := richText(r)
		b.strings = append(b.strings, text)
		return err
	})
}

// richText returns a text that may consist of pieces in different fonts or colors.
func richText(r *partReader) (string, error) {
	var out strings.Builder
	err := r.eachChild(func(e xml.StartElement) error {
		switch e.Name.Local {
		case "t":
			text, err := r.text()
			out.WriteString(text)
			return err
		case "r":
			text, err := richText(r)
			out.WriteString(text)
			return err
		}
		return nil
	})
	return out.String(), err
}

// A piece collects rows of a sheet until they become a part of the document.
type piece struct {
	rows    [][]string
	numbers []int
	width   int
	size    int
}

// readSheet reads one sheet and adds its rows to the parts.
func (b *bookReader) readSheet(a *archive, s sheet) error {
	title := fmt.Sprintf("sheet %q", s.name)
	if s.state == "hidden" || s.state == "veryHidden" {
		title += ", hidden"
	}
	var p piece
	some := false
	flush := func() {
		if len(p.rows) > 0 {
			some = true
			b.parts.Put(fmt.Sprintf("%s, rows %d to %d", title, p.numbers[0], p.numbers[len(p.numbers)-1]), p.toTable())
		}
		p = piece{}
	}
	last := 0
	err := a.readOptional(s.part, func(r *partReader) error {
		return r.walk(func(e xml.StartElement) error {
			if e.Name.Local != "row" || b.parts.IsFull() {
				return nil
			}
			if last++; number(attribute(e, "r")) > 0 {
				last = number(attribute(e, "r"))
			}
			cells, size, err := b.row(r)
			if len(cells) == 0 {
				return err
			}
			if len(p.rows) > 0 && (p.size+size > maxPartSize || len(p.rows) == maxRowsPerPart) {
				flush()
			}
			p.add(last, cells, size)
			return err
		})
	})
	flush()
	if !some && err == nil {
		b.parts.Put(title, "")
	}
	return err
}

func (p *piece) add(n int, cells []string, size int) {
	p.rows, p.numbers = append(p.rows, cells), append(p.numbers, n)
	p.width, p.size = max(p.width, len(cells)), p.size+size
}

// toTable returns the rows as a table: each row with its number, below the letters of the columns.
func (p *piece) toTable() string {
	head := make([]string, p.width+1)
	for i := range p.width {
		head[i+1] = columnLetters(i)
	}
	lines := []string{table.Row(head), table.Rule(len(head))}
	for i, row := range p.rows {
		row = append([]string{strconv.Itoa(p.numbers[i])}, row...)
		lines = append(lines, table.Row(append(row, make([]string, p.width+1-len(row))...)))
	}
	return strings.Join(lines, "\n")
}

// row reads the cells of a row, up to maxColumns, and returns their total size in bytes. If there are more, the last cell
// says so.
func (b *bookReader) row(r *partReader) (cells []string, size int, err error) {
	at := -1
	beyond := 0
	err = r.eachChild(func(e xml.StartElement) error {
		if e.Name.Local != "c" {
			return nil
		}
		if at++; attribute(e, "r") != "" {
			at = columnIndex(attribute(e, "r"))
		}
		text, err := b.cell(r, e)
		switch {
		case err != nil || text == "":
		case at >= maxColumns:
			beyond++
		default:
			for len(cells) <= at {
				cells = append(cells, "")
			}
			cells[at] = text
			size += len(text) + 3
		}
		return err
	})
	if beyond > 0 {
		cells = append(cells, fmt.Sprintf("… %d more", beyond))
	}
	return slices.Clip(cells), size, err
}

// columnIndex returns the index of a cell's column, from 0: that of "AB12" is 27.
func columnIndex(place string) int {
	n := 0
	for _, c := range strings.ToUpper(place) {
		if c < 'A' || c > 'Z' || n > 1<<20 {
			break
		}
		n = n*26 + int(c-'A') + 1
	}
	return max(n-1, 0)
}

// columnLetters returns the name of the column with this index: 27 is AB.
func columnLetters(n int) string {
	name := ""
	for n++; n > 0; n = (n - 1) / 26 {
		name = string(rune('A'+(n-1)%26)) + name
	}
	return name
}
