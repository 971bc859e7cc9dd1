package wire

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/gorilla/websocket"

	"parley/tools/nodes"
)

// What can be wrong with a server.
var (
	// ErrAddress is returned for an address that can't be a server's.
	ErrAddress = errors.New("not an address such as https://parley.example.org")
	// ErrNotHTTPS is returned for an address to which data could be read and changed on the way.
	ErrNotHTTPS = errors.New("only https is safe between two machines")
	// ErrOtherServer is returned if the other end does not have the key of the server that the node has joined.
	ErrOtherServer = errors.New("this is not the server that the node has joined")
)

// A StatusError is returned if a server answered with an HTTP status instead of the protocol.
type StatusError struct{ Code int }

// Error names the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered with HTTP status %d %s", e.Code, http.StatusText(e.Code))
}

// A Node is the node's end of a link.
type Node struct {
	Server    string // its address, such as https://parley.example.org
	ServerKey []byte // its public key
	Name      string // of the node
	Key       ed25519.PrivateKey
	Offer     nodes.Offer
	Timing    Timing
	// OpenConn, if set, opens the connection for the link, instead of one to Server, which is then only a name. The
	// other end serves HTTP on it, and answers every request with Server.Accept.
	OpenConn func(ctx context.Context) (net.Conn, error)
}

// Dial opens a link. Its errors are a *Refusal, ErrOtherServer, a *StatusError, ErrAddress and ErrNotHTTPS; any other
// error means that the server cannot be reached now.
func (n Node) Dial(ctx context.Context) (*Conn, error) {
	step := n.Timing.withDefaults().Step
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: step, Subprotocols: []string{Subprotocol}}
	address, err := n.linkAddress(&dialer)
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithTimeout(ctx, step)
	defer cancel()
	ws, response, err := dialer.DialContext(opening, address, nil)
	if response != nil && err != nil {
		_ = response.Body.Close() // the status says enough
		return nil, &StatusError{response.StatusCode}
	}
	if err != nil {
		return nil, fmt.Errorf("open a link: %w", err)
	}
	c := newConn(ws, n.Timing)
	stop := context.AfterFunc(ctx, c.Close)
	err = n.handshake(c)
	if !stop() || err != nil { // what closes the connection must not meet begin
		c.Close()
		return nil, cmp.Or(ctx.Err(), err)
	}
	c.begin()
	return c, nil
}

// linkPath is the path of links on a server.
const linkPath = "v1/nodes/link"

// linkAddress returns the address of a link, and makes the dialer use OpenConn if that is set.
func (n Node) linkAddress(dialer *websocket.Dialer) (address string, err error) {
	if n.OpenConn != nil {
		dialer.Proxy = nil
		dialer.NetDialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return n.OpenConn(ctx) }
		return "ws://parley/" + linkPath, nil
	}
	at, err := Address(n.Server, linkPath)
	if err != nil {
		return "", err
	}
	at.Scheme = map[string]string{"http": "ws", "https": "wss"}[at.Scheme]
	return at.String(), nil
}

// handshake takes the steps up to the welcome.
func (n Node) handshake(c *Conn) error {
	nonce := newNonce()
	if err := c.Write(Frame{Type: Hello, Node: n.Name, Nonce: nonce}); err != nil {
		return err
	}
	challenge, err := c.readAnswer(Challenge)
	if err != nil {
		return err
	}
	if len(challenge.Nonce) != NonceSize || !Verify(n.ServerKey, ServerText(n.Name, nonce, challenge.Nonce), challenge.Signature) {
		return ErrOtherServer
	}
	signature := ed25519.Sign(n.Key, NodeText(n.Name, nonce, challenge.Nonce))
	if err := c.Write(Frame{Type: Proof, Signature: signature, Offer: &n.Offer}); err != nil {
		return err
	}
	_, err = c.readAnswer(Welcome)
	return err
}

// readAnswer waits for the server's next step; if the server refuses, the error is a *Refusal.
func (c *Conn) readAnswer(kind string) (Frame, error) {
	f, err := c.readStep(maxHello, kind, Refused)
	if err == nil && f.Type == Refused {
		return f, &Refusal{f.Reason, f.Text}
	}
	return f, err
}

// Address returns the address of a path on a server. Its errors are ErrAddress, and ErrNotHTTPS for an address that
// neither uses https nor is on this machine.
func Address(server, path string) (*url.URL, error) {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%w: %q", ErrAddress, server)
	}
	switch u.Scheme {
	case "https", "http":
	case "wss", "ws":
		u.Scheme = map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	default:
		return nil, fmt.Errorf("%w: %q", ErrAddress, server)
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, fmt.Errorf("%w: %q", ErrNotHTTPS, server)
	}
	return u.JoinPath(path), nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
