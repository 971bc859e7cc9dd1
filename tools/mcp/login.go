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

// A LoginError says that a service wants an owner to sign in.
type LoginError struct{ Server string }

// Error says what to do.
func (e *LoginError) Error() string {
	return fmt.Sprintf("it wants somebody to be signed in (HTTP 401 Unauthorized): an owner runs parley mcp login %s", e.Server)
}

// Login is a server as one signs in to it. ErrNoServer says that none has this name, and
// ErrNoLogin that nobody can sign in to it.
func (s *Servers) Login(name string) (signin.Server, error) {
	for _, one := range s.servers {
		switch {
		case one.Name != name:
		case !s.signsIn(one):
			return signin.Server{}, ErrNoLogin
		default:
			return one.login(), nil
		}
	}
	return signin.Server{}, ErrNoServer
}

// ErrNoLogin says that nobody can sign in to a server.
var ErrNoLogin = errors.New("nobody signs in to a program, nor to a service whose headers say Authorization")

// signsIn tells whether somebody may sign in to a server: where the operator has said what
// it is sent, that is what it is sent.
func (s *Servers) signsIn(one *server) bool {
	for name := range one.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return one.Web() && s.cfg.SignIn != nil
}

func (s *server) login() signin.Server {
	return signin.Server{Name: s.Name, URL: s.URL, ClientID: s.ClientID, ClientSecret: s.ClientSecret}
}

// Signed says that somebody has signed in to a server, which is then asked for its tools.
func (s *Servers) Signed(name string) {
	i := slices.IndexFunc(s.servers, func(one *server) bool { return one.Name == name })
	if i < 0 {
		return
	}
	s.pool.forgive(name)
	select {
	case s.servers[i].signed <- struct{}{}:
	default: // it is known already
	}
}

// followLogins takes note of servers to which somebody has signed in elsewhere.
func (s *Servers) followLogins(ctx context.Context) {
	for _, one := range s.servers {
		_, err := one.stands()
		if _, wants := errors.AsType[*LoginError](err); !wants {
			continue
		}
		if token, err := s.cfg.SignIn.Renew(ctx, one.login(), ""); err == nil && token != "" {
			s.Signed(one.Name)
		}
	}
}

// signed sends a request with the token of whoever has signed in, and once more with
// another where that is refused: then nothing was done.
func (t *trips) signed(r *http.Request) (*http.Response, error) {
	token, err := t.desk.Token(r.Context(), t.login)
	if err != nil {
		return nil, err
	}
	answer, err := t.send(r, token)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return t.judge(r.Context(), answer, err)
	}
	next, err := t.desk.Renew(r.Context(), t.login, token)
	if err != nil || next == "" || r.Body != nil && r.GetBody == nil {
		if err != nil {
			t.log.Warn("the token of an MCP server cannot be renewed", slog.String("server", t.login.Name), slog.Any("error", err))
		}
		return t.judge(r.Context(), answer, nil)
	}
	_ = answer.Body.Close() // it was refused
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	answer, err = t.send(again, next)
	return t.judge(r.Context(), answer, err)
}

func (t *trips) send(r *http.Request, token string) (*http.Response, error) {
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return t.next.RoundTrip(r)
}

// withoutToken is a result of a server without the token that it was sent: some say what
// they were asked with.
func (s *Servers) withoutToken(one *server, r tools.Result, err error) (tools.Result, error) {
	if !s.signsIn(one) {
		return r, err
	}
	token := s.cfg.SignIn.Last(one.Name)
	if token == "" {
		return r, err
	}
	if bytes.Contains(r.Content, []byte(token)) {
		r.Content = bytes.ReplaceAll(r.Content, []byte(token), []byte(hidden))
	}
	if said, ok := errors.AsType[*tools.Error](err); ok && strings.Contains(said.Message, token) {
		err = tools.Errorf(said.Code, "%s", strings.ReplaceAll(said.Message, token, hidden))
	}
	return r, err
}

// hidden stands in the place of a token.
const hidden = "[redacted]"

// judge notes whether an answer wants somebody to sign in, or to be allowed more.
func (t *trips) judge(ctx context.Context, answer *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	said := answer.Header.Values("WWW-Authenticate")
	switch {
	case answer.StatusCode == http.StatusUnauthorized, answer.StatusCode == http.StatusForbidden && wantsMore(said):
		t.wanted.Store(true)
		if err := t.desk.Wanted(ctx, t.login, said); err != nil {
			t.log.Warn("it cannot be noted how one signs in to an MCP server", slog.String("server", t.login.Name), slog.Any("error", err))
		}
	case answer.StatusCode < http.StatusBadRequest:
		t.wanted.Store(false)
	}
	return answer, nil
}

// wantsMore tells whether a service would do what it was asked if it was allowed more.
func wantsMore(said []string) bool {
	all, err := oauthex.ParseWWWAuthenticate(said)
	return err == nil && slices.ContainsFunc(all, func(c oauthex.Challenge) bool {
		return c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope"
	})
}
