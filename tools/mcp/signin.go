package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"parley/tools"
	"parley/tools/mcp/signin"
)

// A SignInNeededError says that a service won't answer until an owner has signed in to it, or has granted more.
type SignInNeededError struct{ Server string }

// Error says what the owner has to do.
func (e *SignInNeededError) Error() string {
	return fmt.Sprintf("somebody has to sign in (HTTP 401 Unauthorized): an owner can, with parley mcp login %s", e.Server)
}

// SignInServer returns a server in the form that package signin needs. It returns ErrNoServer if no
// server has this name, and another error, which says why, if nobody can sign in to it.
func (s *Servers) SignInServer(name string) (signin.Server, error) {
	for _, one := range s.servers {
		switch {
		case one.Name != name:
		case !s.canSignIn(one):
			return signin.Server{}, errCannotSignIn
		default:
			return one.signinServer(), nil
		}
	}
	return signin.Server{}, ErrNoServer
}

// errCannotSignIn says that nobody can sign in to a server.
var errCannotSignIn = errors.New("a program needs no sign-in, nor does a service whose headers set Authorization")

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

// withoutTokens removes from a call's result the tokens that were sent to the server, because some
// servers repeat what they were sent. There may be several, because the token may have been renewed
// during the call.
func (s *Servers) withoutTokens(one *server, r tools.Result, err error) (tools.Result, error) {
	if !s.canSignIn(one) {
		return r, err
	}
	for _, token := range s.cfg.SignIn.Tokens(one.Name) {
		if bytes.Contains(r.Content, []byte(token)) {
			r.Content = bytes.ReplaceAll(r.Content, []byte(token), []byte(redactedToken))
		}
		if said, ok := errors.AsType[*tools.Error](err); ok && strings.Contains(said.Message, token) {
			err = tools.Errorf(said.Code, "%s", strings.ReplaceAll(said.Message, token, redactedToken))
		}
	}
	return r, err
}

// redactedToken replaces a token.
const redactedToken = "[redacted]"
