package mcp

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp/lines"
)

// An httpTransport carries messages to and from an MCP server on the network, over HTTP.
type httpTransport struct {
	*mcp.StreamableClientTransport
	requests *roundTripper
	ended    chan struct{}
	once     sync.Once
}

// newHTTPTransport prepares the transport to a server. It sends nothing until it is connected.
func (s *Servers) newHTTPTransport(one *server) *httpTransport {
	t := &roundTripper{headers: one.Headers, next: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: one.Timeout, MaxResponseHeaderBytes: 64 << 10,
		TLSHandshakeTimeout: s.cfg.Limits.Connect, IdleConnTimeout: s.cfg.Limits.Idle, MaxConnsPerHost: 16,
	}}
	if u, err := url.Parse(one.URL); err == nil {
		t.host, t.secure = u.Host, u.Scheme == "https"
	}
	if s.canSignIn(one) {
		t.signIn, t.server, t.log = s.cfg.SignIn, one.signinServer(), s.cfg.Log
	}
	return &httpTransport{
		StreamableClientTransport: &mcp.StreamableClientTransport{
			Endpoint: one.URL, HTTPClient: &http.Client{Transport: t, CheckRedirect: t.checkRedirect},
			// A call that was cut off is not sent again, because it may have had its effect. These retries only
			// reconnect to wait for its answer, if the service has said from which event on to continue.
			MaxRetries: 3, MaxEventSize: lines.MaxLine,
		},
		requests: t, ended: make(chan struct{}),
	}
}

func (s *httpTransport) done() <-chan struct{} { return s.ended }

func (s *httpTransport) received() int64 { return s.requests.answers.Load() }

// closeTimeout limits how long telling a service that a connection ends may take.
const closeTimeout = 2 * time.Second

// stop ends the transport; its idle connections are closed after closeTimeout.
func (s *httpTransport) stop() {
	s.once.Do(func() {
		time.AfterFunc(closeTimeout, s.requests.next.CloseIdleConnections)
		close(s.ended)
	})
}

// wantsSignIn reports whether the service wants somebody to sign in.
func (s *httpTransport) wantsSignIn() bool { return s.requests.signInWanted.Load() }

// failureReason says how the service refused the last request; "" if it did not refuse it.
func (s *httpTransport) failureReason() string {
	if status := int(s.requests.refusedStatus.Load()); status != 0 {
		return fmt.Sprintf("it answered with HTTP %d %s", status, http.StatusText(status))
	}
	return ""
}
