// Package tunnel carries connections between nodes and a server through an MQTT broker that nobody has to trust.
//
// A node publishes under PREFIX/nodes/NAME/up, and the server answers under PREFIX/nodes/NAME/down. The messages are
// packets, see packet.go. The packets of one connection have its random id, and are numbered. Nothing else in a packet
// is trusted: its content is a part of a TLS 1.3 connection, in which both ends prove the keys that they have known
// since the node joined (secure.go). So an attacker who can read, drop, repeat, change or invent packets, as the broker
// can, learns only which end sends when and how much, and can only end the connection:
//
// - a packet that arrives twice is ignored;
// - a packet that is missing, out of order or changed ends the connection;
// - a packet that is replayed later belongs to an old connection, and can't begin a new one, because both ends choose
// something new for each.
//
// So packets are published without waiting for the broker's acknowledgement. A packet that the broker loses, because
// its connection is lost or a queue is full, counts as missing. maxUnread keeps the queues short.
//
// Packets that are only delayed are noticed by the link (see Timing.Answer of package wire).
//
// Whenever the server comes or goes, it says under PREFIX/server that all earlier connections are over. When the broker
// loses the server or a node, it says the same on its behalf. These messages are not proved either: they only end
// connections sooner than silence would.
package tunnel

import (
	"errors"

	"parley/tools/nodes/mqtt"
)

// Why connections end.
var (
	// ErrNoAnswer is returned if nobody answers at the broker.
	ErrNoAnswer = errors.New("nobody answers through the MQTT broker (is the server connected to it, with the same prefix, and may this device use its topics there?)")
	// ErrOtherServer is returned if the other end does not have the key of the server that the node has joined.
	ErrOtherServer = errors.New("whoever answers through the MQTT broker isn't the server that this node has joined")
	// ErrEnded is returned if the other end, or the broker, has ended the connection.
	ErrEnded = errors.New("the connection through the MQTT broker was ended")
	// ErrDamaged is returned if the broker has lost packets, or if they don't come from the other end.
	ErrDamaged = errors.New("packets were lost or changed on the way through the MQTT broker")
)

// A Place is a broker, and the prefix of the topics there.
type Place struct {
	Broker mqtt.Server
	Prefix string
}

func (p Place) up(node string) string   { return p.Prefix + "/nodes/" + node + "/up" }
func (p Place) down(node string) string { return p.Prefix + "/nodes/" + node + "/down" }
func (p Place) server() string          { return p.Prefix + "/server" }

// nodeOf returns the node of an up topic.
func (p Place) nodeOf(topic string) (string, bool) {
	before, after := len(p.up(""))-len("/up"), len("/up")
	if len(topic) <= before+after {
		return "", false
	}
	node := topic[before : len(topic)-after]
	return node, p.up(node) == topic
}
