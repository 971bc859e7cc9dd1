package tunnel

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"parley/tools/nodes/mqtt"
)

// A Node is a node's end of connections to its server.
type Node struct {
	Place Place
	Name  string
	Key   ed25519.PrivateKey
	// Knows reports whether a public key is that of the server.
	Knows func(key ed25519.PublicKey) bool
}

// Dial opens a connection to the server. Its errors are ErrNoAnswer, ErrOtherServer and mqtt.ErrRefused; any other
// error means that the broker cannot be reached, or that the connection was ended.
func (n Node) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	config, err := tlsConfig(n.Key, func(key ed25519.PublicKey) error {
		if n.Knows(key) {
			return nil
		}
		return ErrOtherServer
	})
	if err != nil {
		return nil, err
	}
	s := newStream(newID(), "")
	gone := packet{kind: endPacket, id: s.id}.encode()
	broker, err := n.Place.Broker.Join(ctx, mqtt.Topics{
		Read: []string{n.Place.down(n.Name)}, Optional: []string{n.Place.server()}, Will: &mqtt.TopicMessage{Topic: n.Place.up(n.Name), Payload: gone},
		Handle: func(topic string, raw []byte) {
			p, ok := parsePacket(raw)
			isAll := ok && topic == n.Place.server() && p.kind == endPacket && p.id == id{}
			switch {
			case isAll:
				s.end(ErrEnded)
			case ok && p.id == s.id && topic == n.Place.down(n.Name):
				s.receive(p)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	c := &nodeConn{Conn: tls.Client(s, config)}
	c.serve(context.WithoutCancel(ctx), s, broker, n.Place.up(n.Name))
	if err := c.HandshakeContext(ctx); err != nil {
		_ = c.Close() // nothing was said
		if s.isSilent() && ctx.Err() != nil {
			err = ErrNoAnswer
		}
		return nil, fmt.Errorf("open a connection through the broker: %w", err)
	}
	return c, nil
}

// A nodeConn is a connection to the server. It has a broker connection of its own.
type nodeConn struct {
	*tls.Conn
	stop func()
}

// serve publishes written data, until Close is called.
func (c *nodeConn) serve(ctx context.Context, s *stream, broker *mqtt.Conn, topic string) {
	ctx, cancel := context.WithCancel(ctx)
	var publishing, watching sync.WaitGroup
	publishing.Go(func() {
		s.publish(func(raw []byte) error { return broker.Publish(ctx, mqtt.TopicMessage{Topic: topic, Payload: raw}) })
	})
	watching.Go(func() {
		<-broker.Lost()
		s.end(errors.Join(ErrEnded, broker.Err()))
		cancel()
	})
	c.stop = sync.OnceFunc(func() {
		_ = s.Close() // it never fails
		defer cancel()
		defer watching.Wait()
		defer broker.Close()
		defer time.AfterFunc(2*closeGrace, cancel).Stop() // don't wait for a broker that is stuck
		publishing.Wait()
	})
}

// Close implements net.Conn.
func (c *nodeConn) Close() error {
	err := c.Conn.Close()
	c.stop()
	return err
}

// isSilent reports whether nothing has arrived.
func (s *stream) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.receivedCount == 0
}

func newID() (of id) {
	_, _ = rand.Read(of[:]) // it never fails
	return of
}

// MatchesKey returns a function that reports whether a key is the known one.
func MatchesKey(known []byte) func(ed25519.PublicKey) bool {
	return func(key ed25519.PublicKey) bool { return bytes.Equal(key, known) }
}
