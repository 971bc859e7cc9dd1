package mqtt

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"parley/tools/nodes"
	"parley/tools/plainjson"
)

const (
	dialTimeout    = 10 * time.Second // to connect and subscribe
	publishTimeout = 10 * time.Second // publishing a command: until the broker has accepted it
	keepAlive      = 30 * time.Second // after this much silence, the broker is pinged
)

// A Server is a broker, with Parley's account there.
type Server struct {
	URL            string // mqtt:// or mqtts://HOST:PORT; without a port it is 1883 or 8883
	User, Password string
}

// ErrRefused is returned if the broker doesn't allow a client to read a topic that it needs.
var ErrRefused = errors.New("the broker doesn't allow reading the topics")

// Dial connects to the broker, and calls hear with the agents' messages, one at a time, until the connection is lost or
// closed. hear must return soon. Dial does not try again, and a lost connection stays lost: a client that reconnects by
// itself would publish commands again.
func (s Server) Dial(ctx context.Context, hear func(Message)) (*Conn, error) {
	return s.dial(ctx, nil, func(m paho.Message) {
		if heard, ok := agentMessage(m); ok {
			hear(heard)
		}
	}, map[string]byte{topicRoot + "+/" + string(KindReports): 1, topicRoot + "+/" + string(KindCapabilities): 1, topicRoot + "+/" + string(KindStatus): 0}, nil)
}

// Topics are the topics that a client of a broker reads.
type Topics struct {
	Read     []string // topics that the client must be allowed to read
	Optional []string // topics that it reads if it is allowed to
	// Handle is called with each message, one at a time, until the connection is lost or closed. It must return soon.
	// It doesn't get messages that the broker has retained.
	Handle func(topic string, payload []byte)
	Will   *TopicMessage // the message that the broker publishes if the connection is lost; nil for none
}

// A TopicMessage is a message that is published under a topic.
type TopicMessage struct {
	Topic   string
	Payload []byte
}

// Join connects to the broker to read topics. As with Dial, a lost connection stays lost.
func (s Server) Join(ctx context.Context, t Topics) (*Conn, error) {
	read, also := map[string]byte{}, map[string]byte{}
	for _, topic := range t.Read {
		read[topic] = 1
	}
	for _, topic := range t.Optional {
		also[topic] = 1
	}
	return s.dial(ctx, t.Will, func(m paho.Message) {
		if !m.Retained() {
			t.Handle(m.Topic(), m.Payload())
		}
	}, read, also)
}

// dial connects to the broker. The broker may refuse the topics in also.
func (s Server) dial(ctx context.Context, will *TopicMessage, hear func(paho.Message), topics, also map[string]byte) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &Conn{lost: make(chan struct{})}
	o := paho.NewClientOptions().AddBroker(s.URL).SetClientID("parley-" + strings.ToLower(rand.Text()[:12])).SetUsername(s.User).SetPassword(s.Password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetKeepAlive(keepAlive).
		SetConnectTimeout(dialTimeout).SetWriteTimeout(publishTimeout).SetStore(paho.NewMemoryStore())
	if will != nil {
		o.SetBinaryWill(will.Topic, will.Payload, 1, false)
	}
	o.SetCustomOpenConnectionFn(func(at *url.URL, _ paho.ClientOptions) (net.Conn, error) { return open(ctx, at) })
	o.SetConnectionLostHandler(func(_ paho.Client, err error) { c.markLost(err) })
	o.SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { hear(m) })
	c.client = paho.NewClient(o)
	if err := waitToken(ctx, c.client.Connect()); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	err := c.subscribe(ctx, topics)
	if err == nil && len(also) > 0 {
		if err = c.subscribe(ctx, also); errors.Is(err, ErrRefused) {
			err = nil
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// subscribe subscribes to topics. It returns ErrRefused if the broker refuses one of them.
func (c *Conn) subscribe(ctx context.Context, topics map[string]byte) error {
	token := c.client.SubscribeMultiple(topics, nil)
	if err := waitToken(ctx, token); err != nil {
		return fmt.Errorf("subscribe at the broker: %w", err)
	}
	if t, ok := token.(*paho.SubscribeToken); ok {
		for topic, granted := range t.Result() {
			if granted > 2 {
				return fmt.Errorf("%w %s", ErrRefused, topic)
			}
		}
	}
	return nil
}

// open opens the connection to a broker.
func open(ctx context.Context, at *url.URL) (net.Conn, error) {
	port, secure := "1883", at.Scheme == "mqtts"
	if secure {
		port = "8883"
	}
	if at.Port() != "" {
		port = at.Port()
	}
	address := net.JoinHostPort(at.Hostname(), port)
	var conn net.Conn
	var err error
	if secure {
		conn, err = (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, ServerName: at.Hostname()}}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return newBoundedConn(conn), nil
}

// agentMessage returns an agent's message; false if the topic isn't an agent's.
func agentMessage(m paho.Message) (Message, bool) {
	rest, ok := strings.CutPrefix(m.Topic(), topicRoot)
	agent, kind, within := strings.Cut(rest, "/")
	heard := Message{Agent: agent, Kind: Kind(kind), Payload: m.Payload(), Retained: m.Retained()}
	if len(heard.Payload) > nodes.MaxResult {
		heard.Payload, heard.TooLarge = nil, true
	}
	return heard, ok && within
}

// waitToken waits until an action of the library is done.
func waitToken(ctx context.Context, t paho.Token) error {
	select {
	case <-t.Done():
		return t.Error()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Conn is a connection to a broker.
type Conn struct {
	client paho.Client

	mu     sync.Mutex
	closed bool
	err    error
	lost   chan struct{}
}

// markLost records that the connection is lost.
func (c *Conn) markLost(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed, c.err = true, err
		close(c.lost)
	}
}

// Lost returns a channel that is closed when the connection is lost or closed.
func (c *Conn) Lost() <-chan struct{} { return c.lost }

// Err returns why the connection was lost; nil if it wasn't, or was closed.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close closes the connection. After that hear is not called anymore, but a running call may continue.
func (c *Conn) Close() {
	c.client.Disconnect(0)
	c.markLost(nil)
}

// Send publishes a command for an agent, once. After an error, it is unknown whether the broker has it.
func (c *Conn) Send(ctx context.Context, agent string, command Command) error {
	raw, err := plainjson.Marshal(command.encode())
	if err != nil {
		return fmt.Errorf("encode a command: %w", err)
	}
	return c.publish(ctx, TopicMessage{topicRoot + agent + "/" + commandsTopic, raw}, 1)
}

// Publish publishes a message, once. After an error, it is unknown whether the broker has it; without one, the broker
// may still have lost it.
func (c *Conn) Publish(ctx context.Context, w TopicMessage) error { return c.publish(ctx, w, 0) }

// errClosed is returned after the connection to the broker was lost or closed.
var errClosed = errors.New("the connection to the broker is lost or closed")

// publish publishes a message. With a qos of 1 it waits until the broker acknowledges it.
func (c *Conn) publish(ctx context.Context, w TopicMessage, qos byte) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	said := make(chan error, 1)
	// If the connection is lost at the wrong moment, the library's Publish blocks for publishTimeout. So it runs in a
	// goroutine.
	go func() { said <- waitToken(ctx, c.client.Publish(w.Topic, qos, false, w.Payload)) }()
	var err error
	select {
	case err = <-said:
	case <-c.lost:
		err = errClosed
	}
	if err != nil {
		return fmt.Errorf("publish at the broker: %w", err)
	}
	return nil
}
