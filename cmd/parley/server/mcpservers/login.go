package mcpservers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
	"parley/tools/mcp"
	"parley/tools/mcp/signin"
)

// These are the paths that browsers and authorization servers request while somebody signs in to an MCP server.
const (
	callbackPath = "/mcp/" // the prefix of all these paths
	pagePath     = callbackPath + "client.json"
)

// newSignIn returns the Client that signs people in to MCP servers that require it.
func newSignIn(c Config) *signin.Client {
	signIn := signin.Config{
		Store:    notes{c.Notes},
		Redirect: func(server string) string { return externalURL(c.Settings.HTTP) + callbackPath + server + "/callback" },
		RunAlone: func(ctx context.Context, name string, do func(context.Context) error) error {
			held, release, err := c.Bus.Hold(ctx, name)
			if err != nil {
				return err
			}
			defer release()
			return do(held)
		},
	}
	if public := c.Settings.HTTP.PublicURL; strings.HasPrefix(public, "https://") {
		signIn.ClientIDURL = public + pagePath
	}
	return signin.New(signIn)
}

// externalURL returns the URL at which browsers reach this server: its public URL or, if none is
// configured, one that works only on this machine.
func externalURL(c config.HTTP) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return "http://127.0.0.1:7275" // nobody listens there: the owner enters the address that the browser shows
	}
	if a, err := netip.ParseAddr(host); err != nil || !a.IsLoopback() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// A BegunSignIn is a sign-in that was begun here and that somebody completes in a browser.
type BegunSignIn struct {
	ID     string    `json:"id"`
	URL    string    `json:"url"`  // the URL to open in a browser
	EndURL string    `json:"ends"` // the address that the browser goes to when the person has signed in
	Until  time.Time `json:"until"`
}

// serverToSignIn returns the server that a sign-in request names, or why nobody can sign in to it.
func (s *Servers) serverToSignIn(w *exchange.Answer, r *http.Request) (signin.Server, error) {
	server, err := s.SignInServer(requestedName(w, r))
	switch {
	case errors.Is(err, mcp.ErrNoServer):
		return server, noServer()
	case err != nil:
		return server, exchange.Unprocessable("no_login", "%s", err.Error())
	}
	return server, nil
}

// isSignedIn serves GET …/login?id=ID, which reports whether a sign-in is finished.
func (s *Servers) isSignedIn(w *exchange.Answer, r *http.Request) error {
	if _, err := s.serverToSignIn(w, r); err != nil {
		return err
	}
	done, err := s.signIn.IsDone(r.Context(), w.ID, r.URL.Query().Get("id"))
	if err != nil {
		s.log.Error("it cannot be read whether somebody has signed in", slog.String("server", w.ID), slog.Any("error", err))
		w.Refuse(&exchange.Refusal{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "the sign-in can't be read right now: try again"})
		return nil
	}
	return w.JSON(http.StatusOK, map[string]bool{"done": done})
}

// login serves POST …/login, which begins a sign-in or, with {"address"}, finishes one with the
// address at which the browser ended.
func (s *Servers) login(w *exchange.Answer, r *http.Request) error {
	server, err := s.serverToSignIn(w, r)
	if err != nil {
		return err
	}
	var asked struct{ Address, Issuer string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10)).Decode(&asked); err != nil && !errors.Is(err, io.EOF) {
		return exchange.BadRequest("bad_request", "%s", `the body must be {}, {"address": "the address where the browser ended up"} or {"issuer": "the authorization server that the server has to name"}`)
	}
	if asked.Address != "" {
		return s.finishByAddress(w, r, asked.Address)
	}
	begun, err := s.signIn.Begin(r.Context(), server, asked.Issuer)
	if other, ok := errors.AsType[*signin.IssuerError](err); ok {
		s.log.Warn("an MCP server names another authorization server than before", slog.String("server", w.ID), slog.String("named", other.Named), slog.String("before", other.Expected))
		return exchange.Unprocessable("other_issuer", "%s", err.Error())
	}
	if err != nil {
		return exchange.Unprocessable("no_login", "%s", err.Error())
	}
	return w.JSON(http.StatusOK, BegunSignIn(begun))
}

// finishByAddress finishes a sign-in with an address that somebody has copied from their browser,
// which could not reach this server.
func (s *Servers) finishByAddress(w *exchange.Answer, r *http.Request, address string) error {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Query().Get("state") == "" {
		return exchange.Unprocessable("bad_address", "this isn't the address where the browser ended up: that one has state= and code= in it")
	}
	if status, err := s.finish(r.Context(), w.ID, u.Query()); err != nil {
		w.Refuse(&exchange.Refusal{Status: status, Code: "no_login", Message: err.Error()})
		return nil
	}
	return w.JSON(http.StatusOK, map[string]bool{"done": true})
}

// finish finishes a sign-in with the parameters that the browser brought back, and tells the
// owners. If it fails, it also returns the HTTP status to answer.
func (s *Servers) finish(ctx context.Context, name string, query url.Values) (status int, err error) {
	err = s.signIn.Finish(ctx, name, query)
	switch {
	case errors.Is(err, signin.ErrState), errors.Is(err, signin.ErrRefused):
		return http.StatusUnprocessableEntity, err
	case err != nil:
		s.log.Error("a sign-in to an MCP server could not be finished", slog.String("server", name), slog.Any("error", err))
		return http.StatusBadGateway, err
	}
	s.log.Info("somebody has signed in to an MCP server", slog.String("server", name))
	s.SignedIn(name)
	s.tell(ctx, "mcp signed "+name+" "+time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(textSomebodySignedIn, name))
	return http.StatusOK, nil
}

// callback serves GET /mcp/{name}/callback, where the browser of somebody who signs in ends up. It
// needs no token: nobody else knows the sign-in's state.
func (s *Servers) callback(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("name")
	text := fmt.Sprintf(textSignedIn, w.ID)
	status := http.StatusOK
	if _, err := s.SignInServer(w.ID); err != nil {
		status, text = http.StatusNotFound, textNoServer
	} else if code, err := s.finish(r.Context(), w.ID, r.URL.Query()); err != nil {
		status, text = code, textNotSignedIn(err.Error())
	}
	forBrowsers(w)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // the browser may be gone
	return nil
}

// forBrowsers sets the headers that keep an answer's content from others.
func forBrowsers(w http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
}

// clientPage serves GET /mcp/client.json, which tells authorization servers who the client is that
// asks for access: the JSON that describes Parley as an OAuth client.
func (s *Servers) clientPage(w *exchange.Answer, _ *http.Request) error {
	redirects := []string{}
	for _, state := range s.States() {
		if _, err := s.SignInServer(state.Name); err == nil {
			redirects = append(redirects, externalURL(s.http)+callbackPath+state.Name+"/callback")
		}
	}
	forBrowsers(w)
	return w.JSON(http.StatusOK, map[string]any{
		"client_id": externalURL(s.http) + pagePath, "client_name": "Parley", "redirect_uris": redirects,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	})
}
