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
	over     chan struct{}
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
			// A call that was cut off is not sent again: nobody knows what it has done. These
			// retries are for listening for its answer, if the service has said from which event on
			// to continue.
			MaxRetries: 3, MaxEventSize: lines.MaxLine,
		},
		requests: t, over: make(chan struct{}),
	}
}

func (s *httpTransport) done() <-chan struct{} { return s.over }

func (s *httpTransport) received() int64 { return s.requests.answers.Load() }

// leaveTime limits how long telling a service that a connection ends may take.
const leaveTime = 2 * time.Second

// stop ends the transport; its idle connections are closed after leaveTime.
func (s *httpTransport) stop() {
	s.once.Do(func() {
		time.AfterFunc(leaveTime, s.requests.next.CloseIdleConnections)
		close(s.over)
	})
}

// wantsSignIn reports whether the service wants somebody to sign in.
func (s *httpTransport) wantsSignIn() bool { return s.requests.wanted.Load() }

// failureReason says how the service refused the last request; "" if it did not refuse it.
func (s *httpTransport) failureReason() string {
	if status := int(s.requests.refused.Load()); status != 0 {
		return fmt.Sprintf("it answered with HTTP %d %s", status, http.StatusText(status))
	}
	return ""
}
