package openai

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"

	"parley/tools/plainjson"
)

// appendJSON appends a value as JSON.
func appendJSON(to []byte, v any) ([]byte, error) {
	b := bytes.NewBuffer(to)
	if err := plainjson.NewEncoder(b).Encode(v); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// addFields adds the configured fields, given as a JSON object or nothing, to a request.
func addFields(body, configured []byte) []byte {
	if len(configured) == 0 {
		return body
	}
	more := bytes.TrimPrefix(bytes.TrimSpace(configured), []byte("{"))
	return append(append(bytes.TrimSuffix(body, []byte("}")), ','), more...)
}

// appendTools adds the tools to a request; nil adds none.
func appendTools(body, toolList []byte) []byte {
	if len(toolList) == 0 {
		return body
	}
	body = append(bytes.TrimSuffix(body, []byte("}")), `,"tools":`...)
	return append(append(body, toolList...), '}')
}

// Estimates in bytes: the parts of a request that are neither messages nor tools, and the parts of a message
// that are not its texts. They are large enough for nearly all requests, whose bodies are then written without
// growing the buffer.
const (
	requestOverhead = 256
	messageOverhead = 64
)

// A releasedBody is the body of a request that is being sent. The transport closes it once it is sent, so that
// it takes no memory while the request waits for the model. If the request is canceled, the transport may close
// it while it is still being read.
type releasedBody struct {
	mu       sync.Mutex
	unread   *bytes.Reader // nil once it is closed
	body     []byte
	returnTo *bodies // where the memory goes after that
}

// newReleasedBody makes a body from these bytes, which nobody else may use afterwards.
func newReleasedBody(body []byte, to *bodies) *releasedBody {
	return &releasedBody{unread: bytes.NewReader(body), body: body, returnTo: to}
}

// Read implements io.Reader.
func (b *releasedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread == nil {
		return 0, io.ErrClosedPipe
	}
	return b.unread.Read(p)
}

// Close implements io.Closer. It releases the bytes.
func (b *releasedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unread != nil {
		b.returnTo.give(b.body)
	}
	b.unread, b.body = nil, nil
	return nil
}

// maxSpareBody is the size in bytes up to which a body's memory is kept for another.
const maxSpareBody = 256 << 10

// bodies keeps the memory of sent bodies for the next ones: only a few are being sent at a time, even if
// thousands wait for their answers.
type bodies struct{ spare sync.Pool }

// take returns memory for a body, or nil if there is none.
func (b *bodies) take() []byte {
	room, _ := b.spare.Get().([]byte)
	return room
}

// give takes the memory of a body that nobody uses any longer.
func (b *bodies) give(body []byte) {
	if cap(body) <= maxSpareBody {
		b.spare.Put(body[:0]) //nolint:staticcheck // the 24-byte slice header that Put allocates is small
	}
}

// maxSpareMessages is the number of messages up to which a list's memory is kept for another.
const maxSpareMessages = 1024

// messageLists keeps the memory of the lists of messages from which bodies were written.
type messageLists struct{ spare sync.Pool }

// take returns an empty list with room for n messages.
func (l *messageLists) take(n int) []wireMessage {
	room, _ := l.spare.Get().([]wireMessage)
	return slices.Grow(room, n)
}

// give takes the memory of a list that nobody uses any longer.
func (l *messageLists) give(list []wireMessage) {
	if cap(list) <= maxSpareMessages {
		clear(list)           // releases what the messages contain
		l.spare.Put(list[:0]) //nolint:staticcheck // the 24-byte slice header that Put allocates is small
	}
}
