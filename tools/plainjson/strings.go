package plainjson

import (
	"bytes"
	"unicode/utf8"
)

// ReadStrings reads a JSON object as Marshal writes one whose values are all strings, and calls field with each
// name and value. It is a fast reader for small objects of which there are many. It returns false, perhaps after
// some calls, if field does, and for any JSON that it doesn't read, such as with other values, white space, or an
// escape by number: that is left to encoding/json. field must keep neither the name nor the value.
func ReadStrings(raw []byte, field func(name, value []byte) bool) bool {
	rest, ok := bytes.CutPrefix(raw, []byte(`{`))
	for more := true; more; {
		var name, value []byte
		if name, rest, ok = cutString(rest, ok); !ok {
			return false
		}
		rest, ok = bytes.CutPrefix(rest, []byte(`:`))
		if value, rest, ok = cutString(rest, ok); !ok || !field(name, value) {
			return false
		}
		rest, more = bytes.CutPrefix(rest, []byte(`,`))
	}
	return string(rest) == `}`
}

// cutString cuts a JSON string off the beginning of raw, and returns its value and the rest. The value is part of
// raw if it has no escapes. It returns false if there is none, and does nothing if ok is false.
func cutString(raw []byte, ok bool) (value, rest []byte, _ bool) {
	if !ok || len(raw) == 0 || raw[0] != '"' {
		return nil, nil, false
	}
	from := 1
	for i := 1; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			if value == nil {
				value = raw[from:i]
			} else {
				value = append(value, raw[from:i]...)
			}
			return value, raw[i+1:], utf8.Valid(value)
		case c < ' ':
			return nil, nil, false
		case c == '\\':
			if i+1 == len(raw) {
				return nil, nil, false
			}
			c, known := escapedByLetter(raw[i+1])
			if !known {
				return nil, nil, false
			}
			if value == nil {
				value = make([]byte, 0, len(raw))
			}
			value = append(append(value, raw[from:i]...), c)
			i++
			from = i + 1
		}
	}
	return nil, nil, false
}

// escapedByLetter returns the character that a backslash and c stand for in a JSON string; false if they stand for
// none, or for one that is given by its number.
func escapedByLetter(c byte) (byte, bool) {
	switch c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}
