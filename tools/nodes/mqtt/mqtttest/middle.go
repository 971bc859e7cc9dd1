package mqtttest

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// A Middle is a man in the middle between clients and a broker. It does as it likes with the messages that the broker delivers.
type Middle struct {
	broker   *Broker
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	change func(topic string, payload []byte) [][]byte
	conns  []net.Conn
}

// NewMiddle puts a man in the middle, who does nothing yet.
func NewMiddle(b *Broker) *Middle {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	m := &Middle{broker: b, listener: l}
	m.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			m.running.Go(func() { m.serve(c) })
		}
	})
	b.t.Cleanup(func() {
		l.Close()
		m.Cut()
		m.running.Wait()
	})
	return m
}

// URL returns where clients find the broker, as they believe.
func (m *Middle) URL() string { return "mqtt://" + m.listener.Addr().String() }

// Change sets what clients get instead of a message; nil means that they get it. It is called one at a time.
func (m *Middle) Change(change func(topic string, payload []byte) [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.change = change
}

// Cut ends all connections.
func (m *Middle) Cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		c.Close()
	}
	m.conns = nil
}

// serve passes on what one client and the broker say, until one of them ends that.
func (m *Middle) serve(client net.Conn) {
	defer client.Close()
	broker, err := net.Dial("tcp", m.broker.address())
	if err != nil {
		return
	}
	defer broker.Close()
	m.mu.Lock()
	m.conns = append(m.conns, client, broker)
	m.mu.Unlock()
	m.running.Go(func() {
		defer broker.Close()
		_, _ = io.Copy(broker, client) // it ends with the connections
	})
	from := bufio.NewReader(broker)
	for {
		kind, body, err := readPacket(from)
		if err != nil {
			return
		}
		for _, packet := range m.instead(kind, body) {
			if _, err := client.Write(packet); err != nil {
				return
			}
		}
	}
}

// readPacket reads a packet: its first byte, and what comes after its length.
func readPacket(from *bufio.Reader) (kind byte, body []byte, err error) {
	if kind, err = from.ReadByte(); err != nil {
		return kind, nil, err
	}
	length, err := binary.ReadUvarint(from) // MQTT writes it in the same way
	if err != nil {
		return kind, nil, err
	}
	body = make([]byte, length)
	_, err = io.ReadFull(from, body)
	return kind, body, err
}

// packet writes a packet.
func packet(kind byte, body ...[]byte) []byte {
	length := 0
	for _, part := range body {
		length += len(part)
	}
	raw := binary.AppendUvarint([]byte{kind}, uint64(length))
	for _, part := range body {
		raw = append(raw, part...)
	}
	return raw
}

const published = 3

// instead returns the packets that a client gets instead of one. The first answers to the broker's delivery, so that it goes
// on, although it may have no payload; others are delivered once.
func (m *Middle) instead(kind byte, body []byte) [][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind>>4 != published || m.change == nil {
		return [][]byte{packet(kind, body)}
	}
	head := 2 + int(binary.BigEndian.Uint16(body))
	topic, rest := body[:head], head
	if kind&6 != 0 { // the message has an id
		rest += 2
	}
	payloads := m.change(string(topic[2:]), body[rest:])
	if len(payloads) == 0 {
		return [][]byte{packet(kind, body[:rest])}
	}
	all := [][]byte{packet(kind, body[:rest], payloads[0])}
	for _, payload := range payloads[1:] {
		all = append(all, packet(published<<4, topic, payload))
	}
	return all
}
