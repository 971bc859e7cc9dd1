// Package openai is every model that speaks OpenAI's chat-completions protocol.
//
// It works over sashabaranov/go-openai, whose client addresses the server,
// authenticates and frames the stream. What differs from provider to provider
// is done here: requests are written whole by this package, and the bytes of
// answers pass through a reader of its own before and behind the library's,
// because servers say more than the library's types can hold, and say it less
// exactly than its reader expects.
//
// A Model asks once: whether and when to ask again is decided by its caller.
// It only repeats a request that was refused for a parameter which the server
// does not know, without it, and remembers that.
//
// The files, in reading order: openai.go is the model; request.go, calls.go, thinking.go
// and dialect.go write a request; stream.go, events.go and chunk.go read the stream;
// answer.go and ends.go put the answer together; used.go and details.go read what it
// cost; faults.go, causes.go and overflow.go tell what an error means.
package openai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"parley/agent/llm"
)

const (
	// DefaultURL is where models are asked if nothing else is said.
	DefaultURL = "https://api.openai.com/v1"
	// DefaultName is the model that is asked at DefaultURL.
	DefaultName = "gpt-5-mini"
)

// maxLessons is more than there is to learn about a server.
const maxLessons = 10

// Config is what a Model needs to know.
type Config struct {
	BaseURL string // as the server's users write it, often ending in /v1; left out: DefaultURL
	APIKey  string // left out: none is sent
	Name    string // of the model
	Window  int    // its context in tokens; 0 where that is not known
	// HTTP makes the requests; left out: a client without any deadline of its
	// own that keeps its connections.
	HTTP *http.Client
	Log  *slog.Logger // left out: nothing is logged

	FirstToken time.Duration // the longest wait for an answer's begin; left out: 120 s
	Idle       time.Duration // and within it; left out: 60 s
}

// Model is one model on one server.
type Model struct {
	cfg  Config
	host string

	mu      sync.Mutex
	dialect dialect // what the server was found to understand
	window  int     // in tokens, as the server has said; 0 while it has not
}

// New makes a model; nothing is asked yet.
func New(cfg Config) (*Model, error) {
	cfg, host, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		return nil, errors.New("the model has no name")
	}
	return &Model{cfg: cfg, host: host, dialect: firstDialect(cfg.BaseURL)}, nil
}

// complete checks a configuration and fills in what was left out.
func (c Config) complete() (Config, string, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultURL
	}
	c.BaseURL = strings.TrimRight(strings.TrimSpace(c.BaseURL), "/")
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil: // url.Error shows the URL, which may hold a password
		return c, "", errors.New("the model's base URL cannot be read as a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return c, "", errors.New("the model's base URL must begin with http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return c, "", errors.New("the model's base URL must hold no user, query or fragment; the key has a setting of its own")
	}
	c.APIKey = strings.TrimSpace(c.APIKey)
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return c, "", errors.New("the model's API key holds a control character")
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Transport: newTransport()}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.FirstToken <= 0 {
		c.FirstToken = 120 * time.Second
	}
	if c.Idle <= 0 {
		c.Idle = 60 * time.Second
	}
	return c, u.Host, nil
}

// newTransport keeps a connection for each of many answers at once, notices
// when one is dead, and never waits for a compressed block to fill.
func newTransport() *http.Transport {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     60 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  true,
	}
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return t
}

// Info says what the configuration says, and of the window what the server has
// said if that is less.
func (m *Model) Info() llm.Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	window := m.cfg.Window
	if m.window > 0 && (window <= 0 || m.window < window) {
		window = m.window
	}
	return llm.Info{Name: m.cfg.Name, ContextTokens: window}
}

// leastWindow is less than any model's that could be of use here: a server that
// says less means something else.
const leastWindow = 512

// measured remembers how large the server says that the window is.
func (m *Model) measured(window int) {
	if window < leastWindow {
		return
	}
	m.mu.Lock()
	known := m.window > 0 && m.window <= window
	if !known {
		m.window = window
	}
	m.mu.Unlock()
	if !known {
		m.cfg.Log.Warn("the model's server says how large its window is", slog.String("model", m.cfg.Name), slog.Int("tokens", window))
	}
}

// Generate asks once. See llm.Model.
func (m *Model) Generate(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	spoken, said := m.spoken(), false
	for attempt := 1; ; attempt++ {
		body, err := encode(r, m.cfg.Name, m.host, spoken)
		if err != nil {
			return llm.Answer{}, &llm.Error{Fault: llm.Rejected, Err: err}
		}
		answer, err := m.ask(ctx, body, func(d llm.Delta) {
			said = true
			emit(d)
		})
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return llm.Answer{}, ctx.Err()
		}
		next, learned := m.adapt(spoken, err)
		switch fault := m.fault(err); {
		case learned && said: // which is void: whoever asks has to know
			fault.Fault = llm.Busy
			return llm.Answer{}, fault
		case !learned || attempt == maxLessons:
			return llm.Answer{}, fault
		}
		spoken = next
	}
}

func (m *Model) spoken() dialect {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dialect
}

// adapt learns from a refusal, and tells how to ask again, if that is worth it.
// What was learned of the server is remembered for all.
func (m *Model) adapt(spoken dialect, err error) (dialect, bool) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return spoken, false
	}
	learned, ok := spoken.learn(r)
	if !ok {
		return spoken, false
	}
	m.cfg.Log.Warn("the model's server refused a request; asking differently",
		slog.String("model", m.cfg.Name), slog.String("about", learned.about), slog.Int("status", r.status), slog.Bool("once", learned.once))
	if !learned.once {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.dialect == spoken { // else another request has learned first
			m.dialect = learned.dialect
		} else if again, ok := m.dialect.learn(r); ok && !again.once {
			m.dialect = again.dialect
		}
	}
	return learned.dialect, true
}

// fault makes of what went wrong what the contract has words for.
func (m *Model) fault(err error) *llm.Error {
	if r, ok := errors.AsType[*refusal](err); ok {
		e := &llm.Error{
			Fault: r.fault(), Cause: r.cause(), Status: r.status, Code: r.word(), RetryAfter: r.retryAfter,
			Said: conceal(r.said(), m.cfg.APIKey), Err: r,
		}
		if e.Fault == llm.Overflow {
			e.Window = r.window()
			m.measured(e.Window)
		}
		return e
	}
	e := &llm.Error{Fault: llm.Busy, Err: err}
	if _, ok := errors.AsType[*unreachable](err); ok {
		e.Cause = llm.CauseNetwork
	}
	return e
}

// FirstModel finds a name where none was given: DefaultName at DefaultURL,
// elsewhere the first model that the server lists and that can chat.
func FirstModel(ctx context.Context, cfg Config) (string, error) {
	cfg, host, err := cfg.complete()
	if err != nil {
		return "", err
	}
	if cfg.BaseURL == DefaultURL {
		return DefaultName, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, errStalled)
	defer cancel()
	m := &Model{cfg: cfg, host: host}
	names, err := m.list(ctx)
	if err != nil {
		return "", m.fault(err)
	}
	if len(names) == 0 {
		return "", &llm.Error{Fault: llm.Refused, Err: fmt.Errorf("%s lists no models that chat: name one", host)}
	}
	return names[0], nil
}
