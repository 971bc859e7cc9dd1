// Package lenient reads JSON in the forms in which servers of models write it, which are
// more than one for the same field.
package lenient

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// A String is a string that some servers write as a number, or as null.
type String string

// UnmarshalJSON reads a string, or keeps the JSON text of any other value; an empty
// value becomes "".
func (f *String) UnmarshalJSON(b []byte) error {
	*f = ""
	switch {
	case b[0] == '"' && isPlain(b):
		*f = String(b[1 : len(b)-1])
	case b[0] == '"':
		return json.Unmarshal(b, (*string)(f))
	case !IsEmpty(b):
		*f = String(b)
	}
	return nil
}

// isPlain reports whether a JSON string stands for what it is written as.
func isPlain(b []byte) bool {
	return len(b) >= 2 && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b)
}

// IsEmpty reports whether a field is absent or has an empty value.
func IsEmpty(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`, "{}", "[]":
		return true
	}
	return false
}
