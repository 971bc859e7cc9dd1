package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	stored "parley/sessions/nodes"
	"parley/tools/nodes"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

// Targets stores the nodes that the settings name as ssh:// targets.
type Targets interface {
	// Admit records a target's offer, all of which is accepted, and the key of its home, made with nodes.TargetKey. It
	// returns nodes.ErrTaken if the name belongs to a node that is not a target.
	Admit(ctx context.Context, name string, key []byte, offer, accepted json.RawMessage, now time.Time) error
}

// A Target is a node that the settings name, with a connection to it. The node is trusted to be the one at the other
// end of the connection.
type Target struct {
	Name    string
	Key     []byte // the public key of its home, as the connection's other end reported it
	Conn    net.Conn
	Targets Targets
	// Tools are the tools that agents may use on it, if it offers them, with the descriptions and arguments that agents
	// see. The target's own descriptions reach no model, because nobody has checked them.
	Tools []nodes.Tool
}

// Serve serves the link that the target opens on its connection, as one of the links of a Service, until the link or
// ctx ends. Then it closes the connection. It returns an error if there was no link.
func (t Target) Serve(ctx context.Context, s *Service) error {
	stop := context.AfterFunc(ctx, func() { _ = t.Conn.Close() })
	defer stop()
	defer func() { _ = t.Conn.Close() }() // an error loses nothing that isn't lost already
	refused := errors.New("the other end has begun no link")
	serveOneConnection(t.Conn, func(w http.ResponseWriter, r *http.Request) {
		if !s.countLink() {
			http.Error(w, textStopping, http.StatusServiceUnavailable)
			return
		}
		defer s.serving.Done()
		guest := s.authenticate(w, r, func(_ context.Context, name string) ([]byte, error) {
			if name != t.Name {
				return nil, &wire.Refusal{Reason: wire.ReasonUnknown, Text: textUnknown}
			}
			return t.Key, nil
		}, s.cfg.Timing)
		if guest == nil {
			return
		}
		if refused = t.admit(r.Context(), s, guest); refused != nil {
			guest.Refuse(wire.ReasonBusy, textBusy)
			return
		}
		s.serve(context.WithoutCancel(r.Context()), guest)
	})
	if ctx.Err() != nil {
		return nil
	}
	return refused
}

// offeredTools returns the tools that the target may have and offers.
func (t Target) offeredTools(all []nodes.Tool) []nodes.Tool {
	has := []nodes.Tool{}
	for _, one := range t.Tools {
		if i := slices.IndexFunc(all, func(o nodes.Tool) bool { return o.Name == one.Name }); i >= 0 {
			one.Pure = one.Pure && all[i].Pure
			has = append(has, one)
		}
	}
	return has
}

// admit records the target and the allowed part of its offer.
func (t Target) admit(ctx context.Context, s *Service, guest *wire.Guest) error {
	guest.Offer.Tools = t.offeredTools(guest.Offer.Tools)
	offer, err := plainjson.Marshal(guest.Offer)
	if err != nil {
		return fmt.Errorf("encode an offer: %w", err)
	}
	accepted, _, err := acceptance(guest.Offer.Tools)
	if err != nil {
		return err
	}
	if err := t.Targets.Admit(ctx, t.Name, stored.TargetKey(t.Key), offer, accepted, time.Now()); err != nil {
		return err
	}
	return s.Load(ctx) // nobody has to accept the target, so agents get its tools at once
}

// acceptance returns the record that an owner, or the settings, accept tools, and the names of the tools.
func acceptance(offered []nodes.Tool) (raw json.RawMessage, names []string, err error) {
	accepted, names := map[string]string{}, []string{}
	for _, t := range offered {
		accepted[t.Name] = t.Digest()
		names = append(names, t.Name)
	}
	raw, err = plainjson.Marshal(accepted)
	return raw, names, err
}

// serveOneConnection serves HTTP on one connection, until it is closed, or until a request that has taken it over is
// answered.
func serveOneConnection(conn net.Conn, serve http.HandlerFunc) {
	l := &oneListener{conn: conn, closed: make(chan struct{})}
	server := http.Server{
		ReadHeaderTimeout: linkRequestTimeout,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // errors of a link are logged elsewhere
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { _ = l.Close() }()
			serve(w, r)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				_ = l.Close()
			}
		},
	}
	_ = server.Serve(l) // it ends with the listener
	_ = server.Close()  // the connection is closed in any case
}

// linkRequestTimeout is how long the other end of a connection may take to ask for a link.
const linkRequestTimeout = 30 * time.Second

// A oneListener accepts one connection.
type oneListener struct {
	mu      sync.Mutex
	conn    net.Conn // nil once it was accepted
	closing sync.Once
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *oneListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *oneListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *oneListener) Addr() net.Addr { return &net.UnixAddr{Name: "target", Net: "unix"} }
