package tools

import (
	"bytes"
	"encoding/json"

	"parley/tools/plainjson"
)

// repairedField is the field of a call's result that lists what Check had to repair in the call's
// arguments, so that the model learns about it.
const repairedField = "_repaired_args"

// maxRepairNote limits the text in repairedField, in bytes.
const maxRepairNote = 500

// Annotate adds the note from Check, which says what was repaired, to a call's result. If the
// result is an object, the note becomes another field of it; any other result is wrapped in a new
// object together with the note. An empty note changes nothing.
func Annotate(content json.RawMessage, note string) json.RawMessage {
	if note == "" {
		return content
	}
	said, err := plainjson.Marshal(Clip(note, maxRepairNote))
	if err != nil { // a string always marshals
		panic(err)
	}
	field := []byte(`"` + repairedField + `":` + string(said) + `}`)
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
