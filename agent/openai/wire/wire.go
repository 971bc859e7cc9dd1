// Package wire reads and writes what both of OpenAI's protocols have in common, in the forms that servers use:
// JSON that has more than one form for the same field (wire.go), texts that arrive in pieces (text.go), the ids
// and the arguments of tool calls (calls.go), the tokens that an answer used (usage.go), and the words that say
// why it ended (ending.go).
package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// An Int is a whole number that some servers write in quotes or as a fraction.
type Int int

// UnmarshalJSON reads a number, which may be in quotes. An empty value leaves n unchanged.
func (n *Int) UnmarshalJSON(b []byte) error {
	text := Unquoted(b)
	if text == "" || text == "null" {
		return nil
	}
	if i, err := strconv.Atoi(text); err == nil {
		*n = Int(i)
		return nil
	}
	var f float64
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return err
	}
	*n = Int(max(-1<<31, min(f, 1<<31-1)))
	return nil
}

// Unquoted returns a JSON value without surrounding quotes and spaces.
func Unquoted(b []byte) string {
	b = bytes.TrimSpace(b)
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		b = bytes.TrimSpace(b[1 : len(b)-1])
	}
	return string(b)
}

// A String is a string that some servers write as a number or as null.
type String string

// UnmarshalJSON reads a string, or keeps the JSON text of any other value; an empty value becomes "".
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

// isPlain reports whether a JSON string contains no escapes, so that its content is exactly what is written.
func isPlain(b []byte) bool {
	return len(b) >= 2 && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b)
}

// IsEmpty reports whether a field is missing or has an empty value.
func IsEmpty(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`, "{}", "[]":
		return true
	}
	return false
}
