package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// lines knows on which line of a document each key, table and list element stands.
type lines struct {
	at     map[string]int // by joined path; list elements by number
	starts []int          // offsets of the document's lines
	arrays map[string]int // how many [[tables]] of a path there were
	parser unstable.Parser
}

func joined(path []string) string { return strings.Join(path, "\x00") }

// findLines reads a document that is known to be valid.
func findLines(doc []byte) *lines {
	l := &lines{at: map[string]int{}, starts: []int{0}, arrays: map[string]int{}}
	for i, c := range doc {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	l.parser.Reset(doc)
	var table []string
	for l.parser.NextExpression() {
		switch e := l.parser.Expression(); e.Kind {
		case unstable.Table:
			table = l.header(e, false)
		case unstable.ArrayTable:
			table = l.header(e, true)
		case unstable.KeyValue:
			l.keyValue(e, table)
		default:
			// Nothing else can stand at the top of a valid document.
		}
	}
	return l
}

// of is the line of a path, or of the nearest table above it.
func (l *lines) of(path ...string) int {
	for n := len(path); n > 0; n-- {
		if line, ok := l.at[joined(path[:n])]; ok {
			return line
		}
	}
	return 0
}

func (l *lines) mark(path []string, offset uint32) {
	key := joined(path)
	if _, ok := l.at[key]; ok {
		return
	}
	i, found := slices.BinarySearchFunc(l.starts, int(offset), cmp.Compare[int])
	if found {
		i++
	}
	l.at[key] = i
}

func (l *lines) header(e *unstable.Node, array bool) []string {
	var table []string
	for it := e.Key(); it.Next(); {
		table = append(table, string(it.Node().Data))
		l.mark(table, it.Node().Raw.Offset)
		n, several := l.arrays[joined(table)]
		switch {
		case it.IsLast() && array:
			l.arrays[joined(table)] = n + 1
			table = append(table, strconv.Itoa(n))
			l.mark(table, it.Node().Raw.Offset)
		case several:
			table = append(table, strconv.Itoa(n-1))
		}
	}
	return table
}

func (l *lines) keyValue(e *unstable.Node, table []string) {
	full := slices.Clone(table)
	for it := e.Key(); it.Next(); {
		full = append(full, string(it.Node().Data))
		l.mark(full, it.Node().Raw.Offset)
	}
	l.value(e.Value(), full)
}

func (l *lines) value(v *unstable.Node, full []string) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			l.keyValue(it.Node(), full)
		}
	case unstable.Array:
		n := 0
		for it := v.Children(); it.Next(); n++ {
			element := append(slices.Clone(full), strconv.Itoa(n))
			if it.Node().Raw.Length > 0 {
				l.mark(element, it.Node().Raw.Offset)
			}
			l.value(it.Node(), element)
		}
	default:
		// A single value stands where its key does.
	}
}
