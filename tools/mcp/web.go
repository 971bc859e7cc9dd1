package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp/lines"
	"parley/tools/mcp/signin"
)

// An httpTransport carries messages to and from an MCP server on the network, over HTTP.
type httpTransport struct {
	*mcp.StreamableClientTransport
	requests *roundTripper
	over     chan struct{}
	once     sync.Once
}

// newHTTPTransport prepares the transport to a server. Nothing is sent before it is connected.
func (s *Servers) newHTTPTransport(one *server) *httpTransport {
	t := &roundTripper{headers: one.Headers, next: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: one.Timeout, MaxResponseHeaderBytes: 64 << 10,
		TLSHandshakeTimeout: s.cfg.Limits.Connect, IdleConnTimeout: s.cfg.Limits.Idle, MaxConnsPerHost: 16,
	}}
	if u, err := url.Parse(one.URL); err == nil {
		t.host, t.secure = u.Host, u.Scheme == "https"
	}
	if s.canSignIn(one) {
		t.signIn, t.login, t.log = s.cfg.SignIn, one.signinServer(), s.cfg.Log
	}
	return &httpTransport{
		StreamableClientTransport: &mcp.StreamableClientTransport{
			Endpoint: one.URL, HTTPClient: &http.Client{Transport: t, CheckRedirect: t.checkRedirect},
			// A call that was cut off is not sent again: nobody knows what it has done. These
			// retries are for listening for its answer, if the service has said from which
			// event on.
			MaxRetries: 3, MaxEventSize: lines.MaxLine,
		},
		requests: t, over: make(chan struct{}),
	}
}

func (s *httpTransport) gone() <-chan struct{} { return s.over }

func (s *httpTransport) received() int64 { return s.requests.answers.Load() }

// leaveTime bounds how long it may take to tell a service that a connection ends.
const leaveTime = 2 * time.Second

// stop ends the transport; its idle connections are closed after leaveTime.
func (s *httpTransport) stop() {
	s.once.Do(func() {
		time.AfterFunc(leaveTime, s.requests.next.CloseIdleConnections)
		close(s.over)
	})
}

// wantsLogin reports whether the service wants somebody to sign in.
func (s *httpTransport) wantsLogin() bool { return s.requests.wanted.Load() }

// failureReason says how the service has refused the last request; "" if it did not refuse it.
func (s *httpTransport) failureReason() string {
	if status := int(s.requests.refused.Load()); status != 0 {
		return fmt.Sprintf("it answered with HTTP %d %s", status, http.StatusText(status))
	}
	return ""
}

// A roundTripper sends the HTTP requests to a service: it adds the headers and the token to each
// request, and records how the service answers.
type roundTripper struct {
	headers map[string]string
	host    string
	secure  bool // the service's URL is one of HTTPS
	next    *http.Transport
	answers atomic.Int64
	refused atomic.Int32 // the status of the last request, if it was refused

	signIn *signin.Client // has the token of whoever has signed in; nil if nobody can
	login  signin.Server
	wanted atomic.Bool // the service wants somebody to sign in
	log    *slog.Logger
}

// maxAnswer bounds the length of an answer, in bytes, if it is no stream of events.
const maxAnswer = lines.MaxLine

// RoundTrip implements http.RoundTripper: it sends a request to the service's own host only.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.checkPlace(r.URL); err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	for name, value := range t.headers {
		r.Header.Set(name, value)
	}
	send := t.next.RoundTrip
	if t.signIn != nil {
		send = t.sendSigned
	}
	answer, err := send(r)
	if err != nil {
		return nil, err
	}
	t.answers.Add(1)
	callRecordOf(r.Context()).answered(r, answer.StatusCode, t.signIn != nil && saysLogin(answer))
	if r.Method == http.MethodPost {
		t.refused.Store(0)
		if answer.StatusCode >= http.StatusBadRequest {
			t.refused.Store(int32(answer.StatusCode))
		}
	}
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, nil
}

// checkPlace returns why the headers and tokens of the service must not be sent to an address;
// nil if they may.
func (t *roundTripper) checkPlace(u *url.URL) error {
	switch {
	case u.Host != t.host:
		return errOtherHost
	case t.secure && u.Scheme != "https":
		return errPlain
	}
	return nil
}

// The errors for a request that would have gone elsewhere than the service's URL says.
var (
	errOtherHost = errors.New("the service leads to another host than its URL names, which is not followed")
	errPlain     = errors.New("the service leads away from HTTPS, which is not followed: anybody on the way would see what is sent")
)

// checkRedirect lets a request follow a few redirects, if they stay on the same host.
func (t *roundTripper) checkRedirect(r *http.Request, via []*http.Request) error {
	if err := t.checkPlace(r.URL); err != nil {
		return err
	}
	if len(via) > 3 {
		return errors.New("the service redirects without end")
	}
	return context.Cause(r.Context())
}
