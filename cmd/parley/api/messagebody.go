package api

import (
	"encoding/json"
	"fmt"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
)

// A textList is one text or a list of texts.
type textList []string

// UnmarshalJSON reads one text or a list.
func (n *textList) UnmarshalJSON(raw []byte) error {
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		*n = textList{one}
		return nil
	}
	var all []string
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	*n = all
	return nil
}

// readFile decodes the file in a request. It accepts a name and data but nothing that names a
// path on this machine, and returns nil if there is no file.
func readFile(raw json.RawMessage) (*bus.File, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	var f bus.File
	sizes, err := exchange.Decode(raw, exchange.Field{Name: "name", Into: &f.Name, Want: "a text"}, exchange.Field{Name: "data", Into: &f.Data, Want: "the file's content in base64"})
	if err != nil {
		return nil, err
	}
	if sizes["name"] == 0 || sizes["data"] == 0 {
		return nil, exchange.BadRequest("bad_type", `field "file" must have "name" and "data"`)
	}
	if len(f.Data) > maxFile {
		return nil, exchange.TooLarge(fmt.Sprintf("the file is too large: at most %d bytes are taken", maxFile))
	}
	return &f, nil
}
