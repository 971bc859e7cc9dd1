package api

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
)

// maxFiles is how many files a message to an agent may have.
const maxFiles = 10

// readFiles decodes the files in a message to an agent, each with readFile; nil if there are none.
func readFiles(raw json.RawMessage) ([]bus.File, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, exchange.BadRequest("bad_type", `field "files" must be a list of objects with "name" and "data"`)
	}
	if len(list) > maxFiles {
		return nil, exchange.Unprocessable("too_many_files", "one message can have at most %d files, and this one has %d: send the rest in another message", maxFiles, len(list))
	}
	all, bytes := []bus.File{}, 0
	for _, one := range list {
		f, err := readFile(one)
		switch {
		case err != nil:
			return nil, err
		case f == nil:
			return nil, exchange.BadRequest("bad_type", `field "files" must be a list of objects with "name" and "data"`)
		case f.Name == "" || len(f.Name) > maxFileName || !bus.IsClean(f.Name) || strings.ContainsAny(f.Name, `/\`):
			return nil, exchange.Unprocessable("bad_file_name", "a file needs a plain name of at most %d bytes, without slashes or control characters", maxFileName)
		case len(f.Data) == 0:
			return nil, exchange.Unprocessable("empty_file", "the file %s is empty", f.Name)
		}
		if bytes += len(f.Data); bytes > maxFile {
			return nil, exchange.TooLarge(fmt.Sprintf("the files are too large: send at most %d bytes in one message", maxFile))
		}
		all = append(all, *f)
	}
	return all, nil
}

const maxFileName = 255 // bytes

// readFile decodes the file in a request. It accepts a name and data, but nothing that names a path
// on this machine, and returns nil if there is no file.
func readFile(raw json.RawMessage) (*bus.File, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	var f bus.File
	sizes, err := exchange.Decode(raw, exchange.Field{Name: "name", Into: &f.Name, Want: "a string"}, exchange.Field{Name: "data", Into: &f.Data, Want: "the file's content in base64"})
	if err != nil {
		return nil, err
	}
	if sizes["name"] == 0 || sizes["data"] == 0 {
		return nil, exchange.BadRequest("bad_type", `field "file" must have "name" and "data"`)
	}
	if len(f.Data) > maxFile {
		return nil, exchange.TooLarge(fmt.Sprintf("the file is too large: send at most %d bytes", maxFile))
	}
	return &f, nil
}
