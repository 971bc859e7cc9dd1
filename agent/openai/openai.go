// Package openai asks any model whose server speaks OpenAI's chat-completions protocol or
// its Responses API.
//
// The library sashabaranov/go-openai addresses the server, authenticates, and frames the
// stream. This package does all that differs from provider to provider. It writes the
// request's body itself, cleans the stream before the library reads it (events.go), and
// decodes the events that the library frames (chunk.go): servers send more than the
// library's types can hold, and less exactly than its reader expects.
//
// A Model asks once; its caller decides whether and when to ask again. A Model repeats
// a request only if the server refused a parameter or a form that can be left out. It
// remembers that in its dialect.
//
// The files, in reading order: openai.go is the model; request.go, dialect.go and body.go
// write a request; stream.go, events.go and chunk.go read the stream; answer.go, calls.go and
// details.go put the answer together; responses.go is the way to the Responses API, whose
// requests and answers are a package of their own, and ollama.go that to Ollama's own
// protocol; refusal.go and overflow.go tell what an error
// means. providers.go has what is known of servers before they are asked. The packages
// below this one each know one thing about servers: how JSON, increments of a text, the ids
// of calls, usage, thinking and ends of answers are written, and how large a model's window is.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agent/llm"
	"parley/agent/openai/toollist"
	"parley/agent/openai/window"
	"parley/tools/plainhttp"
)

const (
	// DefaultURL is the address of the server if none is configured.
	DefaultURL = "https://api.openai.com/v1"
	// DefaultName is the model at DefaultURL if none is configured.
	DefaultName = "gpt-5-mini"
)

// maxAttempts bounds how many forms of one request are tried. It is more than there is
// to learn about a server.
const maxAttempts = 10

// Config describes a model and the way to its server.
type Config struct {
	BaseURL string // as the server's users write it, often ending in /v1; empty: DefaultURL
	APIKey  string // empty: none is sent
	Name    string // the model's name
	Window  int    // the model's context in tokens; 0 if that is not known
	Blind   bool   // the model sees no pictures; if false, a refusal may teach that later
	// Effort is how much the model is to reason, in the provider's word; "" leaves that to
	// the provider.
	Effort string
	API    API // the protocol in which the model is asked
	// Header is added to each request. Body is a JSON object whose fields are added to
	// each.
	Header http.Header
	Body   json.RawMessage
	// Transport makes the requests; nil: one that keeps its connections.
	Transport http.RoundTripper
	Log       *slog.Logger // nil: nothing is logged

	// FirstToken is the longest wait for the beginning of an answer; 0: 120 s, or 10 min for
	// a server of the operator's own, which may load the model first.
	FirstToken time.Duration
	Idle       time.Duration // the longest wait within an answer; 0: 60 s

	query     string       // the query of each address, without "?"
	keyHeader string       // the header field for the key
	client    *http.Client // which asks by the Transport, and follows redirects
}

// Model is one model on one server.
type Model struct {
	cfg  Config
	host string

	mu      sync.Mutex
	dialect dialect // what the server was found to understand

	windows *window.Finder
	tools   toollist.Writer
	// flatTools writes them for the Responses API.
	flatTools toollist.Writer
	bodies    bodies
	readers   sync.Pool // of *bufio.Reader, which have read the streams of answers
}

// New makes a model from a configuration. It does not contact the server yet.
func New(cfg Config) (*Model, error) {
	cfg, host, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	if cfg.Name == "" {
		return nil, errors.New("the model has no name")
	}
	first := providerOf(host).dialectFor(cfg.Name)
	first.noPictures = cfg.Blind
	if cfg.API != APIAuto {
		first.fixed, first.responses = true, cfg.API == APIResponses
	}
	if err := checkBody(cfg.Body); err != nil {
		return nil, err
	}
	return &Model{cfg: cfg, host: host, dialect: first, windows: cfg.newWindowFinder(), flatTools: toollist.Writer{Flat: true}}, nil
}

// complete checks a configuration and fills in what was left out. It also returns the
// server's host.
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
	case u.User != nil || u.Fragment != "" || !providerOf(u.Host).accepts(u.Query()):
		return c, "", errors.New("the model's base URL must hold no user, query or fragment (Azure's may end in ?api-version=…); the key has a setting of its own")
	}
	c.query, u.RawQuery = u.RawQuery, ""
	c.BaseURL = strings.TrimRight(u.String(), "/")
	c.APIKey = strings.TrimSpace(c.APIKey)
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return c, "", errors.New("the model's API key holds a control character")
	}
	c.keyHeader = cmp.Or(providerOf(u.Host).keyHeader, "Authorization")
	if c.Transport == nil {
		c.Transport = newTransport()
	}
	c.client = &http.Client{Transport: c.Transport}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.FirstToken <= 0 {
		c.FirstToken = 120 * time.Second
		if llm.IsOwnServer(c.BaseURL) {
			c.FirstToken = 10 * time.Minute
		}
	}
	if c.Idle <= 0 {
		c.Idle = 60 * time.Second
	}
	return c, u.Host, nil
}

// checkBody checks that body is empty or a JSON object whose fields may be added to each
// request.
func checkBody(body json.RawMessage) error {
	if len(body) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("what is to stand in each request is no JSON object: %w", err)
	}
	if len(fields) == 0 {
		return errors.New("what is to stand in each request is empty: leave it out")
	}
	for name := range fields {
		if slices.Contains([]string{"model", "messages", "tools", "tool_choice", "stream", "stream_options", "reasoning_effort", "prompt_cache_key", "input", "instructions", "previous_response_id"}, name) {
			return fmt.Errorf("the field %s of each request is Parley's own to write", name)
		}
	}
	return nil
}

