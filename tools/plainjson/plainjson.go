// Package plainjson writes JSON without the HTML escapes of encoding/json. That package writes <, > and & as
// \u003c, \u003e and \u0026, so that the JSON may be embedded in a web page. A model reads these escapes literally:
// they cost it tokens, and text that it quotes with them matches nothing. Two texts that differ in them are not the
// same bytes. So whatever is stored, compared, hashed or shown is written with this package. JSON parsers notice no
// difference. file.go stores a value in a small file, and string.go writes texts quickly.
package plainjson

import (
	"bytes"
	"encoding/json"
	"io"
)

// Marshal is like json.Marshal, without the escapes. It also removes those written by a type's own MarshalJSON, or
// stored by an older release.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := NewEncoder(&b).Encode(v); err != nil {
		return nil, err
	}
	return Unescape(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// MarshalIndent is like json.MarshalIndent, without the escapes.
func MarshalIndent(v any, prefix, indent string) ([]byte, error) {
	raw, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, prefix, indent); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// NewEncoder returns an encoder that writes without the escapes. It keeps those in JSON that a value already
// contains.
func NewEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// Unescape returns the same JSON without the escapes. It returns raw itself if raw contains none, and never changes
// the bytes of raw.
func Unescape(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u00`)) {
		return raw
	}
	var plain []byte // nil as long as nothing differs
	from := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		c, ok := escaped(raw[i:])
		if !ok {
			i++ // the next character belongs to this backslash: in \\u003c no escape begins at the second one
			continue
		}
		plain = append(append(plain, raw[from:i]...), c)
		i += escapeLength - 1
		from = i + 1
	}
	if from == 0 {
		return raw
	}
	return append(plain, raw[from:]...)
}

const escapeLength = len(`\u003c`)

// escaped returns the character whose escape text begins with; false if text begins with another escape.
func escaped(text []byte) (byte, bool) {
	if len(text) < escapeLength {
		return 0, false
	}
	switch string(text[:escapeLength]) {
	case `\u003c`, `\u003C`:
		return '<', true
	case `\u003e`, `\u003E`:
		return '>', true
	case `\u0026`:
		return '&', true
	}
	return 0, false
}
