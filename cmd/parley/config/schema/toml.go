package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/tools/plainjson"
)

// A Table is a table within a value that is shown: its entries in the order in which TOML lists
// them.
type Table []Entry

// An Entry is a key of a Table with its value.
type Entry struct {
	Key   string
	Value any // a JSON type, or a Table
}

// MarshalJSON returns the table as a JSON object.
func (t Table) MarshalJSON() ([]byte, error) {
	object := map[string]any{}
	for _, e := range t {
		object[e.Key] = e.Value
	}
	return plainjson.Marshal(object)
}

// toTOML returns a shown value in TOML.
func toTOML(v any) string {
	switch x := v.(type) {
	case string:
		return quoted(x)
	case []string:
		return listToTOML(x)
	case []any:
		return listToTOML(x)
	case Table:
		items := make([]string, len(x))
		for i, e := range x {
			items[i] = e.Key + " = " + toTOML(e.Value)
		}
		return "{ " + strings.Join(items, ", ") + " }"
	case map[string]string: // a map whose keys may be any strings
		var items []string
		for _, name := range slices.Sorted(maps.Keys(x)) {
			items = append(items, quoted(name)+" = "+quoted(x[name]))
		}
		return "{ " + strings.Join(items, ", ") + " }"
	case int64:
		return strconv.FormatInt(x, 10)
	}
	return fmt.Sprint(v) // an amount of money, unchanged
}

func listToTOML[T any](list []T) string {
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = toTOML(item)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// quoted returns a text in quotes, in TOML syntax.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// comment returns a text without line breaks and control characters, so that it fits in a TOML
// comment.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}
