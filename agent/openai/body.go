package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// write returns a request as JSON.
func (m *Model) write(w wireRequest, toolList []byte) ([]byte, error) {
	size := requestRoom + len(m.cfg.Body) + len(toolList)
	for i, message := range w.Messages {
		w.Messages[i].Written = message.Content.jsonValue()
		size += message.size()
	}
	body, err := encodeJSON(w, m.bodies.take(), size)
	if err != nil {
		return nil, err
	}
	return m.addFields(body, toolList), nil
}

// encodeJSON returns a request as a JSON object of about that many bytes. It writes into room
// as far as that is large enough.
func encodeJSON(w any, room []byte, size int) ([]byte, error) {
	b := bytes.NewBuffer(room[:0])
	b.Grow(size)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false) // the escape \u003c would cost the model more tokens than <
	if err := e.Encode(w); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// addFields adds the tools, which are JSON already, and the configured fields to a
// request.
func (m *Model) addFields(body, toolList []byte) []byte {
	body = appendTools(body, toolList)
	if len(m.cfg.Body) > 0 {
		more := bytes.TrimPrefix(bytes.TrimSpace(m.cfg.Body), []byte("{"))
		body = append(append(bytes.TrimSuffix(body, []byte("}")), ','), more...)
	}
	return body
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
	messageRoom = 128
)

// size estimates the length of a message in JSON, in bytes.
func (m *wireMessage) size() int {
	n := messageRoom + len(m.ReasoningContent) + len(m.ReasoningDetails) + len(m.ExtraContent)
	if m.Content != nil {
		n += len(m.Content.text) + len(m.Content.text)/16 // a sixteenth for escapes
		for _, p := range m.Content.parts {
			n += messageRoom + len(p.Text) + len(p.Text)/16
			if p.Image != nil {
				n += len(p.Image.URL)
			}
		}
	}
	for _, c := range m.ToolCalls {
		n += messageRoom + len(c.Function.Arguments) + len(c.Function.Arguments)/8 + len(c.ExtraContent) + len(c.ThoughtSignature)
	}
	return n
}

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
