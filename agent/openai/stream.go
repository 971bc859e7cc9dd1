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
	// errStalled says that a server sent nothing for too long.
	errStalled = errors.New("the server has stopped answering")
	// errCut says that the stream stopped before the answer had ended.
	errCut = errors.New("the answer was cut off")
)

// After the finish_reason, usage may follow, and then the end of the stream. The answer
// is there already, so these are waited for only briefly.
const (
	tailWait  = 5 * time.Second
	drainWait = 50 * time.Millisecond
)

// ask sends one request and reads its answer.
func (m *Model) ask(ctx context.Context, body []byte, emit func(llm.Delta)) (llm.Answer, error) {
	w := newStallTimer(ctx, m.cfg.FirstToken)
	defer w.end()
	x := &exchange{cfg: m.cfg, body: body, signOfLife: w.signOfLife}
	// The exchange replaces the body. The library gets an empty request, so that it has
	// nothing to reject.
	stream, err := m.client(x).CreateChatCompletionStream(w.ctx, library.ChatCompletionRequest{})
	if err != nil {
		return llm.Answer{}, w.causeOf(err)
	}
	defer func() { _ = stream.Close() }() // everything of interest was read
	a := newAssembly(m.host, emit)
	for {
		raw, err := stream.RecvRaw()
		if err != nil {
			if !a.finished && !x.events.done {
				return llm.Answer{}, w.causeOf(err)
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

// listModels asks the server for its models, and returns the names of those that chat.
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
			ID   string   `json:"id"`
			Type flexible `json:"type"` // of some servers: chat, embedding, …
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

// canChat guesses by its name, and its type if its server gives one, whether a model can
// chat: servers list models for embeddings and other purposes too.
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
// and cleans the answer's stream before the library reads it.
type exchange struct {
	cfg        Config
	body       []byte
	signOfLife func()
	events     *events
}

// Do makes the request.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	req.ContentLength = int64(len(x.body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.body)), nil }
	req.Body, _ = req.GetBody()
	req.URL.RawQuery = x.cfg.query
	x.cfg.sign(req.Header)
	resp, err := do(x.cfg.HTTP, req)
	if err != nil {
		return nil, err
	}
	x.events = newEvents(resp.Body, x.signOfLife)
	resp.Body = x.events
	return resp, nil
}

// An unreachable says that no answer came at all: there is no connection.
type unreachable struct {
	host string
	err  error
}

// Error names the host and the network's error.
func (u *unreachable) Error() string { return fmt.Sprintf("ask %s: %v", u.host, u.err) }

// Unwrap is the network's error.
func (u *unreachable) Unwrap() error { return u.err }

// do makes a request; any status but 2xx is a *refusal.
func do(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL, which is configured
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

// A stallTimer cancels a request whose answer does not go on. One goroutine uses it.
type stallTimer struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
	last   time.Time // of progress
}

// maxSignsOfLife is for how many limits a server may send nothing but signs of life, such
// as comments in the stream.
const maxSignsOfLife = 4

func newStallTimer(ctx context.Context, limit time.Duration) *stallTimer {
	w := &stallTimer{limit: limit, last: time.Now()}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.cancel(errStalled) })
	return w
}

// progress notes that the answer has gone on, and sets the next limit.
func (w *stallTimer) progress(limit time.Duration) {
	w.limit, w.last = limit, time.Now()
	w.timer.Reset(limit)
}

// signOfLife notes that the server has sent something that is no progress. It grants
// another limit, up to maxSignsOfLife of them.
func (w *stallTimer) signOfLife() {
	left := maxSignsOfLife*w.limit - time.Since(w.last)
	w.timer.Reset(max(0, min(w.limit, left)))
}

// causeOf is the reason of an error of reading: that the request was cancelled, and why,
// or that the stream was cut off.
func (w *stallTimer) causeOf(err error) error {
	if cause := context.Cause(w.ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

func (w *stallTimer) end() {
	w.timer.Stop()
	w.cancel(nil)
}
