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

// Limits for anybody who may publish at the broker.
const (
	proofTimeout      = 15 * time.Second // how long a node may take to prove its identity
	maxProving        = 64               // how many nodes may do so at once
	maxProvingPerName = 4                // how many of them under one name
	maxStreams        = 4096             // all connections together
	maxUnknownPackets = 16               // packets of unknown connections that wait for an answer
)

// A Listener is the server's end of connections to nodes. It implements net.Listener; the connections that it accepts are of
// type *Conn.
type Listener struct {
	place          Place
	config         *tls.Config
	ready          chan *Conn
	unknownPackets chan mqtt.TopicMessage

	ctx    context.Context //nolint:containedctx // the listener's own context, which ends with it
	cancel context.CancelFunc
	joined chan struct{} // closed once broker is set
	broker *mqtt.Conn

	mu            sync.Mutex
	closed        bool
	streams       map[id]*stream
	provingByName map[string]int // by name: how many nodes are proving their identity
	running       sync.WaitGroup // grows only under mu, while closed is false
}

// Listen connects to the broker, and announces to nodes that a server is there. The listener is useless once the
// connection is lost.
func (p Place) Listen(ctx context.Context, key ed25519.PrivateKey) (*Listener, error) {
	config, err := tlsConfig(key, func(ed25519.PublicKey) error { return nil }) // what a key may do is decided later
	if err != nil {
		return nil, err
	}
	l := &Listener{
		place: p, config: config, ready: make(chan *Conn), unknownPackets: make(chan mqtt.TopicMessage, maxUnknownPackets), joined: make(chan struct{}),
		streams: map[id]*stream{}, provingByName: map[string]int{},
	}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	all := mqtt.TopicMessage{Topic: p.server(), Payload: packet{kind: endPacket}.encode()}
	l.broker, err = p.Broker.Join(ctx, mqtt.Topics{Read: []string{p.up("+")}, Handle: l.handle, Will: &all})
	close(l.joined)
	if err != nil {
		l.stop()
		return nil, err
	}
	l.running.Go(l.answerUnknown)
	l.running.Go(func() {
		<-l.broker.Lost()
		l.endAll()
	})
	if err := l.broker.Publish(ctx, all); err != nil {
		_ = l.Close() // nothing was accepted
		return nil, err
	}
	return l, nil
}

// Check connects to the broker as Listen does, and closes the connection, without any announcement to nodes.
func (p Place) Check(ctx context.Context) error {
	c, err := p.Broker.Join(ctx, mqtt.Topics{Read: []string{p.up("+")}, Handle: func(string, []byte) {}})
	if err == nil {
		c.Close()
	}
	return err
}

// handle handles a message from the broker.
func (l *Listener) handle(topic string, raw []byte) {
	p, ok := parsePacket(raw)
	node, named := l.place.nodeOf(topic)
	if !ok || !named {
		return
	}
	l.mu.Lock()
	s := l.streams[p.id]
	if s == nil && p.kind == contentPacket && p.number == 1 {
		s = l.addStream(p.id, node)
	}
	l.mu.Unlock()
	switch {
	case s != nil && s.node == node:
		s.receive(p)
	case s == nil && p.kind != endPacket:
		select {
		case l.unknownPackets <- mqtt.TopicMessage{Topic: l.place.down(node), Payload: packet{kind: endPacket, id: p.id}.encode()}:
		default: // the node notices that nobody answers
		}
	}
}

// addStream adds a connection; nil if there are too many. The caller holds mu.
func (l *Listener) addStream(of id, node string) *stream {
	many := 0
	for _, n := range l.provingByName {
		many += n
	}
	if l.closed || many >= maxProving || l.provingByName[node] >= maxProvingPerName || len(l.streams) >= maxStreams {
		return nil
	}
	s := newStream(of, node)
	l.streams[of] = s
	l.provingByName[node]++
	l.running.Go(func() {
		s.publish(func(raw []byte) error { return l.publish(mqtt.TopicMessage{Topic: l.place.down(node), Payload: raw}) })
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.streams, of)
	})
	l.running.Go(func() { l.authenticate(s) })
	return s
}

// publish publishes a message.
func (l *Listener) publish(w mqtt.TopicMessage) error {
	<-l.joined
	if l.broker == nil {
		return net.ErrClosed
	}
	return l.broker.Publish(l.ctx, w)
}

// authenticate lets a node prove that it has a key, and hands the connection to Accept.
func (l *Listener) authenticate(s *stream) {
	c := &Conn{Conn: tls.Server(s, l.config), node: s.node}
	ctx, cancel := context.WithTimeout(l.ctx, proofTimeout)
	err := c.HandshakeContext(ctx)
	cancel()
	if err == nil {
		c.key, err = keyOf(c.ConnectionState())
	}
	l.mu.Lock()
	if l.provingByName[s.node]--; l.provingByName[s.node] == 0 {
		delete(l.provingByName, s.node)
	}
	l.mu.Unlock()
	if err == nil {
		select {
		case l.ready <- c:
			return
		case <-l.ctx.Done():
		}
	}
	_ = c.Close() // nobody uses the connection
}

// answerUnknown answers packets of connections that this server doesn't know: it tells the node that the connection
// has ended.
func (l *Listener) answerUnknown() {
	for {
		select {
		case w := <-l.unknownPackets:
			if l.publish(w) != nil {
				return
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// Accept implements net.Listener. It waits for a node that has proved its key.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Lost returns a channel that is closed when the connection to the broker is lost, or the listener is closed.
func (l *Listener) Lost() <-chan struct{} { return l.ctx.Done() }

// Err returns why the connection to the broker was lost; nil if it wasn't.
func (l *Listener) Err() error { return l.broker.Err() }

// endAll ends all connections.
func (l *Listener) endAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, s := range l.streams {
		s.end(ErrEnded)
	}
	l.cancel()
}

// stop ends all connections, and waits until they have ended.
func (l *Listener) stop() {
	l.endAll()
	l.running.Wait()
}

// Close implements net.Listener. It also ends the accepted connections, and tells the nodes.
func (l *Listener) Close() error {
	ctx, cancel := context.WithTimeout(l.ctx, closeGrace)
	_ = l.broker.Publish(ctx, mqtt.TopicMessage{Topic: l.place.server(), Payload: packet{kind: endPacket}.encode()}) // if this fails, the nodes notice the end by themselves
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

// Node returns the name under which the other end publishes at the broker. The name is not proved.
func (c *Conn) Node() string { return c.node }

// Key returns the key that the other end has proved to have.
func (c *Conn) Key() ed25519.PublicKey { return c.key }

var _ net.Listener = (*Listener)(nil)
