package nodes

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"time"

	"parley/tools/nodes/wire"
)

// A Peer is the other end of a connection that a link is opened on.
type Peer struct {
	Name string // the only node that it may be
	Key  []byte // the public key that it has proved to have
}

// answerThrough is how old a ping may be that was not answered over a link through somebody who may hold back what is said:
// together with the time between two pings it is as long as a link may be silent.
const answerThrough = time.Minute

// ServeLinkThrough serves a node that opens a link on a connection through somebody who is not trusted, until the link
// ends. It answers the request in any case. The connection proves the same key as the link, so nobody can pass on the proof
// of a node over a connection of its own.
func (s *Service) ServeLinkThrough(w http.ResponseWriter, r *http.Request, p Peer) {
	timing := s.cfg.Timing
	timing.Answer = cmp.Or(timing.Answer, answerThrough)
	s.serveLink(w, r, func(ctx context.Context, name string) ([]byte, error) {
		key, err := s.keyOf(ctx, name)
		if err == nil && (name != p.Name || !bytes.Equal(key, p.Key)) {
			return nil, &wire.Refusal{Reason: wire.ReasonProof, Text: textOtherEnd}
		}
		return key, err
	}, timing)
}
