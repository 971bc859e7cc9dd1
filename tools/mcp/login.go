package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"parley/tools"
	"parley/tools/mcp/signin"
)

// A LoginError says that a service answers only after an owner has signed in to it.
type LoginError struct{ Server string }

// Error says what the owner has to do.
func (e *LoginError) Error() string {
	return fmt.Sprintf("it wants somebody to be signed in (HTTP 401 Unauthorized): an owner runs parley mcp login %s", e.Server)
}

// Login returns a server in the form that package signin needs. ErrNoServer says that no server
// has this name, and ErrNoLogin that nobody can sign in to it.
func (s *Servers) Login(name string) (signin.Server, error) {
	for _, one := range s.servers {
		switch {
		case one.Name != name:
		case !s.canSignIn(one):
			return signin.Server{}, ErrNoLogin
		default:
			return one.signinServer(), nil
		}
	}
	return signin.Server{}, ErrNoServer
}

// ErrNoLogin says that nobody can sign in to the server.
var ErrNoLogin = errors.New("nobody signs in to a program, nor to a service whose headers say Authorization")

// canSignIn reports whether somebody may sign in to a server. Nobody may if the operator has
// configured an Authorization header: that header is sent instead of a token.
func (s *Servers) canSignIn(one *server) bool {
	for name := range one.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return one.Web() && s.cfg.SignIn != nil
}

// signinServer returns the server in the form that package signin needs.
func (s *server) signinServer() signin.Server {
	return signin.Server{Name: s.Name, URL: s.URL, ClientID: s.ClientID, ClientSecret: s.ClientSecret}
}

// Signed reports to Servers that somebody has signed in to a server. Its tools are then listed
// again.
func (s *Servers) Signed(name string) {
	i := slices.IndexFunc(s.servers, func(one *server) bool { return one.Name == name })
	if i < 0 {
		return
	}
	s.pool.clearFailures(name)
	select {
	case s.servers[i].signed <- struct{}{}:
	default: // a signal is waiting already
	}
}

// followLogins looks for servers to which somebody has signed in through another process, and has
// their tools listed.
func (s *Servers) followLogins(ctx context.Context) {
	for _, one := range s.servers {
		_, err := one.lastOutcome()
		if _, wants := errors.AsType[*LoginError](err); !wants {
			continue
		}
		if token, err := s.cfg.SignIn.Renew(ctx, one.signinServer(), ""); err == nil && token != "" {
			s.Signed(one.Name)
		}
	}
}

// sendSigned sends a request with the token that the service has given when somebody signed in.
// If the service refuses the token, it has done nothing, so the request is sent once more with a
// new token.
func (t *roundTripper) sendSigned(r *http.Request) (*http.Response, error) {
	token, err := t.signIn.Token(r.Context(), t.login)
	if err != nil {
		return nil, err
	}
	answer, err := t.send(r, token)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return t.recordWanted(r.Context(), answer, err)
	}
	next, err := t.signIn.Renew(r.Context(), t.login, token)
	if err != nil || next == "" || r.Body != nil && r.GetBody == nil {
		if err != nil {
			t.log.Warn("the token of an MCP server cannot be renewed", slog.String("server", t.login.Name), slog.Any("error", err))
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

// withoutTokens removes from a call's result the tokens that the server was sent, because some
// servers repeat what they were sent. These are several, as the token may have been renewed
// during the call.
func (s *Servers) withoutTokens(one *server, r tools.Result, err error) (tools.Result, error) {
	if !s.canSignIn(one) {
		return r, err
	}
	for _, token := range s.cfg.SignIn.Tokens(one.Name) {
		if bytes.Contains(r.Content, []byte(token)) {
			r.Content = bytes.ReplaceAll(r.Content, []byte(token), []byte(hidden))
		}
		if said, ok := errors.AsType[*tools.Error](err); ok && strings.Contains(said.Message, token) {
			err = tools.Errorf(said.Code, "%s", strings.ReplaceAll(said.Message, token, hidden))
		}
	}
	return r, err
}

// hidden is written in the place of a token.
const hidden = "[redacted]"

// recordWanted records whether the service's answer says that somebody has to sign in, or must be
// given more permissions. It returns answer and err as they are.
func (t *roundTripper) recordWanted(ctx context.Context, answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	said := answer.Header.Values("WWW-Authenticate")
	switch {
	case saysLogin(answer):
		t.wanted.Store(true)
		if err := t.signIn.RecordWanted(ctx, t.login, said); err != nil {
			t.log.Warn("it cannot be noted how one signs in to an MCP server", slog.String("server", t.login.Name), slog.Any("error", err))
		}
	case answer.StatusCode < http.StatusBadRequest:
		t.wanted.Store(false)
	}
	return answer, nil
}

// saysLogin reports whether a service's answer says that somebody has to sign in, or must be
// given more permissions.
func saysLogin(answer *http.Response) bool {
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden && wantsMore(answer.Header.Values("WWW-Authenticate"))
}

// wantsMore reports whether a service has refused a request because the token lacks a scope, a
// permission; said are its headers that say why.
func wantsMore(said []string) bool {
	all, err := oauthex.ParseWWWAuthenticate(said)
	return err == nil && slices.ContainsFunc(all, func(c oauthex.Challenge) bool {
		return c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope"
	})
}
