package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	library "github.com/sashabaranov/go-openai"

	"parley/agent/llm"
)

var (
	// errStalled says that a server has not gone on for too long.
	errStalled = errors.New("the server has stopped answering")
	// errCut says that an answer stopped without having ended.
	errCut = errors.New("the answer was cut off")
)

// After an answer has said that it ended, usage may follow, and then the end
// of the stream; neither is waited for like an answer.
const (
	tailWait  = 5 * time.Second
	drainWait = 50 * time.Millisecond
)

// ask sends one request and reads its answer.
func (m *Model) ask(ctx context.Context, body []byte, emit func(llm.Delta)) (llm.Answer, error) {
	w := watchOver(ctx, m.cfg.FirstToken)
	defer w.end()
	x := &exchange{http: m.cfg.HTTP, body: body, beat: w.beat}
	// The exchange replaces the body, so the library is given none to judge.
	stream, err := m.client(x).CreateChatCompletionStream(w.ctx, library.ChatCompletionRequest{})
	if err != nil {
		return llm.Answer{}, w.because(err)
	}
	defer func() { _ = stream.Close() }() // all that it had to say was read, or does not matter
	a := newAssembly(m.host, emit)
	for {
		raw, err := stream.RecvRaw()
		if err != nil {
			if !a.finished && !x.events.done {
				return llm.Answer{}, w.because(err)
			}
			break
		}
		if err := a.add(raw); err != nil {
			return llm.Answer{}, err
		}
		if a.finished {
			w.progress(tailWait)
		} else {
			w.progress(m.cfg.Idle)
		}
	}
	w.progress(drainWait)
	x.events.drain()
	return a.answer(len(body))
}

// client is the library over one exchange.
func (m *Model) client(x library.HTTPDoer) *library.Client {
	c := library.DefaultConfig(m.cfg.APIKey)
	c.BaseURL = m.cfg.BaseURL
	c.HTTPClient = x
	return library.NewClientWithConfig(c)
}

// list asks for the names of those of the server's models that chat.
func (m *Model) list(ctx context.Context) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.cfg.BaseURL+"/models", nil)
	if err != nil {
		return nil, fmt.Errorf("ask for the models: %w", err)
	}
	req.Header.Set("Accept", "application/json")
	if m.cfg.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+m.cfg.APIKey)
	}
	resp, err := do(m.cfg.HTTP, req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var listed struct {
		Data []struct {
			ID   string   `json:"id"`
			Type flexible `json:"type"` // of some servers: chat, embedding, …
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxEvent)).Decode(&listed); err != nil {
		return nil, fmt.Errorf("read the list of models: %w", err)
	}
	var names []string
	for _, d := range listed.Data {
		if d.ID != "" && chats(d.ID, string(d.Type)) {
			names = append(names, d.ID)
		}
	}
	return names, nil
}

// chats tells whether a model of that name, and of that type if its server gives
// one, is likely to be one that can be talked to: servers list embedding models
// and others among them.
func chats(name, kind string) bool {
	for _, text := range []string{strings.ToLower(name), strings.ToLower(kind)} {
		for _, other := range []string{"embed", "rerank", "whisper", "tts", "transcri", "moderation", "dall-e", "diffusion", "bge-", "minilm", "text-to-", "image"} {
			if strings.Contains(text, other) {
				return false
			}
		}
	}
	return true
}

// An exchange is the library's HTTP client for one request. It sends the body
// that it holds, keeps the headers of refusals, which the library drops, and
// reads the answer first.
type exchange struct {
	http   *http.Client
	body   []byte
	beat   func()
	events *events
}

// Do makes the request.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	req.ContentLength = int64(len(x.body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	req.Body, _ = req.GetBody()
	resp, err := do(x.http, req)
	if err != nil {
		return nil, err
	}
	x.events = newEvents(resp.Body, x.beat)
	resp.Body = x.events
	return resp, nil
}

// An unreachable says that no answer came at all: there is no connection.
type unreachable struct {
	host string
	err  error
}

// Error is the host and what the network said.
func (u *unreachable) Error() string { return fmt.Sprintf("ask %s: %v", u.host, u.err) }

// Unwrap is what the network said.
func (u *unreachable) Unwrap() error { return u.err }

// do makes a request; any status but 2xx is a *refusal.
func do(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL says nothing new
		}
		return nil, &unreachable{host: req.URL.Host, err: err}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil && len(body) == 0 {
		body = nil // the status says enough
	}
	return nil, refusalOf(resp.StatusCode, resp.Header, body)
}

// A watch ends a request that does not go on. It belongs to one goroutine.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
	last   time.Time // of progress
}

// patience is how many limits pass while there is nothing but signs of life.
const patience = 4

func watchOver(ctx context.Context, limit time.Duration) *watch {
	w := &watch{limit: limit, last: time.Now()}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.cancel(errStalled) })
	return w
}

// progress grants another limit.
func (w *watch) progress(limit time.Duration) {
	w.limit, w.last = limit, time.Now()
	w.timer.Reset(limit)
}

// beat grants another limit too, but not for ever.
func (w *watch) beat() {
	left := patience*w.limit - time.Since(w.last)
	w.timer.Reset(max(0, min(w.limit, left)))
}

// because says what stands behind an error of reading.
func (w *watch) because(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}
