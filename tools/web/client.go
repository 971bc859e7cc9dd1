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
	// maxHops limits how many redirects are followed.
	maxHops = 10
	// maxHeader limits the header of an answer, in bytes.
	maxHeader = 64 << 10
)

// newDialer makes a dialer that checks each address right before it connects.
func newDialer(refuse func(netip.Addr) string) *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, Control: checkBeforeConnect(refuse)}
}

// newTransport makes the HTTP transport to the public web. It doesn't use the proxy from the
// environment, because a proxy would also connect to addresses that are refused here.
func newTransport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           32,
		// Usually one page is read: an idle connection is kept only for its redirects and for what
		// is read right after it.
		IdleConnTimeout: 5 * time.Second,
	}
}

// A client sends the requests of web_fetch.
type client struct {
	transport http.RoundTripper
	redirect  func(call tools.Call, to string) error // see Config
}

// forCall returns the HTTP client for one call. It follows the redirects of GET and HEAD requests,
// and checks each of them. For other methods the model gets the redirect as the answer, so that no
// data is sent to a place that the model did not name.
func (c client) forCall(call tools.Call, settings Settings, own http.Header) *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if method := via[0].Method; method != http.MethodGet && method != http.MethodHead {
			return http.ErrUseLastResponse
		}
		if len(via) > maxHops {
			return tools.Errorf(tools.ExecutionFailed, "the page redirects more than %d times", maxHops)
		}
		if err := c.checkRedirect(call, settings, next.URL); err != nil {
			return redirectError(next.URL, err)
		}
		next.Header.Del("Referer")
		if next.URL.Host != via[0].URL.Host || next.URL.Scheme != via[0].URL.Scheme {
			for name := range own {
				next.Header.Del(name) // they may contain a secret for the first host
			}
		}
		return nil
	}}
}

// checkRedirect returns why a call may not follow a redirect; nil if it may.
func (c client) checkRedirect(call tools.Call, settings Settings, to *url.URL) error {
	if err := checkTarget(to); err != nil {
		return err
	}
	if err := settings.checkPermitted(to.Hostname()); err != nil || c.redirect == nil {
		return err
	}
	return c.redirect(call, to.String())
}

// redirectError returns the error for a redirect that was refused. It says that a redirect was
// refused, because that is not the fault of the model's arguments.
func redirectError(to *url.URL, err error) error {
	known, ok := errors.AsType[*tools.Error](err)
	if !ok {
		return err
	}
	code := known.Code
	if code == tools.InvalidArgs {
		code = tools.ExecutionFailed
	}
	return tools.Errorf(code, "the page redirects to %s: %s", visibleText(clip(to.Redacted(), 300)), known.Message)
}

// unreachableError returns the error for a host that didn't answer, without the addresses of this machine and its name
// servers. An error that is already for the model stays as it is, and if ctx has ended, it returns why.
func unreachableError(ctx context.Context, host string, err error) error {
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
	return tools.Errorf(tools.ExecutionFailed, "%s gave no answer: %s", host, clip(innermost(err).Error(), 200))
}

// innermost returns the error at the end of a chain of wrapped errors.
func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}
