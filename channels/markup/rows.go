package markup

import (
	"slices"

	"parley/channels/markup/document"
)

// addTable adds a table, split into pieces that each repeat its header. If its rows are too wide for columns, or
// one row is too long for a piece, it adds the rows as records: a line for each cell.
func (a *assembly) addTable(b document.Block) {
	how := a.dialect.tableForm(b)
	if how != formRecords {
		for _, row := range append([][]document.Cell{b.Head}, b.Rows...) {
			for _, cell := range row {
				a.writeTargets(cell)
			}
		}
		b.Widths = columnWidths(b)
		if a.limit.units == 0 {
			a.put(a.render(b))
			return
		}
		if a.putWhole(b) {
			return
		}
	}
	if how == formRecords || !a.everyRowFits(b) {
		for _, record := range recordParagraphs(b) {
			a.add(record)
		}
		return
	}
	for len(b.Rows) > 0 {
		n := largestFitting(len(b.Rows), func(n int) bool { return a.fits(firstRows(b, n), a.room(b.Gap)) })
		if n == 0 { // the first row fits into the next piece
			a.flush(true)
			continue
		}
		a.put(a.render(firstRows(b, n)))
		b.Rows, b.Gap = b.Rows[n:], false
		if len(b.Rows) > 0 {
			a.flush(false)
		}
	}
}

// firstRows returns a table with the first n rows.
func firstRows(b document.Block, n int) document.Block {
	b.Rows = b.Rows[:n]
	return b
}

// everyRowFits reports whether a piece has room for the header and any one row, and whether the header takes up at
// most half of the piece.
func (a *assembly) everyRowFits(b document.Block) bool {
	head := firstRows(b, 0)
	if !a.fits(head, a.limit.half()) {
		return false
	}
	room := a.limit.minus(a.render(head).size)
	for i, row := range b.Rows {
		if most := longestRow(row, b.Widths); most <= room.units && most <= room.bytes {
			continue // true for most rows; rendering each one would take long
		}
		one := b
		one.Rows = b.Rows[i : i+1]
		if !a.fits(one, a.limit) {
			return false
		}
	}
	return true
}

// longestRow returns an upper limit, in bytes, of a row's size in any dialect.
func longestRow(row []document.Cell, widths []int) int {
	const marks, escape = 32, 6
	n := sum(widths) + len(widths)*marks
	for _, cell := range row {
		for _, s := range cell {
			n += marks + escape*(len(s.Text)+len(s.URL))
		}
	}
	return n
}

// cutFields cuts a record (the lines for one table row) so that its first part (head) fits into room: between its
// lines, or inside a line. If a line is cut, its second part repeats the name of its column.
func (a *assembly) cutFields(b document.Block, room size) (head, tail document.Block) {
	b.AsTable = nil // a part of a row is not a whole record
	head, tail = b, b
	tail.Gap = false
	with := func(fields ...document.Field) document.Block {
		h := b
		h.Fields = fields
		return h
	}
	n := largestFitting(len(b.Fields), func(n int) bool { return a.fits(with(b.Fields[:n]...), room) })
	head.Fields, tail.Fields = b.Fields[:n:n], b.Fields[n:]
	must := n == 0 && len(a.currentBlocks) == 0
	if n == len(b.Fields) || n > 0 && room.minus(a.render(head).size).isSmallPartOf(a.limit) {
		return head, tail
	}
	next := b.Fields[n]
	if !a.fits(with(document.Field{Name: next.Name}), a.limit.half()) {
		next = document.Field{Value: slices.Concat(next.Name, next.Value)} // its name is as long as a text
	}
	at := a.cutAt(next.Value, room, must, func(spans []document.Span) document.Block {
		return with(append(head.Fields, document.Field{Name: next.Name, Value: spans})...)
	})
	if at == 0 {
		return head, tail
	}
	start, rest := next, next
	start.Value = trimEnd(spansBefore(next.Value, at))
	rest.Value = trimStart(spansFrom(next.Value, at))
	head.Fields, tail.Fields = append(head.Fields, start), b.Fields[n+1:]
	if len(rest.Value) > 0 {
		tail.Fields = append([]document.Field{rest}, tail.Fields...)
	}
	return head, tail
}
