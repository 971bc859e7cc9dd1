// Package egress provides an HTTP proxy through which a command reaches the hosts that it may
// reach, and no others.
//
// The proxy accepts CONNECT and requests with an absolute URL. It refuses hosts that are
// not on its list with a 403 that names the host.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/tools/target"
)

// Check returns what is wrong with an entry in the list of allowed hosts; nil if nothing. An entry
// is HOST, or *.DOMAIN for everything below a domain, for the ports 80 and 443; or either of them
// with :PORT.
func Check(entry string) error {
	host, port := splitHostPort(entry)
	if strings.Contains(entry, "/") {
		return fmt.Errorf("%q isn't a host: write it without a scheme or path", entry)
	}
	name := strings.TrimPrefix(host, "*.")
	if _, err := netip.ParseAddr(name); err == nil && name == host {
		return checkPort(port)
	}
	if name == "" || len(name) > 253 || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '.' || r == '_')
	}) {
		return fmt.Errorf("%q isn't a host: write api.example.com, *.example.com or api.example.com:8443", entry)
	}
	return checkPort(port)
}

func checkPort(port string) error {
	if port == "" {
		return nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q isn't a port", port)
	}
	return nil
}

// splitHostPort splits an entry into its host and its port, which may be "". It removes
// brackets.
func splitHostPort(entry string) (host, port string) {
	entry = strings.ToLower(entry)
	if host, port, err := net.SplitHostPort(entry); err == nil {
		return strings.TrimSuffix(host, "."), port
	}
	return strings.TrimSuffix(strings.Trim(entry, "[]"), "."), ""
}

// A Proxy connects one command to the hosts that it may reach.
type Proxy struct {
	allowed   []string
	server    *http.Server
	dial      *net.Dialer
	transport *http.Transport
	closed    chan struct{} // closed to end the connections that tunnels have taken over
	close     func()

	mu      sync.Mutex
	refused []string
}

// maxRefused limits how many refused hosts are remembered.
const maxRefused = 20

// New makes a proxy that allows these hosts.
func New(allowed []string) *Proxy {
	p := &Proxy{allowed: allowed, dial: &net.Dialer{Timeout: 20 * time.Second}, closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	p.transport = &http.Transport{ // Proxy is nil: the proxy ignores the proxy settings in the environment
		DialContext: p.dialAllowed, ResponseHeaderTimeout: time.Minute, MaxResponseHeaderBytes: 256 << 10,
		DisableCompression: true, IdleConnTimeout: 10 * time.Second,
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: 20 * time.Second, MaxHeaderBytes: 256 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	return p
}

// Serve serves connections until the proxy is closed.
func (p *Proxy) Serve(l net.Listener) error {
	if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends every connection.
func (p *Proxy) Close() error {
	p.close()
	p.transport.CloseIdleConnections()
	return p.server.Close()
}

// Refused returns the hosts that the command asked for but may not reach, at most maxRefused.
func (p *Proxy) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// allows reports whether a host and port are on the list.
func (p *Proxy) allows(host, port string) bool {
	return slices.ContainsFunc(p.allowed, func(entry string) bool {
		name, at := splitHostPort(entry)
		if at != "" && at != port || at == "" && port != "80" && port != "443" {
			return false
		}
		domain, below := strings.CutPrefix(name, "*")
		return host == name || below && strings.HasSuffix(host, domain)
	})
}

// ServeHTTP serves one request of the command.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked, fallback := r.Host, "80"
	switch {
	case r.Method == http.MethodConnect:
		fallback = "443"
	case r.URL.Scheme == "http" && r.URL.Host != "":
		asked = r.URL.Host
	default:
		http.Error(w, "parley: this is a proxy: it takes CONNECT, and requests with an http:// URL", http.StatusBadRequest)
		return
	}
	host, port := splitHostPort(asked)
	if port == "" {
		port = fallback
	}
	if !p.allows(host, port) {
		p.refuse(w, net.JoinHostPort(host, port))
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(r.Context(), w, net.JoinHostPort(host, port))
		return
	}
	p.forward(w, r)
}

func (p *Proxy) refuse(w http.ResponseWriter, host string) {
	p.mu.Lock()
	if !slices.Contains(p.refused, host) && len(p.refused) < maxRefused {
		p.refused = append(p.refused, host)
	}
	p.mu.Unlock()
	http.Error(w, fmt.Sprintf("parley: the host %s may not be reached: the operator allows hosts in [sandbox] network", host), http.StatusForbidden)
}

// dialAllowed connects to an allowed host. It refuses a name that resolves to this machine, or to
// addresses that only a cloud's machines can reach, because the owner of an allowed name could
// point it anywhere.
func (p *Proxy) dialAllowed(ctx context.Context, network, address string) (net.Conn, error) {
	host, _ := splitHostPort(address)
	d := *p.dial
	if _, err := netip.ParseAddr(host); err != nil { // a name
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if target.IsOurs(to.Addr()) {
				return fmt.Errorf("%s leads to %s, which is refused: name the address itself to allow it", host, to.Addr())
			}
			return nil
		}
	}
	return d.DialContext(ctx, network, address)
}

// tunnel connects the command to a host, until one of them closes the connection.
func (p *Proxy) tunnel(ctx context.Context, w http.ResponseWriter, address string) {
	far, err := p.dialAllowed(ctx, "tcp", address)
	if err != nil {
		http.Error(w, "parley: "+err.Error(), http.StatusBadGateway)
		return
	}
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = far.Close() // nothing was sent
		http.Error(w, "parley: "+err.Error(), http.StatusInternalServerError)
		return
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-p.closed:
		case <-ended:
		}
		_ = near.Close() // each may be closed already
		_ = far.Close()
	}()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(near, far) // an error ends the tunnel, just like the end of the data
		halfClose(near)
	})
	_, _ = io.Copy(far, buffered)
	halfClose(far)
	back.Wait()
}

// halfClose tells the other end of a connection that nothing more will be sent, and leaves the
// other direction open.
func halfClose(c net.Conn) {
	if c, ok := c.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // it may be closed already
	}
}

// forward sends a plain request to its host, and returns the answer.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI = ""
	for _, name := range []string{"Connection", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive", "Te", "Trailer", "Upgrade"} {
		out.Header.Del(name)
	}
	out.Host = r.URL.Host // send the host the name that was allowed
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		http.Error(w, "parley: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }() // whoever wanted it has read it
	for name, values := range resp.Header {
		if name != "Connection" && name != "Keep-Alive" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body) // the command or the host may have closed the connection
}
