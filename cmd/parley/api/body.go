package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"parley/bus"
	"parley/tools/spelling"
)

// How many bytes the body of a request may have.
const (
	maxJSON = 1 << 20  // without a file
	maxFile = 10 << 20 // of a file, once it is decoded from base64
	maxBody = maxJSON + (maxFile+2)/3*4
)

// readJSONBody returns the JSON in a request's body, which may be at most most bytes long.
func (a *API) readJSONBody(w *response, r *http.Request, most int64) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, code: "not_json", message: "send JSON, with Content-Type: application/json"}
	}
	return a.readBody(w, r, most)
}

// readBody returns a request's body as it was sent; it may be at most most bytes long.
func (a *API) readBody(w *response, r *http.Request, most int64) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &refusal{status: http.StatusUnsupportedMediaType, code: "compressed", message: "the body must not be compressed: send it without Content-Encoding"}
	}
	if r.ContentLength > most {
		return nil, tooLarge(most)
	}
	if most > maxJSON && (r.ContentLength < 0 || r.ContentLength > maxJSON) {
		if err := a.waitForBodySlot(w, r); err != nil {
			return nil, err
		}
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w.ResponseWriter, r.Body, most))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge(most)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &refusal{status: http.StatusRequestTimeout, code: "too_slow", message: "the request's body came too slowly"}
	case err != nil: // err may quote what was sent
		return nil, badRequest("cut_off", "the request's body was cut off, or its chunks are broken")
	}
	// What follows is the server's time, not the caller's.
	_ = w.control.SetReadDeadline(time.Time{})
	return buf.Bytes(), nil
}

// waitForBodySlot takes one of the few slots for large bodies, which bound how many are in
// memory. It waits a while if all are taken, and returns a refusal if none becomes free.
func (a *API) waitForBodySlot(w *response, r *http.Request) error {
	late := time.NewTimer(a.cfg.Timeouts.Room)
	defer late.Stop()
	select {
	case a.largeBodies <- struct{}{}:
		w.large = true
		a.setReadDeadline(w, r)
		return nil
	case <-r.Context().Done():
		return badRequest("cut_off", "the request was cut off")
	case <-late.C:
		return &refusal{status: http.StatusServiceUnavailable, code: "busy", retry: retryUnavailable, message: "too many large messages are coming in at once: try again"}
	}
}

func tooLarge(most int64) *refusal {
	return &refusal{status: http.StatusRequestEntityTooLarge, code: "too_large", message: fmt.Sprintf("the body is too large: at most %d bytes are taken here", most)}
}

// A field is one member of a JSON object.
type field struct {
	name string
	into any    // where to decode it to
	want string // its type in words, for the error message
}

// decode reads a JSON object that may have these fields and no others. It returns, for each field
// that the object has, how many bytes its value takes.
func decode(raw []byte, fields ...field) (sizes map[string]int, err error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil {
			return nil, badRequest("bad_type", "want a JSON object")
		}
		return nil, badRequest("bad_json", "the body is not JSON: %v", err)
	}
	sizes = make(map[string]int, len(object))
	for _, f := range fields {
		value, ok := object[f.name]
		if !ok {
			continue
		}
		sizes[f.name] = len(value)
		delete(object, f.name)
		if whole, ok := f.into.(*json.RawMessage); ok {
			*whole = value
			continue
		}
		if err := json.Unmarshal(value, f.into); err != nil {
			return nil, badRequest("bad_type", "field %q is to be %s", f.name, f.want)
		}
	}
	for name := range object {
		return nil, unknownField(name, fields)
	}
	return sizes, nil
}

// unknownField returns the refusal of a field that does not exist, which names the field that was
// probably meant.
func unknownField(name string, fields []field) *refusal {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.name
	}
	if near := spelling.Nearest(name, known); near != "" {
		return unprocessable("unknown_field", "there is no field %.80q; did you mean %q?", name, near)
	}
	return unprocessable("unknown_field", "there is no field %.80q; there is: %s", name, strings.Join(known, ", "))
}

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
	sizes, err := decode(raw, field{"name", &f.Name, "a text"}, field{"data", &f.Data, "the file's content in base64"})
	if err != nil {
		return nil, err
	}
	if sizes["name"] == 0 || sizes["data"] == 0 {
		return nil, badRequest("bad_type", `field "file" is to have "name" and "data"`)
	}
	if len(f.Data) > maxFile {
		return nil, &refusal{status: http.StatusRequestEntityTooLarge, code: "too_large", message: fmt.Sprintf("the file is too large: at most %d bytes are taken", maxFile)}
	}
	return &f, nil
}
