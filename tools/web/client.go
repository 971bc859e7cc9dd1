package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"parley/tools"
)

const (
	// maxHops is how many redirects are followed.
	maxHops = 10
	// maxHeader bounds the header of an answer, in bytes.
	maxHeader = 64 << 10
)

// newDialer makes what connects: it checks each address right before.
func newDialer(refuse func(netip.Addr) string) *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, Control: connecting(refuse)}
}

// newTransport makes the way to the public web, without the environment's proxy: it
// would connect for us where we may not.
func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           32,
		// One page is read and left: what is idle is kept for its redirects and
		// what is read right after it.
		IdleConnTimeout: 5 * time.Second,
	}
}

// client is the client of one call. It follows the redirects of GET and HEAD and
// checks each; any other method gets the redirect as its answer, so that nothing is
// sent to where nobody asked.
func (f *fetcher) client(call tools.Call, settings Settings, own http.Header) *http.Client {
	return &http.Client{Transport: f.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if method := via[0].Method; method != http.MethodGet && method != http.MethodHead {
			return http.ErrUseLastResponse
		}
		if len(via) > maxHops {
			return tools.Errorf(tools.ExecutionFailed, "the page redirects more than %d times", maxHops)
		}
		if err := f.mayGoOn(call, settings, next.URL); err != nil {
			return redirected(next.URL, err)
		}
		next.Header.Del("Referer")
		if next.URL.Host != via[0].URL.Host || next.URL.Scheme != via[0].URL.Scheme {
			for name := range own {
				next.Header.Del(name) // they may hold a secret for the first host
			}
		}
		return nil
	}}
}

// mayGoOn says why a call may not go on to where a page sends it.
func (f *fetcher) mayGoOn(call tools.Call, settings Settings, to *url.URL) error {
	if err := checkTarget(to); err != nil {
		return err
	}
	if err := settings.permit(to.Hostname()); err != nil || f.redirect == nil {
		return err
	}
	return f.redirect(call, to.String())
}

// redirected says that a refusal concerns a redirect, which is no mistake in the
// model's arguments.
func redirected(to *url.URL, err error) error {
	known, ok := errors.AsType[*tools.Error](err)
	if !ok {
		return err
	}
	code := known.Code
	if code == tools.InvalidArgs {
		code = tools.ExecutionFailed
	}
	return tools.Errorf(code, "the page redirects to %s: %s", plain(clip(to.Redacted(), 300)), known.Message)
}

// unreachable says why there was no answer, without the addresses of this machine
// and its name servers.
func unreachable(ctx context.Context, host string, err error) error {
	if known, ok := errors.AsType[*tools.Error](err); ok {
		return known
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed, ok := errors.AsType[*net.DNSError](err); ok {
		if failed.IsNotFound {
			return tools.Errorf(tools.ExecutionFailed, "no host is called %s: check the name", host)
		}
		return tools.Errorf(tools.ExecutionFailed, "the name %s cannot be looked up now", host)
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err
	}
	return tools.Errorf(tools.ExecutionFailed, "%s gave no answer: %s", host, clip(cause(err).Error(), 200))
}

// cause is the innermost error of those that wrap one.
func cause(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
