package tools

import (
	"bytes"
	"encoding/json"
)

// repaired is the name of the field in which a result says what was repaired in the
// arguments of its call.
const repaired = "_repaired_args"

// maxNote bounds that text, in bytes.
const maxNote = 500

// Annotate adds the note of Check to a result. An object gets it as a further field; any
// other result is put into an object beside it. An empty note changes nothing.
func Annotate(content json.RawMessage, note string) json.RawMessage {
	if note == "" {
		return content
	}
	said, err := json.Marshal(Clip(note, maxNote))
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
