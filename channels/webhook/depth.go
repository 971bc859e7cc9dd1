package webhook

import (
	"maps"
	"math"
	"slices"
	"strings"

	"parley/tools/plainjson"
)

// The limits for posted JSON: how deeply it may be nested, and how many values it may contain. They are checked
// before it is decoded: templates walk through the values and may print them with indentation, so without limits a
// small body could expand to gigabytes.
const (
	maxDepth      = 32
	maxValues     = 100_000
	maxShownBytes = 64 << 10 // bytes of a value printed as JSON
)

// exceededBound returns, in words, which of these limits a JSON text exceeds; "" if none. It only counts brackets
// and commas; the decoder will find out whether they are in the right places.
func exceededBound(text []byte) string {
	depth, values := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i)
		case '[', '{':
			values++
			if depth++; depth > maxDepth {
				return "it's nested more than 32 levels deep"
			}
		case ']', '}':
			depth--
		case ',':
			values++
		}
		if values > maxValues {
			return "it has more than 100,000 values"
		}
	}
	return ""
}

// endOfString returns the index of the quote that closes a JSON string, whose opening
// quote is at from.
func endOfString(text []byte, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}

// encodeJSON returns a value as JSON for people to read, in which < is not escaped. It stops soon after most bytes.
func encodeJSON(v any, indent string, most int) string {
	p := printer{indent: indent, limit: most}
	p.writeValue(v, "\n")
	return p.String()
}

// exactText returns the whole value as JSON, so that it can be compared with others.
func exactText(v any) string {
	switch v.(type) {
	case map[string]any, []any:
		return encodeJSON(v, "", math.MaxInt)
	}
	return plainText(v)
}

// A printer writes JSON, and stops once it has written most bytes.
type printer struct {
	strings.Builder
	indent string // "" writes everything on one line
	limit  int
}

func (p *printer) isFull() bool { return p.Len() >= p.limit }

// writeValue writes a value as JSON. line begins each line at the value's depth: it is a newline and the indentation.
func (p *printer) writeValue(v any, line string) {
	switch x := v.(type) {
	case map[string]any:
		p.writeBrackets('{', '}', line, len(x), func(comma func()) {
			for _, key := range slices.Sorted(maps.Keys(x)) {
				if p.isFull() {
					return
				}
				comma()
				p.writeLeaf(key)
				p.WriteByte(':')
				if p.indent != "" {
					p.WriteByte(' ')
				}
				p.writeValue(x[key], line+p.indent)
			}
		})
	case []any:
		p.writeBrackets('[', ']', line, len(x), func(comma func()) {
			for _, item := range x {
				if p.isFull() {
					return
				}
				comma()
				p.writeValue(item, line+p.indent)
			}
		})
	default:
		p.writeLeaf(v)
	}
}

// writeBrackets writes an opening and a closing bracket and, between them, what the function write writes. write must
// call comma before each member of the list or object; each member goes on its own line.
func (p *printer) writeBrackets(begin, end byte, line string, members int, write func(comma func())) {
	p.WriteByte(begin)
	if members > 0 {
		first := true
		write(func() {
			if !first {
				p.WriteByte(',')
			}
			first = false
			if p.indent != "" {
				p.WriteString(line + p.indent)
			}
		})
		if p.indent != "" {
			p.WriteString(line)
		}
	}
	p.WriteByte(end)
}

// writeLeaf writes a text, a number, true or false.
func (p *printer) writeLeaf(v any) {
	if s, ok := v.(string); ok && len(s) > p.limit {
		v = strings.ToValidUTF8(s[:p.limit], "")
	}
	if raw, err := plainjson.Marshal(v); err == nil { // it came from JSON
		p.Write(raw)
	}
}
