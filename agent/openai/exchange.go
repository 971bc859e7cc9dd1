package openai

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"parley/agent/llm"
	"parley/tools"
)

// An exchange is the library's HTTP client for one request. It sends its own body instead of the library's,
// reads refusals with their headers, which the library drops, and rewrites the stream of the answer for the
// library's reader.
type exchange struct {
	server     *server
	dialect    dialect
	asked      *llm.Request // the request from which the body is written
	body       []byte       // nil once it is sent
	size       int          // bytes of the body
	tools      []tools.Spec // the tools in the body, sorted by name
	signOfLife func()       // called for each line of the stream
	events     *eventReader // the stream of the answer; nil until there is one
}

// newExchange makes the exchange of a request in a dialect.
func (s *server) newExchange(r *llm.Request, d dialect) (*exchange, error) {
	x := &exchange{server: s, dialect: d, asked: r}
	var err error
	x.body, err = x.encode()
	x.size = len(x.body)
	return x, err
}

// encode writes the body.
func (x *exchange) encode() (body []byte, err error) {
	x.asked.Restore()
	defer x.asked.Release() // early, because the model may take long, and the request is seldom encoded again
	body, x.tools, err = x.server.encode(x.asked, x.dialect)
	return body, err
}

// Do sends the exchange's request instead of req's body, and returns the rewritten stream. Its errors are those of
// failureOf.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	x.fillRequest(req)
	resp, err := x.send(req)
	if err = failureOf(req, resp, err); err != nil {
		return nil, err
	}
	x.events = newEvents(resp.Body, &x.server.readers, x.signOfLife)
	resp.Body = x.events
	return resp, nil
}

// send sends a request directly through the transport, because an http.Client's functions would hold 1 KB of
// the stack for as long as the request waits for the model. It uses a client only to follow a redirect.
func (x *exchange) send(req *http.Request) (*http.Response, error) {
	resp, err := x.server.cfg.Transport.RoundTrip(req)
	if err != nil || resp.StatusCode < 300 || resp.StatusCode >= 400 {
		return resp, err
	}
	return (&http.Client{Transport: &redirectTransport{first: resp, next: x.server.cfg.Transport}}).Do(req)
}

// A redirectTransport is the transport for a client that follows a redirect. The request has already been sent:
// its first response is first.
type redirectTransport struct {
	first *http.Response // nil once the client has it
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r *redirectTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if first := r.first; first != nil {
		r.first = nil
		return first, nil
	}
	return r.next.RoundTrip(req)
}

// fillRequest makes the library's request the exchange's own. The body is released once it is sent.
func (x *exchange) fillRequest(req *http.Request) {
	req.Body, req.ContentLength = newReleasedBody(x.body, &x.server.bodies), int64(len(x.body))
	x.body = nil                                  // it may be large, and the model may take long
	req.GetBody = func() (io.ReadCloser, error) { // after a redirect or a lost connection
		again, err := x.encode()
		return newReleasedBody(again, &x.server.bodies), err
	}
	req.URL.RawQuery = x.server.cfg.query
	if x.dialect.native { // Ollama's own protocol has a URL of its own
		req.URL.Path = strings.TrimSuffix(strings.TrimSuffix(req.URL.Path, "/chat/completions"), "/v1") + "/api/chat"
	}
	x.server.cfg.sign(req.Header)
}

// contains reports whether the request's instructions or messages contain a text; false for an empty one.
func (x *exchange) contains(text string) bool {
	if text == "" {
		return false
	}
	x.asked.Restore()
	defer x.asked.Release()
	return strings.Contains(x.asked.System, text) || slices.ContainsFunc(x.asked.Messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Blocks, func(b llm.Block) bool {
			return strings.Contains(b.Text, text) || strings.Contains(string(b.Args), text) || strings.Contains(string(b.Content), text)
		})
	})
}

// An unreachableError is returned for a request that no server answered.
type unreachableError struct {
	host string
	err  error
}

// Error returns the host and the network's error.
func (u *unreachableError) Error() string { return fmt.Sprintf("ask %s: %v", u.host, u.err) }

// Unwrap returns the network's error.
func (u *unreachableError) Unwrap() error { return u.err }

// failureOf returns why a request failed that was answered with resp or err: a *refusal for a web page and for
// any status except 2xx, whose body it reads and closes, and an *unreachableError if there is no response. It
// returns nil if the request did not fail.
func failureOf(req *http.Request, resp *http.Response, err error) error {
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // leave out the URL, which comes from the configuration
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

// isPage reports whether a response is a web page: many servers send one if they have nothing else. Some also
// label the stream of an answer as a page, so the first characters decide: isPage waits for them, and skips the white
// space before them.
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
			return false // the next reader gets the error again
		case !unicode.IsSpace(rune(c)):
			_ = in.UnreadByte() // can't fail right after a read
			return c == '<'
		}
	}
}

// errorOf turns the error of a request into an *llm.Error. If the server has repeated the key, errorOf conceals
// it.
func errorOf(err error, key string) *llm.Error {
	if r, ok := errors.AsType[*refusal](err); ok {
		e := &llm.Error{
			Fault: r.fault(), Cause: r.cause(), Status: r.status, Code: r.codeWord(), RetryAfter: r.retryAfter,
			Said: concealKey(r.description(), key), Explained: r.isExplained(), Err: r,
		}
		if e.Fault == llm.Overflow {
			e.Window = r.statedWindow()
		}
		return e
	}
	e := &llm.Error{Fault: llm.Busy, Err: err}
	if _, ok := errors.AsType[*unreachableError](err); ok {
		e.Cause = llm.CauseNetwork
	}
	return e
}

// concealKey replaces the words in a server's message that contain the key or a part of it.
func concealKey(message, key string) string {
	if key == "" {
		return message
	}
	const shown = 6 // a word with that many of the key's first characters is assumed to be the key
	words := strings.Split(message, " ")
	for i, w := range words {
		if strings.Contains(w, key) || strings.Contains(w, "***") || len(key) > 2*shown && strings.Contains(w, key[:shown]) {
			words[i] = "***"
		}
	}
	return strings.Join(words, " ")
}
