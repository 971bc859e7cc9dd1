package openai

import (
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
func (m *Model) ask(ctx context.Context, x *exchange, d dialect, emit func(llm.Delta)) (llm.Answer, error) {
	w := newStallTimer(ctx, m.cfg.FirstToken)
	defer w.end()
	x.signOfLife = w.signOfLife
	size := len(x.body)
	stream, err := m.open(w.ctx, x, d)
	if err != nil {
		return llm.Answer{}, w.causeOf(err)
	}
	defer func() { _ = stream.Close() }() // everything of interest has been read
	return m.read(stream, x, w, d, size, emit)
}

// read reads the answer to a request of that many bytes.
func (m *Model) read(stream eventStream, x *exchange, w *stallTimer, d dialect, size int, emit func(llm.Delta)) (llm.Answer, error) {
	var a answerReader = newAssembly(m.host, emit)
	switch {
	case d.responses:
		a = responsesReader{responses.NewAssembly(m.host, emit)}
	case d.native:
		a = nativeReader{newAssembly(m.host, emit)}
	}
	for !a.isOver() {
		raw, err := stream.RecvRaw()
		if err != nil {
			if !a.isWhole(x.events.done) {
				return llm.Answer{}, w.causeOf(err)
			}
			break
		}
		if err := a.add(raw); err != nil {
			if a.isWhole(x.events.done) && !json.Valid(raw) {
				break // what follows an answer may be anything
			}
			return llm.Answer{}, err
		}
		if wait := a.wait(m.cfg); wait > 0 {
			w.progress(wait)
		}
	}
	w.progress(drainWait)
	x.events.drain()
	return a.answer(size)
}

// An eventStream is the library's reader of a stream.
type eventStream interface {
	RecvRaw() ([]byte, error)
	Close() error
}

// open sends a request in its protocol, and has the library read the answer's stream once that
// has begun. Until then as little as possible is on the stack.
func (m *Model) open(ctx context.Context, x *exchange, d dialect) (eventStream, error) {
	if err := x.send(ctx, m.addressOf(d)); err != nil {
		return nil, err
	}
	return m.framed(ctx, x, d)
}

// addressOf returns where requests of a dialect go.
func (m *Model) addressOf(d dialect) string {
	base, path := m.cfg.BaseURL, "/chat/completions"
	switch {
	case d.responses:
		base, path = responsesURL(base), "/responses"
	case d.native:
		base, path = strings.TrimSuffix(base, "/v1"), "/api/chat"
	}
	if m.cfg.query != "" {
		path += "?" + m.cfg.query
	}
	return base + path
}

// framed returns the library's reader of the stream that has begun. The library makes a request
// for that, which goes nowhere. framed is not inlined: what it needs would stay on the stack until
// the model answers.
//
//go:noinline
func (m *Model) framed(ctx context.Context, x *exchange, d dialect) (eventStream, error) {
	c := library.DefaultConfig("")
	c.HTTPClient = answeredExchange{x}
	client := library.NewClientWithConfig(c)
	if d.responses {
		return client.CreateResponseStream(ctx, library.CreateResponseRequest{})
	}
	return client.CreateChatCompletionStream(ctx, library.ChatCompletionRequest{})
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
	resp, err := do(m.cfg.HTTP, req)
	if err != nil {
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

// An exchange is one request and the stream of the answer, which it rewrites for the library's
// reader. It sends the request itself: the library's types hold less than servers need, and of a
// refusal the library drops the header.
type exchange struct {
	cfg        *Config
	body       []byte                 // nil once it is sent
	encode     func() ([]byte, error) // writes the body again
	header     http.Header            // of each request of the model; nobody changes it
	bodies     *bodies                // where the memory of the body goes then
	readers    *sync.Pool             // of *bufio.Reader, for the stream of the answer
	signOfLife func()                 // called for each line of the stream
	events     *events                // the stream of the answer; nil before there is one
}

// newExchange makes the exchange of a request in a dialect.
func (m *Model) newExchange(r llm.Request, d dialect) (*exchange, error) {
	x := &exchange{cfg: &m.cfg, header: m.header, bodies: &m.bodies, readers: &m.readers, encode: func() ([]byte, error) { return m.encode(r, d) }}
	var err error
	x.body, err = x.encode()
	return x, err
}

// send sends the exchange's request, and waits until the answer begins.
func (x *exchange) send(ctx context.Context, address string) error {
	req, err := x.newRequest(ctx, address)
	if err != nil {
		return err
	}
	resp, err := direct(x.cfg.HTTP, req) //nolint:bodyclose // refusalOr closes it, or whoever reads the stream
	if err = refusalOr(req, resp, err); err != nil {
		return err
	}
	x.events = newEvents(resp.Body, x.readers, x.signOfLife)
	return nil
}

// newRequest makes the exchange's request. The body is released once it is sent.
func (x *exchange) newRequest(ctx context.Context, address string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	req.Body, req.ContentLength = newReleasedBody(x.body, x.bodies), int64(len(x.body))
	x.body = nil                                  // which may be large, and the model may take long
	req.GetBody = func() (io.ReadCloser, error) { // after a redirect, or if the connection was closed before
		again, err := x.encode()
		return newReleasedBody(again, x.bodies), err
	}
	req.Header = x.header
	return req, nil
}

// requestHeader returns the header of each request for an answer.
func (c Config) requestHeader() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}}
	c.sign(h)
	return h
}

// direct sends a request without the steps of a client, which are for redirects and cookies, and
// which take a part of the stack until the model answers. A request that is redirected is sent
// once more, by the client.
func direct(client *http.Client, req *http.Request) (*http.Response, error) {
	if client.Transport == nil || client.Timeout > 0 {
		return client.Do(req)
	}
	resp, err := client.Transport.RoundTrip(req)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode >= 400 {
		return resp, err
	}
	return redirected(client, req, resp)
}

// redirected sends a request again that was answered by a redirect.
func redirected(client *http.Client, req *http.Request, resp *http.Response) (*http.Response, error) {
	if err := resp.Body.Close(); err != nil {
		return nil, err
	}
	again := req.Clone(req.Context())
	var err error
	if again.Body, err = req.GetBody(); err != nil {
		return nil, err
	}
	return client.Do(again)
}

// An answeredExchange is the library's HTTP client for an exchange whose answer has begun.
type answeredExchange struct{ *exchange }

// Do returns the answer's stream, whatever is asked.
func (x answeredExchange) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: x.events}, nil
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

// do sends a request. It returns a *refusal for any status but 2xx, and an
// *unreachableError
// if there is no response.
func do(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req)
	if err := refusalOr(req, resp, err); err != nil {
		return nil, err
	}
	return resp, nil
}

// refusalOr returns the error of a request that was sent: a *refusal for any status but 2xx, and
// an *unreachableError if there is no response. If it returns an error, it has closed the response.
func refusalOr(req *http.Request, resp *http.Response, err error) error {
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // leave out the URL, which is from the configuration
		}
		return &unreachableError{host: req.URL.Host, err: err}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil && len(body) == 0 {
		body = nil // the status says enough
	}
	return refusalOf(resp.StatusCode, resp.Header, body)
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
