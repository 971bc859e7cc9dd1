package canvas

import (
	"html/template"
	"strconv"
	"strings"

	"parley/tools"
)

// A table is the table in a model's arguments.
type table struct {
	Columns []string   `json:"columns" jsonschema:"the names of the columns, 50 at most"`
	Rows    [][]string `json:"rows" jsonschema:"the rows, 1000 at most, each with a cell for each column"`
}

// check refuses a table that is too large, or that has a row with another number of cells than there are columns.
func (t *table) check() error {
	switch {
	case len(t.Columns) == 0 || len(t.Columns) > maxColumns:
		return tools.Errorf(tools.InvalidArgs, errColumns, len(t.Columns), maxColumns)
	case len(t.Rows) == 0 || len(t.Rows) > maxRows:
		return tools.Errorf(tools.InvalidArgs, errRows, len(t.Rows), maxRows)
	case len(t.Columns)*len(t.Rows) > maxCells:
		return tools.Errorf(tools.InvalidArgs, errCells, len(t.Columns)*len(t.Rows), maxCells)
	}
	for i, row := range append([][]string{t.Columns}, t.Rows...) {
		if len(row) != len(t.Columns) {
			return tools.Errorf(tools.InvalidArgs, errRow, i, len(row), len(t.Columns))
		}
		for _, cell := range row {
			if len(cell) > maxCell {
				return tools.Errorf(tools.InvalidArgs, errCell, i, len(cell), maxCell)
			}
		}
	}
	return nil
}

// The templates of a table: with the table alone, and with its title.
const (
	gridTemplate = `{{define "grid"}}<table>
<thead><tr>{{range .Columns}}<th scope="col"{{if .Number}} class="number"{{end}}>{{.Text}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range .}}<td{{if .Number}} class="number"{{end}}>{{.Text}}</td>{{end}}</tr>
{{end}}</tbody>
</table>
{{end}}`
	tableTemplate = gridTemplate + `{{with .Title}}<h1>{{.}}</h1>
{{end}}{{template "grid" .}}`
)

// A cell is one cell of a drawn table. The numbers of a column are aligned.
type cell struct {
	Text   string
	Number bool
}

// A grid is a table in the form that its template needs.
type grid struct {
	Title   string
	Columns []cell
	Rows    [][]cell
}

func (t *table) draw(title string) (template.HTML, error) {
	drawn, err := render(t.grid(title), tableTemplate)
	return pageStyle + drawn, err
}

func (t *table) grid(title string) grid {
	numbers := make([]bool, len(t.Columns))
	for i := range numbers {
		numbers[i] = t.hasNumbers(i)
	}
	cells := func(row []string) []cell {
		all := make([]cell, len(row))
		for i, text := range row {
			all[i] = cell{text, numbers[i]}
		}
		return all
	}
	g := grid{Title: title, Columns: cells(t.Columns)}
	for _, row := range t.Rows {
		g.Rows = append(g.Rows, cells(row))
	}
	return g
}

// hasNumbers reports whether all cells of a column that aren't empty are numbers, such as "12", "1,200.50" or "3 %".
func (t *table) hasNumbers(column int) bool {
	found := false
	for _, row := range t.Rows {
		text := strings.TrimSpace(strings.Trim(row[column], "%€$£ "))
		if text == "" {
			continue
		}
		if _, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64); err != nil {
			return false
		}
		found = true
	}
	return found
}
