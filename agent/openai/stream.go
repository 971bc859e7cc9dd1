package openai

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode"

	library "github.com/sashabaranov/go-openai"

	"parley/agent/llm"
	"parley/agent/openai/lenient"
	"parley/agent/openai/responses"
)

var (
	// errStalled is the error of a request to whose answer the server added nothing for
	// too long.
	errStalled = errors.New("the server has stopped answering")
	// errCut is the error of a stream that stopped before the answer had ended.
	errCut = errors.New("the answer was cut off")
)

// How long to wait after the finish_reason for the usage, and then for the end of the
// stream. Both waits are short, because the answer is there already.
const (
	tailWait  = 5 * time.Second
	drainWait = 50 * time.Millisecond
)

// ask sends one request, and reads the answer to it. It calls emit for each piece of the
// answer.
func (m *Model) ask(ctx context.Context, x *exchange, emit func(llm.Delta)) (*llm.Answer, error) {
	w := newStallTimer(ctx, m.cfg.FirstToken)
	defer w.end()
	x.signOfLife = w.signOfLife
	stream, err := m.open(w.ctx, x)
	if err != nil {
		return nil, w.causeOf(err)
	}
	defer func() { _ = stream.Close() }() // everything of interest has been read
	return m.read(stream, x, w, emit)
}

// read reads the answer to a request.
func (m *Model) read(stream eventStream, x *exchange, w *stallTimer, emit func(llm.Delta)) (*llm.Answer, error) {
	a := m.newReader(x.dialect, emit)
	for !a.isOver() {
		raw, err := stream.RecvRaw()
		if err != nil {
			if !a.isWhole(x.events.done) {
				return nil, w.causeOf(err)
			}
			break
		}
		if err := a.add(raw); err != nil {
			if a.isWhole(x.events.done) && !json.Valid(raw) {
				break // what follows an answer may be anything
			}
			return nil, err
		}
		if wait := a.wait(&m.cfg); wait > 0 {
			w.progress(wait)
		}
	}
	w.progress(drainWait)
	x.events.drain()
	return a.answer(x.size)
}

// newReader returns the reader of an answer in a dialect.
func (m *Model) newReader(d dialect, emit func(llm.Delta)) answerReader {
	switch {
	case d.responses:
		return responsesReader{responses.NewAssembly(m.host, emit)}
	case d.native:
		return nativeReader{newAssembly(m.host, emit)}
	}
	return newAssembly(m.host, emit)
}

// An eventStream is the library's reader of a stream.
type eventStream interface {
	RecvRaw() ([]byte, error)
	Close() error
}

// open sends a request in its protocol. The exchange replaces the body: the library gets
// an empty request, which it has no reason to reject.
func (m *Model) open(ctx context.Context, x *exchange) (eventStream, error) {
	if x.dialect.responses {
		return m.newClient(x, responsesURL(m.cfg.BaseURL)).CreateResponseStream(ctx, library.CreateResponseRequest{})
	}
	return m.newClient(x, m.cfg.BaseURL).CreateChatCompletionStream(ctx, library.ChatCompletionRequest{})
}

// newClient makes the library's client for one request. It is not inlined: its configuration
// would stay on the stack until the model answers.
//
//go:noinline
func (m *Model) newClient(x *exchange, baseURL string) *library.Client {
	c := library.DefaultConfig(m.cfg.APIKey)
	c.BaseURL, c.HTTPClient = baseURL, x
	return library.NewClientWithConfig(c)
}

// listModels asks the server for its models, and returns the names of those that can
// chat.
func (m *Model) listModels(ctx context.Context) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.cfg.BaseURL+"/models", nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the models: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	req.URL.RawQuery = m.cfg.query
	m.cfg.sign(req.Header)
	resp, err := m.cfg.client.Do(req)
	if err = failureOf(req, resp, err); err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var listed struct {
		Data []struct {
			ID   string         `json:"id"`
			Type lenient.String `json:"type"` // some servers send it: chat, embedding, …
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxEvent)).Decode(&listed); err != nil {
		return nil, fmt.Errorf("read the list of models: %w", err)
	}
	var names []string
	for _, d := range listed.Data {
		if d.ID != "" && canChat(d.ID, string(d.Type)) {
			names = append(names, d.ID)
		}
	}
	return names, nil
}

// canChat guesses whether a model can chat, from its name and from its type if the
// server gives one. Servers also list models for embeddings and other purposes.
func canChat(name, kind string) bool {
	for _, text := range []string{strings.ToLower(name), strings.ToLower(kind)} {
		for _, other := range []string{"embed", "rerank", "whisper", "tts", "transcri", "moderation", "dall-e", "diffusion", "bge-", "minilm", "text-to-", "image"} {
			if strings.Contains(text, other) {
				return false
			}
		}
	}
	return true
}

// An exchange is the library's HTTP client for one request. It sends its own body in
// place of the library's, reads refusals with their headers, which the library drops,
// and has the stream of the answer rewritten for the library's reader.
type exchange struct {
	cfg        *Config
	dialect    dialect
	body       []byte                 // nil once it is sent
	size       int                    // bytes of the body
	encode     func() ([]byte, error) // writes the body again
	bodies     *bodies                // where the memory of the body goes then
	readers    *sync.Pool             // of *bufio.Reader, for the stream of the answer
	signOfLife func()                 // called for each line of the stream
	events     *events                // the stream of the answer; nil before there is one
}

