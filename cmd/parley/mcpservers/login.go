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

	"parley/cmd/parley/config"
	"parley/tools/mcp"
	"parley/tools/mcp/signin"
)

// The paths that browsers and authorization servers request while somebody signs in to an MCP
// server.
const (
	// Path is the beginning of all these paths.
	Path     = "/mcp/"
	pagePath = Path + "client.json"
)

// newSignIn makes the Desk that signs people in to MCP servers which need that.
func newSignIn(c Config) *signin.Client {
	signIn := signin.Config{
		Store:    notes{c.Notes},
		Redirect: func(server string) string { return externalURL(c.Settings.HTTP) + Path + server + "/callback" },
		Alone: func(ctx context.Context, name string, do func(context.Context) error) error {
			held, release, err := c.Bus.Hold(ctx, name)
			if err != nil {
				return err
			}
			defer release()
			return do(held)
		},
	}
	if public := c.Settings.HTTP.PublicURL; strings.HasPrefix(public, "https://") {
		signIn.Page = public + pagePath
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
		return "http://127.0.0.1:7275" // nobody listens: the owner brings the address
	}
	if a, err := netip.ParseAddr(host); err != nil || !a.IsLoopback() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// A BegunSignIn is a sign-in that was begun here and that somebody completes in a browser.
type BegunSignIn struct {
	ID    string    `json:"id"`
	URL   string    `json:"url"`  // the URL to open in a browser
	Ends  string    `json:"ends"` // the address to which the browser goes when the person has signed in
	Until time.Time `json:"until"`
}

// login serves GET …/login?id=ID, which reports whether a sign-in is finished, and POST,
// which begins one, or with {"address"} finishes one by the address at which the browser
// has ended.
func (s *Servers) login(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	server, err := s.Login(name)
	switch {
	case errors.Is(err, mcp.ErrNoServer):
		refuse(w, http.StatusNotFound, "not_found", "no server of that name is configured: parley mcp list, or GET /v1/mcp, lists those that are")
		return
	case err != nil:
		refuse(w, http.StatusUnprocessableEntity, "no_login", err.Error())
		return
	case r.Method == http.MethodGet:
		done, err := s.signIn.IsDone(r.Context(), name, r.URL.Query().Get("id"))
		if err != nil {
			s.log.Error("it cannot be read whether somebody has signed in", slog.String("server", name), slog.Any("error", err))
			refuse(w, http.StatusServiceUnavailable, "unavailable", "it cannot be read now: try again")
			return
		}
		answer(w, http.StatusOK, map[string]bool{"done": done})
		return
	}
	var asked struct{ Address, Issuer string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10)).Decode(&asked); err != nil && !errors.Is(err, io.EOF) {
		refuse(w, http.StatusBadRequest, "bad_request", `the body is to be {}, {"address": "the address at which the browser ended"} or {"issuer": "the authorization server that the server is to name"}`)
		return
	}
	if asked.Address != "" {
		s.finishByAddress(w, r, name, asked.Address)
		return
	}
	begun, err := s.signIn.Begin(r.Context(), server, asked.Issuer)
	if other, ok := errors.AsType[*signin.IssuerError](err); ok {
		s.log.Warn("an MCP server names another authorization server than before", slog.String("server", name), slog.String("named", other.Named), slog.String("before", other.Expected))
		refuse(w, http.StatusUnprocessableEntity, "other_issuer", err.Error())
		return
	}
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, "no_login", err.Error())
		return
	}
	answer(w, http.StatusOK, BegunSignIn(begun))
}

// finishByAddress finishes a sign-in to the server name with an address that somebody has copied
// from their browser, which could not reach this server.
func (s *Servers) finishByAddress(w http.ResponseWriter, r *http.Request, name, address string) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Query().Get("state") == "" {
		refuse(w, http.StatusUnprocessableEntity, "bad_address", "this is not the address at which the browser ended: it has state= and code= in it")
		return
	}
	if code, err := s.finish(r.Context(), name, u.Query()); err != nil {
		refuse(w, code, "no_login", err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]bool{"done": true})
}

// finish finishes a sign-in with the parameters that the browser brought back, and tells the
// owners. With an error it returns the HTTP status to answer.
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
	s.Signed(name)
	s.tell(ctx, "mcp signed "+name+" "+time.Now().UTC().Format(time.RFC3339), fmt.Sprintf("Somebody has signed in to the MCP server %s for Parley.", name))
	return http.StatusOK, nil
}

// ServeBrowser serves GET /mcp/{name}/callback, where the browser of somebody who signs in ends,
// and GET /mcp/client.json, from which authorization servers learn who the client is that asks
// for access. Neither needs a token: nobody else knows the sign-in's state.
func (s *Servers) ServeBrowser(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	if r.URL.Path == pagePath {
		s.clientPage(w)
		return
	}
	name := r.PathValue("name")
	text := fmt.Sprintf("Parley is signed in to %s. You can close this page.", name)
	status := http.StatusOK
	if _, err := s.Login(name); err != nil {
		status, text = http.StatusNotFound, "No MCP server of this name is configured here."
	} else if code, err := s.finish(r.Context(), name, r.URL.Query()); err != nil {
		status, text = code, "Parley is not signed in: "+err.Error()+"."
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n") // who has come may be gone
}

// clientPage serves the JSON that describes Parley as an OAuth client.
func (s *Servers) clientPage(w http.ResponseWriter) {
	redirects := []string{}
	for _, state := range s.States() {
		if _, err := s.Login(state.Name); err == nil {
			redirects = append(redirects, externalURL(s.http)+Path+state.Name+"/callback")
		}
	}
	answer(w, http.StatusOK, map[string]any{
		"client_id": externalURL(s.http) + pagePath, "client_name": "Parley", "redirect_uris": redirects,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	})
}
