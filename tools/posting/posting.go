// Package posting helps packages that send HTTP requests to an address from the operator's settings: it keeps
// requests without TLS on this machine, and describes failures without the address and without what the other side
// wrote.
package posting

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	maxHeaders = 64 << 10
	maxProblem = 300 // how many bytes of a failure are told
)

// ErrElsewhere says that a request without TLS would have left this machine.
var ErrElsewhere = errors.New(textNotHere)

// NewTransport makes a transport that reaches any host.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes, t.DisableCompression = maxHeaders, true
	return t
}

// NewLocalTransport makes a transport that reaches only this machine, whatever a host's name stands for at the moment, and
// goes through no proxy. Its other requests fail with ErrElsewhere.
func NewLocalTransport() *http.Transport {
	t := NewTransport()
	t.Proxy = nil
	t.DialContext = (&net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().Unmap().IsLoopback() {
			return ErrElsewhere
		}
		return nil
	}}).DialContext
	return t
}

// NewClient makes a client that sends its requests through a transport, and gives up if there is no answer within
// this time. It follows no redirect: what is posted goes only where the operator says.
func NewClient(t http.RoundTripper, within time.Duration) *http.Client {
	return &http.Client{
		Transport: t, Timeout: within,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Problem says why a request of a client that NewClient made got no answer; within is the client's time limit, and
// redact removes secrets from a text. It leaves out the URL, which may have secrets, and anything that the other side
// has written, which may repeat what was posted.
func Problem(err error, within time.Duration, redact func(string) string) string {
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return fmt.Sprintf(textNoAnswer, within)
		}
		err = u.Err
	}
	_, network := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case network, untrusted, errors.Is(err, http.ErrSchemeMismatch):
		return First(redact(err.Error()), maxProblem)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return textHungUp
	}
	return textBadAnswer
}

// RetryAfter returns how long an answer with these headers asks to wait, counted from now, but at most most; 0 if it
// asks for nothing, or in a form that is not valid.
func RetryAfter(headers http.Header, now time.Time, most time.Duration) time.Duration {
	after := headers.Get("Retry-After")
	if seconds, err := strconv.ParseInt(after, 10, 64); err == nil {
		return time.Duration(min(max(0, seconds), int64(most/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(after); err == nil {
		return min(max(0, at.Sub(now)), most)
	}
	return 0
}

// First returns at most the first n bytes of a text, and no part of a character.
func First(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
