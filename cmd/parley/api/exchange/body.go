package exchange

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

	"parley/tools/spelling"
)

// MaxJSON is how many bytes the body of most requests may have. Only requests with larger bodies, or bodies of unknown
// length where larger ones are allowed, wait for others.
const MaxJSON = 1 << 20

// firstBuffer is the size of the buffer for a body, in bytes, before any of it has arrived.
const firstBuffer = 64 << 10

// MaxLarge is how many large bodies may be in memory at once: each takes several times its size there.
const MaxLarge = 4

// A BodyReader reads the bodies of requests: it limits how long they may take, and how many large ones are in
// memory.
type BodyReader struct {
	bodyTime, roomTime time.Duration
	slots              chan struct{} // contains an element for each large body in memory
}

// NewBodyReader returns a BodyReader. A body may take the time body, plus an eighth of that for each megabyte; a
// large one waits for others at most the time room.
func NewBodyReader(body, room time.Duration) *BodyReader {
	return &BodyReader{bodyTime: body, roomTime: room, slots: make(chan struct{}, MaxLarge)}
}

// Large returns how many large bodies are in memory.
func (i *BodyReader) Large() int { return len(i.slots) }

// setReadDeadline limits how long, from now on, a request's body may take.
func (w *Answer) setReadDeadline(r *http.Request) {
	megabytes := time.Duration(max(r.ContentLength, 0) >> 20)
	_ = w.control.SetReadDeadline(time.Now().Add(w.bodies.bodyTime + megabytes*w.bodies.bodyTime/8))
}

// ReadJSON returns the body of a request that says that it is JSON, which may be at most most bytes long. It doesn't
// check the JSON itself.
func (w *Answer) ReadJSON(r *http.Request, most int64) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, &Refusal{Status: http.StatusUnsupportedMediaType, Code: "not_json", Message: "send JSON, with Content-Type: application/json"}
	}
	return w.ReadBody(r, most)
}

// ReadBody returns a request's body as it was sent; it may be at most most bytes long.
func (w *Answer) ReadBody(r *http.Request, most int64) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &Refusal{Status: http.StatusUnsupportedMediaType, Code: "compressed", Message: "the body must not be compressed: send it without Content-Encoding"}
	}
	if r.ContentLength > most {
		return nil, BodyTooLarge(most)
	}
	if most > MaxJSON && (r.ContentLength < 0 || r.ContentLength > MaxJSON) {
		if err := w.waitForSlot(r); err != nil {
			return nil, err
		}
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 { // an announced length alone allocates nothing yet
		buf.Grow(int(min(r.ContentLength, firstBuffer)) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w.ResponseWriter, r.Body, most))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, BodyTooLarge(most)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Refusal{Status: http.StatusRequestTimeout, Code: "too_slow", Message: "the request's body took too long: send it again"}
	case err != nil: // err may quote what was sent
		return nil, BadRequest("cut_off", "the request's body was cut off, or its chunks are broken: send it again")
	}
	// From here on the time is the server's, not the caller's.
	_ = w.control.SetReadDeadline(time.Time{})
	return buf.Bytes(), nil
}

// waitForSlot takes one of the few slots for large bodies, which limit how many are in memory. If all are taken, it
// waits a while, and returns a refusal if none becomes free.
func (w *Answer) waitForSlot(r *http.Request) error {
	late := time.NewTimer(w.bodies.roomTime)
	defer late.Stop()
	select {
	case w.bodies.slots <- struct{}{}:
		w.large = true
		w.setReadDeadline(r)
		return nil
	case <-r.Context().Done():
		return BadRequest("cut_off", "the request was cut off: send it again")
	case <-late.C:
		return Unavailable("busy", "too many large messages are coming in at once: try again later")
	}
}

// BodyTooLarge refuses a body of more than most bytes.
func BodyTooLarge(most int64) *Refusal {
	return TooLarge(fmt.Sprintf("the body is too large: send at most %d bytes", most))
}

// A Field is one member of a JSON object.
type Field struct {
	Name string
	Into any    // where to decode it
	Want string // its type in words, for the error message
}

// Decode parses a JSON object that may contain these fields and no others. It returns, for each field that the
// object contains, how many bytes its value takes.
func Decode(raw []byte, fields ...Field) (sizes map[string]int, err error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok || err == nil {
			return nil, BadRequest("bad_type", "the body must be a JSON object")
		}
		return nil, BadRequest("bad_json", "the body isn't JSON: %v", err)
	}
	sizes = make(map[string]int, len(object))
	for _, f := range fields {
		value, ok := object[f.Name]
		if !ok {
			continue
		}
		sizes[f.Name] = len(value)
		delete(object, f.Name)
		if whole, ok := f.Into.(*json.RawMessage); ok {
			*whole = value
			continue
		}
		if err := json.Unmarshal(value, f.Into); err != nil {
			return nil, BadRequest("bad_type", "field %q must be %s", f.Name, f.Want)
		}
	}
	for name := range object {
		return nil, unknownField(name, fields)
	}
	return sizes, nil
}

// unknownField returns the refusal for a field that doesn't exist, which names the field that was probably meant.
func unknownField(name string, fields []Field) *Refusal {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.Name
	}
	if near := spelling.Nearest(name, known); near != "" {
		return Unprocessable("unknown_field", "there's no field %.80q; did you mean %q?", name, near)
	}
	return Unprocessable("unknown_field", "there's no field %.80q; the fields are: %s", name, strings.Join(known, ", "))
}

// ReadText reads a request's body, a JSON object with one string in the field with this name, and returns the
// string.
func (w *Answer) ReadText(r *http.Request, name string) (text string, err error) {
	raw, err := w.ReadJSON(r, 64<<10)
	if err != nil {
		return "", err
	}
	_, err = Decode(raw, Field{Name: name, Into: &text, Want: "a string"})
	if err == nil && text == "" {
		err = Unprocessable("missing_field", "field %q is missing", name)
	}
	return text, err
}

// A TextList is one string or a list of strings.
type TextList []string

// UnmarshalJSON reads one string or a list.
func (n *TextList) UnmarshalJSON(raw []byte) error {
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		*n = TextList{one}
		return nil
	}
	var all []string
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	*n = all
	return nil
}
