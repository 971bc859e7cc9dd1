package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines holds the line of each key, table and list element in a TOML document.
type lines struct {
	at     map[string]int // the line of each path, as joined returns it
	starts []int          // the offsets at which the document's lines begin
	arrays map[string]int // how many [[tables]] with each path have been read so far
	parser unstable.Parser
}

// joined returns a path as one string, for use as the key of a map.
func joined(path []string) string { return strings.Join(path, "\x00") }

// findLines returns the lines of a TOML document, which must be valid.
func findLines(doc []byte) *lines {
	p := &lines{at: map[string]int{}, starts: []int{0}, arrays: map[string]int{}}
	for i, c := range doc {
		if c == '\n' {
			p.starts = append(p.starts, i+1)
		}
	}
	p.parser.Reset(doc)
	var table []string
	for p.parser.NextExpression() {
		switch e := p.parser.Expression(); e.Kind {
		case unstable.Table:
			table = p.readHeader(e, false)
		case unstable.ArrayTable:
			table = p.readHeader(e, true)
		case unstable.KeyValue:
			p.readKeyValue(e, table)
		default:
			// Nothing else can occur at the top level of a valid document.
		}
	}
	return p
}

// lineOf returns the line of the key or table at a path, or of the nearest table above it; 0 if
// there is neither. Lines count from 1.
func (p *lines) lineOf(path ...string) int {
	for n := len(path); n > 0; n-- {
		if line, ok := p.at[joined(path[:n])]; ok {
			return line
		}
	}
	return 0
}

// markLine records the line of a path that is written at this offset, unless the path occurred before.
func (p *lines) markLine(path []string, offset uint32) {
	key := joined(path)
	if _, ok := p.at[key]; ok {
		return
	}
	i, found := slices.BinarySearchFunc(p.starts, int(offset), cmp.Compare[int])
	if found {
		i++
	}
	p.at[key] = i
}

// readHeader records the lines of a [table] or, if array is true, of [[tables]], and returns the table's path. In the
// paths, the elements of [[tables]] are numbered from 0.
func (p *lines) readHeader(e *unstable.Node, array bool) []string {
	var table []string
	for it := e.Key(); it.Next(); {
		table = append(table, string(it.Node().Data))
		p.markLine(table, it.Node().Raw.Offset)
		n, several := p.arrays[joined(table)]
		switch {
		case it.IsLast() && array:
			p.arrays[joined(table)] = n + 1
			table = append(table, strconv.Itoa(n))
			p.markLine(table, it.Node().Raw.Offset)
		case several:
			table = append(table, strconv.Itoa(n-1))
		}
	}
	return table
}

func (p *lines) readKeyValue(e *unstable.Node, table []string) {
	full := slices.Clone(table)
	for it := e.Key(); it.Next(); {
		full = append(full, string(it.Node().Data))
		p.markLine(full, it.Node().Raw.Offset)
	}
	p.readValue(e.Value(), full)
}

func (p *lines) readValue(v *unstable.Node, full []string) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			p.readKeyValue(it.Node(), full)
		}
	case unstable.Array:
		n := 0
		for it := v.Children(); it.Next(); n++ {
			element := append(slices.Clone(full), strconv.Itoa(n))
			if it.Node().Raw.Length > 0 {
				p.markLine(element, it.Node().Raw.Offset)
			}
			p.readValue(it.Node(), element)
		}
	default:
		// A single value is where its key is.
	}
}
