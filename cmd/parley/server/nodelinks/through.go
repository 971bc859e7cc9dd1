package nodelinks

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/agent/nodes"
	"parley/cmd/parley/api/exchange"
	"parley/tools/nodes/mqtt"
	"parley/tools/nodes/tunnel"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

const (
	minRelisten = time.Second
	maxRelisten = 30 * time.Second
	headerTime  = 15 * time.Second // the time in which a node must ask for a link
)

// listenAgain accepts links through the broker whenever the broker is reachable, until ctx is done.
func (n *Nodes) listenAgain(ctx context.Context, at tunnel.Place) {
	level := slog.LevelWarn
	for wait := minRelisten; ctx.Err() == nil; {
		began := time.Now()
		err := n.listen(ctx, at)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) >= stableAfter {
			wait = minRelisten
		}
		n.cfg.Log.Log(ctx, level, "no node reaches this server through the MQTT broker; trying again", slog.Any("error", err))
		level = slog.LevelWarn
		if errors.Is(err, mqtt.ErrRefused) { // until somebody changes the broker, and perhaps only edge agents are wanted
			level = slog.LevelDebug
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, maxRelisten)
	}
}

// listen accepts links through the broker until ctx is done or the connection to the broker is lost.
func (n *Nodes) listen(ctx context.Context, at tunnel.Place) error {
	key, err := n.key(ctx)
	if err != nil {
		return err
	}
	l, err := at.Listen(ctx, key)
	if err != nil {
		return err
	}
	n.cfg.Log.Info("nodes reach this server through the MQTT broker")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/nodes/link", n.linkThrough) // the Service waits for links
	mux.HandleFunc("POST /"+wire.JoinPath, n.joinThrough)
	server := http.Server{
		// Anybody at the broker can open connections that never become links, and each takes the place of a link. So
		// they end soon.
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, IdleTimeout: headerTime, ErrorLog: slog.NewLogLogger(n.cfg.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, tunnelKey{}, c) },
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // serving ends with the listener
	select {
	case <-ctx.Done():
	case <-l.Lost():
	}
	err = fmt.Errorf("the connection to the MQTT broker is lost: %w", l.Err())
	_ = l.Close() // this ends all its connections
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), headerTime)
	defer cancel()
	_ = errors.Join(server.Shutdown(ending), server.Close()) // this waits for devices that are joining
	serving.Wait()
	return err
}

// tunnelKey is the context key for the connection of a request that came through the broker.
type tunnelKey struct{}

// linkThrough serves a node that opens a link through the broker, until the link ends.
func (n *Nodes) linkThrough(w http.ResponseWriter, r *http.Request) {
	if c, ok := r.Context().Value(tunnelKey{}).(*tunnel.Conn); ok {
		n.ServeLinkThrough(w, r, nodes.Peer{Name: c.Node(), Key: c.Key()})
	}
}

// brokerCode returns the code with which a device can join through the broker. The code contains a mark of the server's
// key, by which the device recognizes the server.
func (n *Nodes) brokerCode(ctx context.Context, code string) (string, error) {
	key, err := n.key(ctx)
	if err != nil {
		return "", err
	}
	return tunnel.CodeFor(code, key.Public().(ed25519.PublicKey)), nil //nolint:forcetypeassert // documented to be of this type
}

const maxJoinBytes = 4 << 10 // the most bytes of a request to join

// joinThrough serves a device that joins through the broker. The device has proved that it has the key with which it
// joins.
func (n *Nodes) joinThrough(w http.ResponseWriter, r *http.Request) {
	joined, err := n.admitThrough(w, r)
	status, answer := http.StatusOK, any(joined)
	if err != nil {
		refused, ok := errors.AsType[*exchange.Refusal](err)
		if !ok {
			n.cfg.Log.Warn("a device cannot join", slog.Any("error", err))
			refused = &exchange.Refusal{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: textLater}
		}
		status, answer = refused.Status, map[string]any{"error": map[string]string{"code": refused.Code, "message": refused.Message}}
	}
	n.cfg.Log.Info("a device asks to join through the MQTT broker", slog.Int("status", status))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = plainjson.NewEncoder(w).Encode(answer) // if this fails, the device asks again
}

// admitThrough lets a device join that asks through the broker.
func (n *Nodes) admitThrough(w http.ResponseWriter, r *http.Request) (joined wire.JoinAnswer, err error) {
	if !n.tries.Allow() {
		return joined, tooMany()
	}
	var asked wire.JoinRequest
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, maxJoinBytes)).Decode(&asked) != nil {
		return joined, exchange.BadRequest("bad_request", textNoRequest)
	}
	c, ok := r.Context().Value(tunnelKey{}).(*tunnel.Conn)
	if !ok || c.Node() != asked.Name || !bytes.Equal(c.Key(), asked.Key) {
		return joined, exchange.Unprocessable(wire.RefusedForm, textOtherDevice)
	}
	return n.admit(r.Context(), asked)
}
