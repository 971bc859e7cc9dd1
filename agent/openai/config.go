package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/agent/openai/window"
	"parley/tools/plainhttp"
)

const (
	// DefaultURL is the server's address if none is configured.
	DefaultURL = "https://api.openai.com/v1"
	// DefaultName is the model at DefaultURL if none is configured.
	DefaultName = "gpt-5-mini"
)

// Config describes a model and how to reach its server.
type Config struct {
	BaseURL string // as the server's users write it, often ending in /v1; empty: DefaultURL
	APIKey  string // empty: none is sent
	Name    string // the model's name
	Window  int    // the size of the model's window in tokens; 0 if it is not known
	Blind   bool   // the model sees no pictures; if false, a refusal may still show later that it sees none
	// Effort is how much the model should reason, as one of the provider's words; "" leaves that to the
	// provider.
	Effort string
	API    API // the protocol in which the model is asked
	// Header is added to each request. Body is a JSON object whose fields are added to each request.
	Header http.Header
	Body   json.RawMessage
	// Transport makes the requests; if nil, one that keeps its connections open is used.
	Transport http.RoundTripper
	Log       *slog.Logger // nil: nothing is logged

	// FirstToken is the longest wait for the beginning of an answer; 0 means 120 s, or 10 min for a server of
	// the operator's own, which may have to load the model first.
	FirstToken time.Duration
	Idle       time.Duration // the longest pause within an answer; 0 means 60 s

	query     string       // the query part of every URL, without "?"
	keyHeader string       // the header field for the key
	client    *http.Client // uses the Transport, and follows redirects
}

// An API is one of OpenAI's two protocols for asking a model.
type API string

// The protocols.
const (
	// APIAuto is chat completions, except for models that require the Responses API.
	APIAuto      API = ""
	APIChat      API = "chat"
	APIResponses API = "responses"
)

// withDefaults checks a configuration, and returns it with defaults for the values that were left out, along with the
// server's host. It checks neither Name nor Body.
func (c Config) withDefaults() (Config, string, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultURL
	}
	c.BaseURL = strings.TrimRight(strings.TrimSpace(c.BaseURL), "/")
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil: // url.Error shows the URL, which may contain a password
		return c, "", errors.New("the model's base URL cannot be read as a URL")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return c, "", errors.New("the model's base URL must begin with http:// or https:// and a host")
	case u.User != nil || u.Fragment != "" || !providerOf(u.Host).accepts(u.Query()):
		return c, "", errors.New("the model's base URL must not contain a user, query or fragment (Azure's may end in ?api-version=…); the key has its own setting")
	}
	c.query, u.RawQuery = u.RawQuery, ""
	c.BaseURL = strings.TrimRight(u.String(), "/")
	c.APIKey = strings.TrimSpace(c.APIKey)
	if strings.ContainsFunc(c.APIKey, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return c, "", errors.New("the model's API key contains a control character")
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

// checkBody checks that body is empty, or a JSON object that has fields, all of which may be added to each request.
func checkBody(body json.RawMessage) error {
	if len(body) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("the fields to add to each request are not a JSON object: %w", err)
	}
	if len(fields) == 0 {
		return errors.New("there are no fields to add to each request: leave the setting out")
	}
	for name := range fields {
		if slices.Contains([]string{"model", "messages", "tools", "tool_choice", "stream", "stream_options", "reasoning_effort", "prompt_cache_key", "input", "instructions", "previous_response_id"}, name) {
			return fmt.Errorf("the field %s of each request is set by Parley itself", name)
		}
	}
	return nil
}

// newTransport makes a transport that keeps connections open for many answers at once. Over TLS it pings them
// to notice dead ones, and many answers share a connection if the server allows it. It doesn't ask for
// compression, because a compressed stream is held back until a block is full. Its buffers are small, because
// events are short and each answer that is awaited may have two buffers.
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
	f := &window.Finder{HTTP: c.client, BaseURL: c.BaseURL, Header: http.Header{}, Model: c.Name, Configured: c.Window, RequestsSetWindow: c.API == APIAuto, Log: c.Log}
	c.sign(f.Header)
	return f
}

// sign sets the header fields of each request: the key, in the field where the provider expects it, and the
// configured fields.
func (c *Config) sign(h http.Header) {
	h.Del("Authorization") // set by the library
	switch {
	case c.APIKey == "":
	case c.keyHeader == "Authorization":
		h.Set(c.keyHeader, "Bearer "+c.APIKey)
	default:
		h.Set(c.keyHeader, c.APIKey)
	}
	maps.Copy(h, c.Header)
}
