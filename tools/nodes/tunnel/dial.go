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

// Dial opens a connection to the server. It returns ErrNobody, ErrOtherServer and mqtt.ErrRefused; after other errors the
// broker cannot be reached, or the connection was ended.
func (n Node) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, meetingTime)
	defer cancel()
	config, err := secured(n.Key, func(key ed25519.PublicKey) error {
		if n.Knows(key) {
			return nil
		}
		return ErrOtherServer
	})
	if err != nil {
		return nil, err
	}
	s := newStream(newID(), "")
	gone := packet{kind: endPacket, id: s.id}.wire()
	broker, err := n.Place.Broker.Join(ctx, mqtt.Topics{
		Read: []string{n.Place.down(n.Name)}, Also: []string{n.Place.server()}, Will: &mqtt.Word{Topic: n.Place.up(n.Name), Payload: gone},
		Hear: func(topic string, raw []byte) {
			p, ok := parse(raw)
			isAll := ok && topic == n.Place.server() && p.kind == endPacket && p.id == id{}
			switch {
			case isAll:
				s.end(ErrCut)
			case ok && p.id == s.id && topic == n.Place.down(n.Name):
				s.hear(p)
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
			err = ErrNobody
		}
		return nil, fmt.Errorf("open a connection through the broker: %w", err)
	}
	return c, nil
}

// A nodeConn is a connection to the server, which has a connection to the broker of its own.
type nodeConn struct {
	*tls.Conn
	stop func()
}

// serve publishes what is written, until Close is called.
func (c *nodeConn) serve(ctx context.Context, s *stream, broker *mqtt.Conn, topic string) {
	ctx, cancel := context.WithCancel(ctx)
	var publishing, watching sync.WaitGroup
	publishing.Go(func() {
		s.publish(func(raw []byte) error { return broker.Say(ctx, mqtt.Word{Topic: topic, Payload: raw}) })
	})
	watching.Go(func() {
		<-broker.Lost()
		s.end(errors.Join(ErrCut, broker.Err()))
		cancel()
	})
	c.stop = sync.OnceFunc(func() {
		_ = s.Close() // it never fails
		defer cancel()
		defer watching.Wait()
		defer broker.Close()
		defer time.AfterFunc(2*closeGrace, cancel).Stop() // a broker that stands still is not waited for
		publishing.Wait()
	})
}

// Close implements net.Conn.
func (c *nodeConn) Close() error {
	err := c.Conn.Close()
	c.stop()
	return err
}

// isSilent reports whether nothing has come.
func (s *stream) isSilent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.came == 0
}

func newID() (of id) {
	_, _ = rand.Read(of[:]) // it never fails
	return of
}

// Is returns a function that reports whether a key is that one.
func Is(known []byte) func(ed25519.PublicKey) bool {
	return func(key ed25519.PublicKey) bool { return bytes.Equal(key, known) }
}