// newExchange makes the exchange of a request in a dialect.
func (m *Model) newExchange(r *llm.Request, d dialect) (*exchange, error) {
	x := &exchange{cfg: &m.cfg, dialect: d, bodies: &m.bodies, readers: &m.readers, encode: func() ([]byte, error) {
		r.Restore()
		defer r.Release() // the model may take long, and is seldom asked again
		return m.encode(r, d)
	}}
	var err error
	x.body, err = x.encode()
	x.size = len(x.body)
	return x, err
}

// Do sends the exchange's request in place of req's body, and returns the rewritten
// stream.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.fill(req)
	resp, err := x.send(req)
	if err = failureOf(req, resp, err); err != nil {
		return nil, err
	}
	x.events = newEvents(resp.Body, x.readers, x.signOfLife)
	resp.Body = x.events
	return resp, nil
}

// send sends a request by the transport itself: the functions of a client have 1 KB of the stack,
// and would for as long as the model is waited for. A client only follows where the server redirects.
func (x *exchange) send(req *http.Request) (*http.Response, error) {
	resp, err := x.cfg.Transport.RoundTrip(req)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode >= 400 {
		return resp, err
	}
	return (&http.Client{Transport: &redirected{first: resp, then: x.cfg.Transport}}).Do(req)
}

// A redirected is the transport of a client whose request was sent already, and has this answer.
type redirected struct {
	first *http.Response // nil once the client has it
	then  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	if first := r.first; first != nil {
		r.first = nil
		return first, nil
	}
	return r.then.RoundTrip(req)
}

// fill makes the library's request the exchange's own. The body is released once it is sent.
func (x *exchange) fill(req *http.Request) {
	req.Body, req.ContentLength = newReleasedBody(x.body, x.bodies), int64(len(x.body))
	x.body = nil                                  // which may be large, and the model may take long
	req.GetBody = func() (io.ReadCloser, error) { // after a redirect, or if the connection was closed before
		again, err := x.encode()
		return newReleasedBody(again, x.bodies), err
	}
	req.URL.RawQuery = x.cfg.query
	if x.dialect.native { // Ollama's own protocol, which has an address of its own
		req.URL.Path = strings.TrimSuffix(strings.TrimSuffix(req.URL.Path, "/chat/completions"), "/v1") + "/api/chat"
	}
	x.cfg.sign(req.Header)
}

// An unreachableError is the error of a request that no server answered.
type unreachableError struct {
	host string
	err  error
}

// Error returns the host and the network's error.
func (u *unreachableError) Error() string { return fmt.Sprintf("ask %s: %v", u.host, u.err) }

// Unwrap returns the network's error.
func (u *unreachableError) Unwrap() error { return u.err }

// failureOf returns what a request has failed by that was answered with resp or err: a *refusal for a
// web page and for any status but 2xx, whose body it reads and closes, and an *unreachableError if
// there is no response.
func failureOf(req *http.Request, resp *http.Response, err error) error {
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // leave out the URL, which is from the configuration
		}
		return &unreachableError{host: req.URL.Host, err: err}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 && !isPage(resp) {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil && len(body) == 0 {
		body = nil // the status says enough
	}
	return refusalOf(resp.StatusCode, resp.Header, body)
}

// isPage reports whether a response is a web page: many servers answer with one wherever they have
// nothing else. Some call the stream of an answer a page too, so what it begins with decides.
func isPage(resp *http.Response) bool {
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return false
	}
	in := bufio.NewReader(resp.Body)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{in, resp.Body}
	for {
		switch c, err := in.ReadByte(); {
		case err != nil:
			return false // whoever reads on meets the error again
		case !unicode.IsSpace(rune(c)):
			_ = in.UnreadByte() // it was read just now
			return c == '<'
		}
	}
}

// A stallTimer cancels a request whose answer does not progress. It must be used by one
// goroutine only.
type stallTimer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
	last   time.Time // the time of the last progress
}

// maxSignsOfLife bounds how long a server may send nothing but signs of life, such as
// comments in the stream: that many times the limit.
const maxSignsOfLife = 4

// newStallTimer starts a timer that cancels its context with errStalled after limit.
func newStallTimer(ctx context.Context, limit time.Duration) *stallTimer {
	w := &stallTimer{limit: limit, last: time.Now()}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.cancel(errStalled) })
	return w
}

// progress records that the answer has progressed, and sets the limit for the next
// progress.
func (w *stallTimer) progress(limit time.Duration) {
	w.limit, w.last = limit, time.Now()
	w.timer.Reset(limit)
}

// signOfLife records that the server has sent something that is no progress. That grants
// another limit, up to maxSignsOfLife of them.
func (w *stallTimer) signOfLife() {
	left := maxSignsOfLife*w.limit - time.Since(w.last)
	w.timer.Reset(max(0, min(w.limit, left)))
}

// causeOf returns the reason of a read error: why the request was cancelled, or errCut
// if the stream was cut off, or else err itself.
func (w *stallTimer) causeOf(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// end stops the timer and releases its context.
func (w *stallTimer) end() {
	w.timer.Stop()
	w.cancel(nil)
}
