package tools

import (
	"bytes"
	"encoding/json"
)

// repaired is the name under which a result says what was repaired in the
// arguments of its call.
const repaired = "_repaired_args"

// maxNote bounds it, in bytes.
const maxNote = 500

// Annotate adds to a result the note of Check: a field of its own behind those of
// an object, and beside the result where that is none. No note changes nothing.
func Annotate(content json.RawMessage, note string) json.RawMessage {
	if note == "" {
		return content
	}
	said, err := json.Marshal(clip(note, maxNote))
	if err != nil { // a string always marshals
		panic(err)
	}
	field := []byte(`"` + repaired + `":` + string(said) + `}`)
	content = bytes.TrimSpace(content)
	body, isObject := bytes.CutSuffix(content, []byte("}"))
	switch {
	case !isObject || !bytes.HasPrefix(content, []byte("{")):
		if len(content) == 0 {
			content = []byte("null")
		}
		return append([]byte(`{"result":`+string(content)+`,`), field...)
	case len(bytes.TrimSpace(body[1:])) > 0:
		return append([]byte(string(body)+","), field...)
	}
	return append([]byte("{"), field...)
}
