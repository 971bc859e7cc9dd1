package wire

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/gorilla/websocket"

	"parley/tools/nodes"
)

// A Refusal says that a server does not accept a link, for one of the reasons in wire.go.
type Refusal struct{ Reason, Text string }

// Error says why the link was refused.
func (r *Refusal) Error() string { return "the link is refused (" + r.Reason + "): " + r.Text }

// A Server is the server's end of links.
type Server struct {
	Key ed25519.PrivateKey
	// Lookup returns the public key of a node that may open a link. The node is told the text of a *Refusal; after any
	// other error, it is told to try again.
	Lookup func(ctx context.Context, node string) ([]byte, error)
	Timing Timing
	// Buffers are shared by links for writing, because most links are idle. nil gives each link its own.
	Buffers *sync.Pool
}

// A Guest is a node that has proved its identity, and waits for Welcome or Refuse.
type Guest struct {
	Name  string
	Offer nodes.Offer // within the bounds: see CheckOffer
	conn  *Conn
}

// Limits, in bytes, of what a node may send before its identity is proved.
const (
	maxHello = 4 << 10
	maxProof = nodes.MaxOffer + 4<<10
)

// Accept upgrades a request to a link, and lets the node prove its identity. If it returns an error, the request is
// answered and the connection is closed; a *Refusal means that the node was told. It takes at most a few times
// Timing.Step.
func (s Server) Accept(w http.ResponseWriter, r *http.Request) (*Guest, error) {
	upgrader := websocket.Upgrader{HandshakeTimeout: s.Timing.withDefaults().Step, Subprotocols: []string{Subprotocol}}
	if s.Buffers != nil {
		upgrader.WriteBufferPool = s.Buffers
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, fmt.Errorf("upgrade to a link: %w", err) // the upgrade has answered the request
	}
	c := newConn(ws, s.Timing)
	stop := context.AfterFunc(r.Context(), c.Close)
	g, err := s.handshake(r.Context(), c)
	if !stop() && err == nil { // closing the connection must not happen during begin
		err = r.Context().Err()
	}
	if err == nil {
		return g, nil
	}
	defer c.Close()
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		c.refuse(refusal)
	}
	return nil, err
}

// handshake takes the steps up to the proof.
func (s Server) handshake(ctx context.Context, c *Conn) (*Guest, error) {
	hello, err := c.readStep(maxHello, Hello)
	if err != nil {
		return nil, err
	}
	if len(hello.Nonce) != NonceSize {
		return nil, errors.New("the node's nonce has a wrong length")
	}
	looking, cancel := context.WithTimeout(ctx, c.timing.Step)
	key, err := s.Lookup(looking, hello.Node)
	cancel()
	if _, refused := errors.AsType[*Refusal](err); err != nil && !refused {
		c.refuse(&Refusal{ReasonBusy, textBusy})
	}
	if err != nil {
		return nil, err
	}
	nonce := newNonce()
	signature := ed25519.Sign(s.Key, ServerText(hello.Node, hello.Nonce, nonce))
	if err := c.Write(Frame{Type: Challenge, Nonce: nonce, Signature: signature}); err != nil {
		return nil, err
	}
	proof, err := c.readStep(maxProof, Proof)
	if err != nil {
		return nil, err
	}
	if !Verify(key, NodeText(hello.Node, hello.Nonce, nonce), proof.Signature) {
		return nil, &Refusal{ReasonProof, textProof}
	}
	if proof.Offer == nil {
		return nil, &Refusal{ReasonOffer, "there is no offer"}
	}
	if err := CheckOffer(*proof.Offer); err != nil {
		return nil, &Refusal{ReasonOffer, err.Error()}
	}
	return &Guest{Name: hello.Node, Offer: *proof.Offer, conn: c}, nil
}

// Welcome accepts the node, and returns the link.
func (g *Guest) Welcome() (*Conn, error) {
	if err := g.conn.Write(Frame{Type: Welcome}); err != nil {
		g.conn.Close()
		return nil, err
	}
	g.conn.begin()
	return g.conn, nil
}

// Refuse tells the node that it is not accepted, and closes the connection.
func (g *Guest) Refuse(reason, text string) {
	g.conn.refuse(&Refusal{reason, text})
	g.conn.Close()
}

// refuse tells the node why it is refused. If that fails, the node sees only that the connection ends.
func (c *Conn) refuse(r *Refusal) {
	_ = c.Write(Frame{Type: Refused, Reason: r.Reason, Text: r.Text})
}

func newNonce() []byte {
	nonce := make([]byte, NonceSize)
	_, _ = rand.Read(nonce) // it never fails
	return nonce
}
