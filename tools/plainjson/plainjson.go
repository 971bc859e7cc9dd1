// Package plainjson is how this program writes JSON. encoding/json writes <, > and & as \u003c,
// \u003e and \u0026, so that JSON may stand in a page. A model reads these escapes as they are:
// they cost it tokens, and what it quotes from them fits nothing. Two texts that differ in them are
// not the same bytes. So whatever is stored, compared, hashed or shown is written here, without
// them. Readers of JSON notice no difference. file.go keeps a value in a small file, such as a note in
// a home.
package plainjson

import (
	"bytes"
	"encoding/json"
	"io"
)

// Marshal does what json.Marshal does, without the escapes. It also undoes those in what a type's
// own MarshalJSON has written, or what an older release has stored.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := NewEncoder(&b).Encode(v); err != nil {
		return nil, err
	}
	return Unescape(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// MarshalIndent does what json.MarshalIndent does, without the escapes.
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

// NewEncoder returns an encoder that writes without the escapes. Those in JSON that a value holds
// already stay.
func NewEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// Unescape returns the same JSON without the escapes. It returns raw itself if raw has none, and
// never changes the bytes of raw.
func Unescape(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u00`)) {
		return raw
	}
	var plain []byte // nil as long as nothing is different
	from := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		c, ok := escaped(raw[i:])
		if !ok {
			i++ // what follows belongs to the backslash: in \\u003c no escape begins at the second
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

// escaped returns the character whose escape text begins with; false if it begins with another
// escape.
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
