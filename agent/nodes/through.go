package nodes

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"time"

	"parley/tools/nodes/wire"
)

// A Peer is the other end of a connection on which a node opens a link.
type Peer struct {
	Name string // the only node name that the link may have
	Key  []byte // the public key that the other end has proved to have
}

// maxPingAgeThrough is how long a ping may stay unanswered on a link through a relay that may hold back data. Together
// with the time between two pings, it is as long as a link may be silent.
const maxPingAgeThrough = time.Minute

// ServeLinkThrough serves a node that opens a link on a connection through a relay that is not trusted, until the link
// ends. It always answers the request. The connection must prove the same key as the link, so nobody can pass on a
// node's proof over another connection.
func (s *Service) ServeLinkThrough(w http.ResponseWriter, r *http.Request, p Peer) {
	timing := s.cfg.Timing
	timing.Answer = cmp.Or(timing.Answer, maxPingAgeThrough)
	s.serveLink(w, r, func(ctx context.Context, name string) ([]byte, error) {
		key, err := s.keyOf(ctx, name)
		if err == nil && (name != p.Name || !bytes.Equal(key, p.Key)) {
			return nil, &wire.Refusal{Reason: wire.ReasonProof, Text: textWrongKey}
		}
		return key, err
	}, timing)
}
