// Package mqtttest provides a real MQTT broker for tests, and an edge agent that knows nothing but what goes over the wire.
package mqtttest

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// A Broker is a Mosquitto of its own, which ends with the test.
type Broker struct {
	t    testing.TB
	port int
	conf string

	mu  sync.Mutex
	cmd *exec.Cmd
	log *os.File
}

// New starts a broker. If PARLEY_TEST_MOSQUITTO names no program, the test is skipped. More are lines of its settings.
func New(t testing.TB, more ...string) *Broker {
	t.Helper()
	if os.Getenv("PARLEY_TEST_MOSQUITTO") == "" {
		t.Skip("there is no PARLEY_TEST_MOSQUITTO: run it as `.ci/servers go test …`, or with make test")
	}
	b := &Broker{t: t, conf: filepath.Join(t.TempDir(), "mosquitto.conf")}
	var err error
	if b.log, err = os.Create(filepath.Join(t.TempDir(), "mosquitto.log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Kill()
		if _, err := b.log.Seek(0, io.SeekStart); err == nil && t.Failed() {
			said, _ := io.ReadAll(b.log)
			t.Logf("the broker said:\n%s", said[max(0, len(said)-4000):])
		}
		b.log.Close()
	})
	for range 10 { // somebody else may take the port in between
		if b.port, err = freePort(); err != nil {
			t.Fatal(err)
		}
		lines := append([]string{fmt.Sprintf("listener %d 127.0.0.1", b.port), "allow_anonymous true", "persistence false", "log_dest stderr"}, more...)
		if os.Getuid() == 0 {
			lines = append(lines, "user root")
		}
		if err := os.WriteFile(b.conf, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		if b.start() {
			return b
		}
	}
	t.Fatal("the broker does not start")
	return nil
}

// freePort returns a port of the loopback that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

// start starts the program, and reports whether it listens.
func (b *Broker) start() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cmd = exec.Command(os.Getenv("PARLEY_TEST_MOSQUITTO"), "-c", b.conf)
	b.cmd.Stderr = b.log
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	cmd := b.cmd
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	for {
		if c, err := net.Dial("tcp", b.address()); err == nil {
			c.Close()
			return true
		}
		select {
		case <-ended:
			b.cmd = nil
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (b *Broker) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)) }

// URL returns where the broker is.
func (b *Broker) URL() string { return "mqtt://" + b.address() }

// Kill ends the broker with SIGKILL: all connections are lost, and what it has not delivered.
func (b *Broker) Kill() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd == nil {
		return
	}
	_ = b.cmd.Process.Kill() // it may have ended
	b.cmd = nil
	for { // until nobody listens
		c, err := net.Dial("tcp", b.address())
		if err != nil {
			return
		}
		c.Close()
		time.Sleep(time.Millisecond)
	}
}

// Restart starts the broker again after Kill, at the same address.
func (b *Broker) Restart() {
	b.t.Helper()
	if !b.start() {
		b.t.Fatal("the broker does not start again")
	}
}

// A Client is a connection to a broker.
type Client struct {
	paho.Client
	listening atomic.Bool
}

// IsListening reports whether the client gets what is published now.
func (c *Client) IsListening() bool { return c.listening.Load() }

// Client connects to the broker. Each message that comes to one of the topics is passed to hear. The connection is opened
// again whenever it is lost.
func (b *Broker) Client(hear func(topic string, payload []byte), topics ...string) *Client {
	b.t.Helper()
	o := paho.NewClientOptions().AddBroker("tcp://" + b.address()).SetCleanSession(true).SetAutoReconnect(true).SetMaxReconnectInterval(50 * time.Millisecond)
	c := &Client{}
	o.SetConnectionLostHandler(func(paho.Client, error) { c.listening.Store(false) })
	o.SetOnConnectHandler(func(over paho.Client) {
		for _, topic := range topics {
			t := over.Subscribe(topic, 1, func(_ paho.Client, m paho.Message) { hear(m.Topic(), m.Payload()) })
			if t.Wait() && t.Error() != nil {
				return
			}
		}
		c.listening.Store(true)
	})
	c.Client = paho.NewClient(o)
	if t := c.Connect(); !t.WaitTimeout(10*time.Second) || t.Error() != nil {
		b.t.Fatalf("a client cannot connect: %v", t.Error())
	}
	b.t.Cleanup(func() { c.Disconnect(0) })
	return c
}

// Publish publishes a message, and waits until the broker has it.
func (b *Broker) Publish(c *Client, topic string, retained bool, payload []byte) {
	b.t.Helper()
	if t := c.Publish(topic, 1, retained, payload); !t.WaitTimeout(20*time.Second) || t.Error() != nil {
		b.t.Errorf("%s cannot be published: %v", topic, t.Error())
	}
}
