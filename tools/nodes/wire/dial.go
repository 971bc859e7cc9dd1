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
	// ErrAddress means that an address is none of a server.
	ErrAddress = errors.New("not an address such as https://parley.example.org")
	// ErrPlain means that what is sent to an address could be read and changed on the way.
	ErrPlain = errors.New("only https is safe between two machines")
	// ErrServer means that whoever answers does not have the key of the server that the node has joined.
	ErrServer = errors.New("this is not the server that the node has joined")
)

// A StatusError means that a server did not begin to speak the protocol: it answered with an HTTP status.
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
	// Open, if set, opens the connection on which the link is, instead of one to Server, which is only a name then. Whoever
	// accepts it serves HTTP there, and has Server.Accept answer every request.
	Open func(ctx context.Context) (net.Conn, error)
}

// Dial opens a link. Its errors are a *Refusal, ErrServer, a *StatusError, ErrAddress and ErrPlain; any other one says
// that the server cannot be reached now.
func (n Node) Dial(ctx context.Context) (*Conn, error) {
	step := n.Timing.orUsual().Step
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: step, Subprotocols: []string{Subprotocol}}
	address, err := n.open(&dialer)
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
	err = n.introduce(c)
	if !stop() || err != nil { // what closes the connection must not meet begin
		c.Close()
		return nil, cmp.Or(ctx.Err(), err)
	}
	c.begin()
	return c, nil
}

// linkPath is where a server answers links.
const linkPath = "v1/nodes/link"

// open returns the address of a link, and has the dialer use Open if that is set.
func (n Node) open(dialer *websocket.Dialer) (address string, err error) {
	if n.Open != nil {
		dialer.Proxy = nil
		dialer.NetDialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return n.Open(ctx) }
		return "ws://parley/" + linkPath, nil
	}
	at, err := Address(n.Server, linkPath)
	if err != nil {
		return "", err
	}
	at.Scheme = map[string]string{"http": "ws", "https": "wss"}[at.Scheme]
	return at.String(), nil
}

// introduce takes the steps up to the welcome.
func (n Node) introduce(c *Conn) error {
	nonce := newNonce()
	if err := c.Write(Frame{Type: Hello, Node: n.Name, Nonce: nonce}); err != nil {
		return err
	}
	challenge, err := c.answer(Challenge)
	if err != nil {
		return err
	}
	if len(challenge.Nonce) != NonceSize || !Verify(n.ServerKey, ServerText(n.Name, nonce, challenge.Nonce), challenge.Signature) {
		return ErrServer
	}
	signature := ed25519.Sign(n.Key, NodeText(n.Name, nonce, challenge.Nonce))
	if err := c.Write(Frame{Type: Proof, Signature: signature, Offer: &n.Offer}); err != nil {
		return err
	}
	_, err = c.answer(Welcome)
	return err
}

// answer waits for the server's next step; if it refuses, the error is a *Refusal.
func (c *Conn) answer(kind string) (Frame, error) {
	f, err := c.step(maxHello, kind, Refused)
	if err == nil && f.Type == Refused {
		return f, &Refusal{f.Reason, f.Text}
	}
	return f, err
}

// Address returns the address of a path on a server. The error is ErrAddress, or ErrPlain for one that is neither https
// nor on this machine.
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
		return nil, fmt.Errorf("%w: %q", ErrPlain, server)
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
