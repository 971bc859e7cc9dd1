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

// ErrRefused says that the broker doesn't allow Parley to read what agents say.
var ErrRefused = errors.New("the broker doesn't allow reading the topics " + topicRoot + "+/…")

// Dial connects to the broker, and calls hear with what agents say, one message at a time, until the connection is lost or
// closed. hear must return soon. Dial does not try again, and a lost connection stays lost: a client that connects by itself
// would publish commands again.
func (s Server) Dial(ctx context.Context, hear func(Message)) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := &Conn{lost: make(chan struct{})}
	o := paho.NewClientOptions().AddBroker(s.URL).SetClientID("parley-" + strings.ToLower(rand.Text()[:12])).SetUsername(s.User).SetPassword(s.Password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetKeepAlive(keepAlive).
		SetConnectTimeout(dialTimeout).SetWriteTimeout(publishTimeout).SetStore(paho.NewMemoryStore())
	o.SetCustomOpenConnectionFn(func(at *url.URL, _ paho.ClientOptions) (net.Conn, error) { return open(ctx, at) })
	o.SetConnectionLostHandler(func(_ paho.Client, err error) { c.lose(err) })
	o.SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
		if heard, ok := messageOf(m); ok {
			hear(heard)
		}
	})
	c.client = paho.NewClient(o)
	if err := finish(ctx, c.client.Connect()); err != nil {
		c.Close()
		return nil, fmt.Errorf("connect to the broker: %w", err)
	}
	to := map[string]byte{topicRoot + "+/" + string(Reports): 1, topicRoot + "+/" + string(Capabilities): 1, topicRoot + "+/" + string(Status): 0}
	token := c.client.SubscribeMultiple(to, nil)
	if err := finish(ctx, token); err != nil {
		c.Close()
		return nil, fmt.Errorf("subscribe at the broker: %w", err)
	}
	if t, ok := token.(*paho.SubscribeToken); ok {
		for _, granted := range t.Result() {
			if granted > 2 {
				c.Close()
				return nil, ErrRefused
			}
		}
	}
	return c, nil
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
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := finish(ctx, c.client.Publish(topicRoot+agent+"/"+commands, 1, false, raw)); err != nil {
		return fmt.Errorf("publish a command: %w", err)
	}
	return nil
}
