package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"parley/tools/mcp/lines"
	"parley/tools/mcp/signin"
)

// A roundTripper sends the HTTP requests to a service: it adds the headers and the token to each
// request, and records how the service answers.
type roundTripper struct {
	headers       map[string]string
	host          string
	secure        bool // the service's URL uses HTTPS
	next          *http.Transport
	answers       atomic.Int64
	refusedStatus atomic.Int32 // the status of the last request, if it was refused

	signIn       *signin.Client // holds the tokens of the services that somebody has signed in to; nil if nobody can sign in
	server       signin.Server
	signInWanted atomic.Bool // the service wants somebody to sign in
	log          *slog.Logger
}

// maxAnswer limits the length of an answer that is not a stream of events, in bytes.
const maxAnswer = lines.MaxLine

// RoundTrip implements http.RoundTripper: it sends requests only to the service's own host.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.checkPlace(r.URL); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	send := t.next.RoundTrip
	if t.signIn != nil {
		send = t.sendSigned
	}
	answer, err := send(r)
	if err != nil {
		return nil, err
	}
	t.answers.Add(1)
	callRecordOf(r.Context()).answered(r, answer, t.signIn != nil && asksForSignIn(answer))
	if r.Method == http.MethodPost {
		t.refusedStatus.Store(0)
		if answer.StatusCode >= http.StatusBadRequest {
			t.refusedStatus.Store(int32(answer.StatusCode))
		}
	}
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, nil
}

// checkPlace returns why the headers and tokens for the service must not be sent to an address; nil
// if they may.
func (t *roundTripper) checkPlace(u *url.URL) error {
	switch {
	case u.Host != t.host:
		return errOtherHost
	case t.secure && u.Scheme != "https":
		return errNotHTTPS
	}
	return nil
}

// The errors for a request that would go to another place than the service's URL.
var (
	errOtherHost = errors.New("the service redirects to a host other than the one in its URL, which is not followed")
	errNotHTTPS  = errors.New("the service redirects away from HTTPS, which is not followed: others could read what is sent in transit")
)

// checkRedirect lets a request follow a few redirects, if they stay on the same host.
func (t *roundTripper) checkRedirect(r *http.Request, via []*http.Request) error {
	if err := t.checkPlace(r.URL); err != nil {
		return err
	}
	if len(via) > 3 {
		return errors.New("the service redirects too many times")
	}
	return context.Cause(r.Context())
}

// sendSigned sends a request with the token that the service issued when somebody signed in. If the
// service refuses the token, it has done nothing, so sendSigned sends the request once more with a
// new token.
func (t *roundTripper) sendSigned(r *http.Request) (*http.Response, error) {
	token, err := t.signIn.Token(r.Context(), t.server)
	if err != nil {
		return nil, err
	}
	answer, err := t.send(r, token)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return t.recordWanted(r.Context(), answer, err)
	}
	next, err := t.signIn.Renew(r.Context(), t.server, token)
	if err != nil || next == "" || r.Body != nil && r.GetBody == nil {
		if err != nil {
			t.log.Warn("the token of an MCP server cannot be renewed", slog.String("server", t.server.Name), slog.Any("error", err))
		}
		return t.recordWanted(r.Context(), answer, nil)
	}
	_ = answer.Body.Close() // the answer was a refusal
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	answer, err = t.send(again, next)
	return t.recordWanted(r.Context(), answer, err)
}

// send sends a request with a token, if there is one.
func (t *roundTripper) send(r *http.Request, token string) (*http.Response, error) {
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return t.next.RoundTrip(r)
}

// recordWanted records whether the service's answer says that somebody has to sign in, or to grant
// more permissions. It returns answer and err unchanged.
func (t *roundTripper) recordWanted(ctx context.Context, answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	said := answer.Header.Values("WWW-Authenticate")
	switch {
	case asksForSignIn(answer):
		t.signInWanted.Store(true)
		if err := t.signIn.RecordWanted(ctx, t.server, said); err != nil {
			t.log.Warn("it cannot be noted how one signs in to an MCP server", slog.String("server", t.server.Name), slog.Any("error", err))
		}
	case answer.StatusCode < http.StatusBadRequest:
		t.signInWanted.Store(false)
	}
	return answer, nil
}

// asksForSignIn reports whether a service's answer says that somebody has to sign in, or to grant more
// permissions.
func asksForSignIn(answer *http.Response) bool {
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden && wantsMoreScope(answer.Header.Values("WWW-Authenticate"))
}

// wantsMoreScope reports whether a service has refused a request because the token lacks a scope, that
// is, a permission; said are the headers in which it says why.
func wantsMoreScope(said []string) bool {
	all, err := oauthex.ParseWWWAuthenticate(said)
	return err == nil && slices.ContainsFunc(all, func(c oauthex.Challenge) bool {
		return c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope"
	})
}
