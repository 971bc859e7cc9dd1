package nodes_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"parley/agent/nodes"
	"parley/tools/nodes/wire"
)

// Over a connection through a relay that is not trusted, a node is accepted only if the connection proves the same key
// and has the same name: a person with another connection can't pass on a node's proof.
func TestALinkBelongsToItsConnection(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		p := f.process()
		d := p.join("pi", tool("exec_shell", false))
		own := d.key.Public().(ed25519.PublicKey)
		other, _, err := ed25519.GenerateKey(rand.Reader)
		must(t, err)
		for _, c := range []struct {
			peer   nodes.Peer
			reason string
		}{
			{nodes.Peer{Name: "pi", Key: own}, ""},
			{nodes.Peer{Name: "pi", Key: other}, wire.ReasonProof},
			{nodes.Peer{Name: "attic", Key: own}, wire.ReasonProof},
			{nodes.Peer{Name: "pi"}, wire.ReasonProof},
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.ServeLinkThrough(w, r, c.peer) }))
			conn, err := wire.Node{Server: server.URL, ServerKey: d.fleet, Name: d.name, Key: d.key, Offer: d.offer}.Dial(t.Context())
			refusal, refused := errors.AsType[*wire.Refusal](err)
			if (c.reason == "") != (err == nil) || refused && refusal.Reason != c.reason || err != nil && !refused {
				t.Errorf("as %s: %v", c.peer.Name, err)
			}
			if err == nil {
				conn.Close()
			}
			server.Close()
		}
	})
}
