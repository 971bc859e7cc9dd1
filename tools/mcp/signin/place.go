package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"
)

// patience is how long one request may take.
const patience = 20 * time.Second

// newClient makes a client that follows only what reads: nothing that is sent goes
// anywhere else.
func newClient() *http.Client {
	return &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: patience, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: patience},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if via[0].Method != http.MethodGet || len(via) > 3 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// guarded is the client for addresses that a server has named: a server elsewhere names
// none on this machine.
func (d *Desk) guarded(server string) *http.Client {
	c := *d.http
	if u, err := url.Parse(server); err != nil || !loopback(u.Hostname()) {
		c.Transport = elsewhere{d.http.Transport}
	}
	return &c
}

// elsewhere makes no requests to this machine.
type elsewhere struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	if loopback(r.URL.Hostname()) {
		return nil, errors.New("it names an address of this machine, which is not asked")
	}
	return e.next.RoundTrip(r)
}

// loopback tells whether a name is this machine's, or an address that only it has.
func loopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && (a.Unmap().IsLoopback() || a.Unmap().IsUnspecified() || a.Unmap().IsLinkLocalUnicast())
}

// refusal is what an authorization server says that refuses; false of an error that is
// none of its.
func refusal(err error) (said string, refused bool) {
	r, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || r.Response == nil || r.Response.StatusCode >= http.StatusInternalServerError || r.Response.StatusCode == http.StatusTooManyRequests {
		return "", false
	}
	if r.ErrorCode == "" {
		return fmt.Sprintf("HTTP %d", r.Response.StatusCode), true
	}
	return clip(r.ErrorCode + " " + r.ErrorDescription), true
}

// plain is an error without what was sent or answered, which may hold secrets.
func plain(err error) error {
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

// clip is a text of others' on one short line.
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