// newTransport makes a transport that keeps connections for many answers at once. Over TLS it
// pings them to notice dead ones, and many answers share a connection where the server allows
// that. It asks for no compression, as a compressed stream is held back until a block is full.
// Its buffers are small, because events are short and each answer that is awaited may have two.
func newTransport() http.RoundTripper {
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 1024,
		IdleConnTimeout:     60 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  true,
		WriteBufferSize:     1 << 10,
		ReadBufferSize:      2 << 10,
	}
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}
	return &plainhttp.Transport{Other: t}
}

// newWindowFinder returns the Finder that finds out how large the model's window is.
func (c *Config) newWindowFinder() *window.Finder {
	f := &window.Finder{HTTP: c.client, BaseURL: c.BaseURL, Header: http.Header{}, Model: c.Name, Configured: c.Window, Asks: c.API == APIAuto, Log: c.Log}
	c.sign(f.Header)
	return f
}

// sign sets the header fields of each request: the key, where the provider looks for it,
// and those of the configuration.
func (c *Config) sign(h http.Header) {
	h.Del("Authorization") // the library's
	switch {
	case c.APIKey == "":
	case c.keyHeader == "Authorization":
		h.Set(c.keyHeader, "Bearer "+c.APIKey)
	default:
		h.Set(c.keyHeader, c.APIKey)
	}
	maps.Copy(h, c.Header)
}

// LookUpWindow asks the server how large the model's window is, unless it was asked before. It
// waits some seconds at most, and later the model repeats the question from time to time. Without
// this call the window is learned from refusals only.
func (m *Model) LookUpWindow(ctx context.Context) { m.windows.Find(ctx) }

// Info returns the model's name, whether it sees pictures and takes tools, and its
// window: the smaller of the configured and the server's.
func (m *Model) Info() llm.Info {
	known := m.windows.Known()
	m.mu.Lock()
	defer m.mu.Unlock()
	return llm.Info{Name: m.cfg.Name, ContextTokens: known.Tokens, ContextFrom: string(known.Source), Blind: m.dialect.noPictures, Toolless: m.dialect.noTools}
}

// Generate asks the model once, and again only in another dialect. See llm.Model.
func (m *Model) Generate(ctx context.Context, r *llm.Request, emit func(llm.Delta)) (*llm.Answer, error) {
	spoken, said := m.currentDialect(), false
	for attempt := 1; ; attempt++ {
		x, err := m.newExchange(r, spoken)
		if err != nil {
			return nil, &llm.Error{Fault: llm.Rejected, Err: err}
		}
		answer, err := m.ask(ctx, x, func(d llm.Delta) {
			said = true
			emit(d)
		})
		if err == nil {
			m.windows.Answered(ctx)
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var fault *llm.Error
		if spoken, fault = m.nextDialect(spoken, err, said, attempt); fault != nil {
			return nil, fault
		}
	}
}

// nextDialect returns the dialect in which to ask again after an attempt in another has failed, or the
// error with which to end. said says whether something of the void answer was emitted.
func (m *Model) nextDialect(spoken dialect, err error, said bool, attempt int) (dialect, *llm.Error) {
	next, learned := m.adapt(spoken, err)
	fault := m.errorOf(err)
	if learned && said { // the caller has shown some of it, and has to ask again itself
		fault.Fault = llm.Busy
	}
	if !learned || said || attempt == maxAttempts {
		return next, fault
	}
	return next, nil
}

// currentDialect returns the dialect that the server was last found to understand.
func (m *Model) currentDialect() dialect {
	native := m.cfg.Window > 0 && m.windows.IsOllama()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dialect.native = native && !m.dialect.fixed && !m.dialect.noNative
	return m.dialect
}

// adapt learns from a refusal. It returns the dialect in which to ask again, and false
// if there was nothing to learn. A lesson about the server holds for all later requests.
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
		if m.dialect == spoken { // if not, another request has learned first
			m.dialect = learned.dialect
		} else if again, ok := m.dialect.learn(r); ok && !again.once {
			m.dialect = again.dialect
		}
	}
	return learned.dialect, true
}

// errorOf turns the error of a request into the contract's error.
func (m *Model) errorOf(err error) *llm.Error {
	if r, ok := errors.AsType[*refusal](err); ok {
		e := &llm.Error{
			Fault: r.fault(), Cause: r.cause(), Status: r.status, Code: r.codeWord(), RetryAfter: r.retryAfter,
			Said: concealKey(r.description(), m.cfg.APIKey), Err: r,
		}
		if e.Fault == llm.Overflow {
			e.Window = r.statedWindow()
			m.windows.Learn(e.Window)
		}
		return e
	}
	e := &llm.Error{Fault: llm.Busy, Err: err}
	if _, ok := errors.AsType[*unreachableError](err); ok {
		e.Cause = llm.CauseNetwork
	}
	return e
}

// FirstModel returns the name of the model to use if none is configured: DefaultName at
// DefaultURL, and elsewhere the first that the server lists and that can chat.
func FirstModel(ctx context.Context, cfg Config) (string, error) {
	cfg, host, err := cfg.complete()
	if err != nil {
		return "", err
	}
	if cfg.BaseURL == DefaultURL {
		return DefaultName, nil
	}
	names, err := Models(ctx, cfg)
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", &llm.Error{Fault: llm.Refused, Err: fmt.Errorf("%s lists no models that chat: name one", host)}
	}
	return names[0], nil
}

// Models asks the server for its models, and returns the names of those that can chat.
func Models(ctx context.Context, cfg Config) ([]string, error) {
	cfg, host, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 15*time.Second, errStalled)
	defer cancel()
	m := &Model{cfg: cfg, host: host, windows: cfg.newWindowFinder()}
	names, err := m.listModels(ctx)
	if err != nil {
		return nil, m.errorOf(err)
	}
	return names, nil
}
