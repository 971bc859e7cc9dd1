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

// addFields adds the fields that are configured, a JSON object or nothing, to a request.
func addFields(body, configured []byte) []byte {
	if len(configured) == 0 {
		return body
	}
	more := bytes.TrimPrefix(bytes.TrimSpace(configured), []byte("{"))
	return append(append(bytes.TrimSuffix(body, []byte("}")), ','), more...)
}

// appendTools adds the tools to a request; nil is none.
func appendTools(body, toolList []byte) []byte {
	if len(toolList) == 0 {
		return body
	}
	body = append(bytes.TrimSuffix(body, []byte("}")), `,"tools":`...)
	return append(append(body, toolList...), '}')
}

// Estimates in bytes: the parts of a request that are neither messages nor tools, and
// the parts of a message that are not its texts. They suffice for nearly all requests,
// and then the body is written without growing the buffer.
const (
	requestRoom = 256
	messageRoom = 64
)

// A releasedBody is the body of a request that is being sent. The transport closes it once it
// is sent, and from then on it holds no memory while the model is waited for. The transport may
// close it while it is still being read, if the request was cancelled.
type releasedBody struct {
	mu   sync.Mutex
	left *bytes.Reader // nil once it is closed
	body []byte
	to   *bodies // where the memory goes then
}

// newReleasedBody makes a body of these bytes, which nobody else may use from then on.
func newReleasedBody(body []byte, to *bodies) *releasedBody {
	return &releasedBody{left: bytes.NewReader(body), body: body, to: to}
}

// Read implements io.Reader.
func (b *releasedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left == nil {
		return 0, io.ErrClosedPipe
	}
	return b.left.Read(p)
}

// Close implements io.Closer: it lets the bytes go.
func (b *releasedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left != nil {
		b.to.give(b.body)
	}
	b.left, b.body = nil, nil
	return nil
}

// maxSpareBody is how many bytes a body may have had whose memory is kept for another.
const maxSpareBody = 256 << 10

// bodies keeps the memory of bodies that were sent, for those that are written next: few are
// being sent at a time, even where thousands wait for their answers.
type bodies struct{ spare sync.Pool }

// take returns memory for a body, nil if there is none.
func (b *bodies) take() []byte {
	room, _ := b.spare.Get().([]byte)
	return room
}

// give takes the memory of a body that nobody uses any more.
func (b *bodies) give(body []byte) {
	if cap(body) <= maxSpareBody {
		b.spare.Put(body[:0]) //nolint:staticcheck // a header of 24 bytes beside each body is little
	}
}

// maxSpareMessages is how many messages a list may have had whose memory is kept for another.
const maxSpareMessages = 1024

// messageLists keeps the memory of the lists of messages of which bodies were written.
type messageLists struct{ spare sync.Pool }

// take returns an empty list with room for n messages.
func (l *messageLists) take(n int) []wireMessage {
	room, _ := l.spare.Get().([]wireMessage)
	return slices.Grow(room, n)
}

// give takes the memory of a list that nobody uses any more.
func (l *messageLists) give(list []wireMessage) {
	if cap(list) <= maxSpareMessages {
		clear(list)           // what they say is free at once
		l.spare.Put(list[:0]) //nolint:staticcheck // a header of 24 bytes beside each list is little
	}
}
