package tunnel

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"parley/tools/nodes/mqtt"
)

// What anybody may have a server do who may publish at the broker.
const (
	meetingTime = 15 * time.Second // to prove who it is
	maxMeeting  = 64               // how many are doing so at once
	maxMeetOne  = 4                // under one name
	maxStreams  = 4096             // connections altogether
	maxStrays   = 16               // packets of connections that are not known, which wait to be answered
)

// A Listener is the server's end of connections to nodes. It implements net.Listener; the connections that it accepts are of
// type *Conn.
type Listener struct {
	place  Place
	config *tls.Config
	ready  chan *Conn
	strays chan mqtt.Word

	ctx    context.Context //nolint:containedctx // of the listener itself: it ends with it
	cancel context.CancelFunc
	joined chan struct{} // closed once broker is set
	broker *mqtt.Conn

	mu      sync.Mutex
	closed  bool
	streams map[id]*stream
	meeting map[string]int // how many prove at this moment who they are, by name
	running sync.WaitGroup // it grows only under mu, while closed is false
}

// Listen connects to the broker, and has nodes know that a server is there. The listener is of no use anymore once the
// connection is lost.
func (p Place) Listen(ctx context.Context, key ed25519.PrivateKey) (*Listener, error) {
	config, err := secured(key, func(ed25519.PublicKey) error { return nil }) // who may do what with a connection is decided later
	if err != nil {
		return nil, err
	}
	l := &Listener{
		place: p, config: config, ready: make(chan *Conn), strays: make(chan mqtt.Word, maxStrays), joined: make(chan struct{}),
		streams: map[id]*stream{}, meeting: map[string]int{},
	}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	all := mqtt.Word{Topic: p.server(), Payload: packet{kind: endPacket}.wire()}
	l.broker, err = p.Broker.Join(ctx, mqtt.Topics{Read: []string{p.up("+")}, Hear: l.hear, Will: &all})
	close(l.joined)
	if err != nil {
		l.stop()
		return nil, err
	}
	l.running.Go(l.answerStrays)
	l.running.Go(func() {
		<-l.broker.Lost()
		l.end()
	})
	if err := l.broker.Say(ctx, all); err != nil {
		_ = l.Close() // nothing was accepted
		return nil, err
	}
	return l, nil
}

// Check connects to the broker as Listen does, and closes the connection: no node hears of it.
func (p Place) Check(ctx context.Context) error {
	c, err := p.Broker.Join(ctx, mqtt.Topics{Read: []string{p.up("+")}, Hear: func(string, []byte) {}})
	if err == nil {
		c.Close()
	}
	return err
}

// hear takes what is said at the broker.
func (l *Listener) hear(topic string, raw []byte) {
	p, ok := parse(raw)
	node, named := l.place.nodeOf(topic)
	if !ok || !named {
		return
	}
	l.mu.Lock()
	s := l.streams[p.id]
	if s == nil && p.kind == contentPacket && p.number == 1 {
		s = l.begin(p.id, node)
	}
	l.mu.Unlock()
	switch {
	case s != nil && s.node == node:
		s.hear(p)
	case s == nil && p.kind != endPacket:
		select {
		case l.strays <- mqtt.Word{Topic: l.place.down(node), Payload: packet{kind: endPacket, id: p.id}.wire()}:
		default: // the node sees for itself that nobody answers
		}
	}
}

// begin begins a connection; nil if there are too many. The caller holds mu.
func (l *Listener) begin(of id, node string) *stream {
	many := 0
	for _, n := range l.meeting {
		many += n
	}
	if l.closed || many >= maxMeeting || l.meeting[node] >= maxMeetOne || len(l.streams) >= maxStreams {
		return nil
	}
	s := newStream(of, node)
	l.streams[of] = s
	l.meeting[node]++
	l.running.Go(func() {
		s.publish(func(raw []byte) error { return l.say(mqtt.Word{Topic: l.place.down(node), Payload: raw}) })
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.streams, of)
	})
	l.running.Go(func() { l.meet(s) })
	return s
}

// say publishes something.
func (l *Listener) say(w mqtt.Word) error {
	<-l.joined
	if l.broker == nil {
		return net.ErrClosed
	}
	return l.broker.Say(l.ctx, w)
}

// meet has a node prove that it has a key, and hands the connection over.
func (l *Listener) meet(s *stream) {
	c := &Conn{Conn: tls.Server(s, l.config), node: s.node}
	ctx, cancel := context.WithTimeout(l.ctx, meetingTime)
	err := c.HandshakeContext(ctx)
	cancel()
	if err == nil {
		c.key, err = keyOf(c.ConnectionState())
	}
	l.mu.Lock()
	if l.meeting[s.node]--; l.meeting[s.node] == 0 {
		delete(l.meeting, s.node)
	}
	l.mu.Unlock()
	if err == nil {
		select {
		case l.ready <- c:
			return
		case <-l.ctx.Done():
		}
	}
	_ = c.Close() // nobody has it
}

// answerStrays tells nodes that their connections are over which this server does not know.
func (l *Listener) answerStrays() {
	for {
		select {
		case w := <-l.strays:
			if l.say(w) != nil {
				return
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// Accept implements net.Listener. It waits for a node that has proved that it has a key.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Lost returns a channel that is closed once the connection to the broker is lost, or the listener closed.
func (l *Listener) Lost() <-chan struct{} { return l.ctx.Done() }

// Err returns why the connection to the broker is lost; nil if it is not.
func (l *Listener) Err() error { return l.broker.Err() }

// end ends all connections.
func (l *Listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, s := range l.streams {
		s.end(ErrCut)
	}
	l.cancel()
}

// stop ends all, and waits for it.
func (l *Listener) stop() {
	l.end()
	l.running.Wait()
}

// Close implements net.Listener. It ends the connections that were accepted, too, and nodes hear so.
func (l *Listener) Close() error {
	ctx, cancel := context.WithTimeout(l.ctx, closeGrace)
	_ = l.broker.Say(ctx, mqtt.Word{Topic: l.place.server(), Payload: packet{kind: endPacket}.wire()}) // else they see for themselves
	cancel()
	l.broker.Close()
	l.stop()
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return address{} }

// A Conn is the server's end of a connection to a node.
type Conn struct {
	*tls.Conn
	node string
	key  ed25519.PublicKey
}

// Node returns the name under which the other end speaks at the broker. Nobody has proved that it is its own.
func (c *Conn) Node() string { return c.node }

// Key returns the key that the other end has proved to have.
func (c *Conn) Key() ed25519.PublicKey { return c.key }

var _ net.Listener = (*Listener)(nil)
