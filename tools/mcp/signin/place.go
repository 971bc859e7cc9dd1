package signin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/oauth2"
)

// requestTimeout is how long one request may take.
const requestTimeout = 20 * time.Second

// newClient makes an HTTP client that follows redirects only of GET requests, because the bodies of other requests
// may contain secrets that are meant for one server.
func newClient() *http.Client {
	return &http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: requestTimeout, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: requestTimeout},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if via[0].Method != http.MethodGet || len(via) > 3 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// guardedClient returns the HTTP client for addresses named by an MCP server. It makes no requests to this machine
// or its private network, unless the server itself is there, because a server elsewhere could otherwise reach them
// through Parley.
func (d *Client) guardedClient(server string) *http.Client {
	c := *d.http
	if u, err := url.Parse(server); err != nil || !isLocal(u.Hostname()) {
		c.Transport = newRemoteTransport(d.http.Transport, u)
	}
	return &c
}

// A remoteTransport is an HTTP transport that refuses requests to this machine, and to private networks unless the
// server is in one. Without a proxy it checks each address that it connects to; with a proxy, only the host in the
// URL.
type remoteTransport struct {
	proxied http.RoundTripper // requests through a proxy, which resolves host names itself
	direct  http.RoundTripper // other requests: every address that it connects to is checked
}

func newRemoteTransport(proxied http.RoundTripper, server *url.URL) remoteTransport {
	dialer := &net.Dialer{Timeout: requestTimeout, ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		switch {
		case err != nil || isLocal(to.Addr().WithZone("").String()):
			return errLocal
		case to.Addr().Unmap().IsPrivate() && !isPrivate(ctx, server):
			return errPrivate
		}
		return nil
	}}
	return remoteTransport{proxied, &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, DisableKeepAlives: true,
		TLSHandshakeTimeout: requestTimeout, MaxResponseHeaderBytes: 64 << 10,
	}}
}

// Why no request is made to an address named by a server.
var (
	errLocal   = errors.New("it names an address of this machine, and Parley does not ask those")
	errPrivate = errors.New("it names an address of a private network that it is not in itself, and Parley does not ask those")
)

// RoundTrip implements http.RoundTripper: it refuses addresses of this machine.
func (e remoteTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if isLocal(r.URL.Hostname()) {
		return nil, errLocal
	}
	if proxy, err := http.ProxyFromEnvironment(r); err != nil || proxy != nil {
		return e.proxied.RoundTrip(r)
	}
	return e.direct.RoundTrip(r)
}

// isLocal reports whether a host is this machine, or an address that only this machine has.
func isLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a.Unmap().IsLoopback() || a.Unmap().IsUnspecified() || a.Unmap().IsLinkLocalUnicast())
}

// isPrivate reports whether a server has an address in a private network, which it looks up. It returns false if it
// can't find out.
func isPrivate(ctx context.Context, server *url.URL) bool {
	if server == nil {
		return false
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", server.Hostname())
	return err == nil && slices.ContainsFunc(found, func(a netip.Addr) bool { return a.Unmap().IsPrivate() })
}

// asRefusal returns the reason that an authorization server gives for a refusal; refused is false if the error is
// not a refusal.
func asRefusal(err error) (said string, refused bool) {
	r, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || r.Response == nil || r.Response.StatusCode >= http.StatusInternalServerError || r.Response.StatusCode == http.StatusTooManyRequests {
		return "", false
	}
	if r.ErrorCode == "" {
		return fmt.Sprintf("HTTP %d", r.Response.StatusCode), true
	}
	return clip(r.ErrorCode + " " + r.ErrorDescription), true
}

// isLoginExpired reports whether an error says that a login is no longer valid, so that somebody has to sign in again.
// An HTTP status alone doesn't say that: it may come from a firewall, or from a server that is being replaced.
func isLoginExpired(err error) bool {
	r, ok := errors.AsType[*oauth2.RetrieveError](err)
	return ok && slices.Contains([]string{"invalid_grant", "invalid_client", "unauthorized_client"}, r.ErrorCode)
}

// withoutSecrets returns an error without the request and the answer, which may contain secrets.
func withoutSecrets(err error) error {
	if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		status := 0
		if r.Response != nil {
			status = r.Response.StatusCode
		}
		return fmt.Errorf("it answered with HTTP %d", status)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		if errors.Is(u.Err, context.DeadlineExceeded) {
			return context.DeadlineExceeded
		}
		return u.Err
	}
	return errors.New(clip(err.Error()))
}

// clip returns a text written by others as one short line.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	return strings.TrimSpace(text)
}
