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
	publishTimeout = 10 * time.Second // until the broker has taken a command
	keepAlive      = 30 * time.Second // after so much silence the broker is asked whether it is there
)

// A Server is a broker, and who Parley is there.
type Server struct {
	URL            string // mqtt:// or mqtts://HOST:PORT; without a port it is 1883 or 8883
	User, Password string
}

// ErrRefused says that the broker doesn't allow a client to read what it has to.
var ErrRefused = errors.New("the broker doesn't allow reading the topics")

// Dial connects to the broker, and calls hear with what agents say, one message at a time, until the connection is lost or
// closed. hear must return soon. Dial does not try again, and a lost connection stays lost: a client that connects by itself
// would publish commands again.
func (s Server) Dial(ctx context.Context, hear func(Message)) (*Conn, error) {
	return s.dial(ctx, nil, func(m paho.Message) {
		if heard, ok := messageOf(m); ok {
			hear(heard)
		}
	}, map[string]byte{topicRoot + "+/" + string(Reports): 1, topicRoot + "+/" + string(Capabilities): 1, topicRoot + "+/" + string(Status): 0}, nil)
}

// Topics are what a client of a broker reads.
type Topics struct {
	Read []string // it has to be allowed to read these
	Also []string // and reads these if it may
	// Hear is called with each message, one at a time, until the connection is lost or closed. It must return soon. Messages
	// that the broker has kept for later readers are left out.
	Hear func(topic string, payload []byte)
	Will *Word // what the broker is to publish if the connection is lost; nil means nothing
}

// A Word is something that is said under a topic.
type Word struct {
	Topic   string
	Payload []byte
}

// Join connects to the broker to read topics. As with Dial, a lost connection stays lost.
func (s Server) Join(ctx context.Context, t Topics) (*Conn, error) {
	read, also := map[string]byte{}, map[string]byte{}
	for _, topic := range t.Read {
		read[topic] = 1
	}
	for _, topic := range t.Also {
		also[topic] = 1
	}
	return s.dial(ctx, t.Will, func(m paho.Message) {
		if !m.Retained() {
			t.Hear(m.Topic(), m.Payload())
		}
	}, read, also)
}

// dial connects to the broker. The topics in also may be refused.
func (s Server) dial(ctx context.Context, will *Word, hear func(paho.Message), topics, also map[string]byte) (*Conn, error) {
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
	o.SetConnectionLostHandler(func(_ paho.Client, err error) { c.lose(err) })
	o.SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { hear(m) })
	c.client = paho.NewClient(o)
	if err := finish(ctx, c.client.Connect()); err != nil {
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

// subscribe has the broker send what is said under topics. It returns ErrRefused if that is not allowed for one of them.
func (c *Conn) subscribe(ctx context.Context, topics map[string]byte) error {
	token := c.client.SubscribeMultiple(topics, nil)
	if err := finish(ctx, token); err != nil {
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
	return bound(conn), nil
}

// messageOf returns what an agent has said; false if the topic is no agent's.
func messageOf(m paho.Message) (Message, bool) {
	rest, ok := strings.CutPrefix(m.Topic(), topicRoot)
	agent, kind, within := strings.Cut(rest, "/")
	heard := Message{Agent: agent, Kind: Kind(kind), Payload: m.Payload(), Retained: m.Retained()}
	if len(heard.Payload) > nodes.MaxResult {
		heard.Payload, heard.TooLarge = nil, true
	}
	return heard, ok && within
}

// finish waits until the library has done something.
func finish(ctx context.Context, t paho.Token) error {
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

	mu   sync.Mutex
	over bool
	err  error
	lost chan struct{}
}

// lose records that the connection is lost.
func (c *Conn) lose(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over, c.err = true, err
		close(c.lost)
	}
}

// Lost returns a channel that is closed once the connection is lost or closed.
func (c *Conn) Lost() <-chan struct{} { return c.lost }

// Err returns why the connection is lost; nil if it is not, or was closed.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close closes the connection. After that hear is not called anymore, except by a call that runs.
func (c *Conn) Close() {
	c.client.Disconnect(0)
	c.lose(nil)
}

// Send publishes a command for an agent, once. An error means that nobody knows whether the broker has it.
func (c *Conn) Send(ctx context.Context, agent string, command Command) error {
	raw, err := plainjson.Marshal(command.wire())
	if err != nil {
		return fmt.Errorf("encode a command: %w", err)
	}
	return c.publish(ctx, Word{topicRoot + agent + "/" + commandsTopic, raw}, 1)
}

// Say publishes something, once. An error means that nobody knows whether the broker has it; without one, the broker may still
// have lost it.
func (c *Conn) Say(ctx context.Context, w Word) error { return c.publish(ctx, w, 0) }

// errClosed says that there is no connection to the broker anymore.
var errClosed = errors.New("the connection to the broker is lost or closed")

// publishPacket publishes something. With a qos of 1 it waits until the broker says that it has it.
func (c *Conn) publish(ctx context.Context, w Word, qos byte) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	said := make(chan error, 1)
	// If the connection is lost at the wrong moment, the library waits for publishTimeout in Publish. Nobody else does.
	go func() { said <- finish(ctx, c.client.Publish(w.Topic, qos, false, w.Payload)) }()
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
