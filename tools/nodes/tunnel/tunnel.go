// Package tunnel carries connections between nodes and a server through an MQTT broker that nobody has to trust.
//
// A node says what it has to say under PREFIX/nodes/NAME/up, and the server answers under PREFIX/nodes/NAME/down. What they
// say are packets, see packet.go. Those of one connection have its random id, and are numbered. Nothing but that is believed
// of a packet: what it carries is a part of a TLS 1.3 connection, in which both ends prove that they have the keys that they
// have known of each other since the node has joined (secure.go). So who can read, drop, repeat, change or invent packets, as
// the broker can, learns nothing but who speaks when and how much, and can do nothing but end the connection:
//
//   - what comes twice is ignored;
//   - what is missing, out of order or changed ends the connection;
//   - what is repeated later belongs to a connection that nobody has anymore, and can't begin one, because both ends choose
//     something new for each.
//
// So packets are published without waiting for the broker to say that it has them: one that it loses, for which a connection to it
// has to be lost in turn or a queue to be full, counts as missing. window keeps the queues short.
//
// What is only held back is noticed by the link (see Timing.Answer of package wire).
//
// The server says under PREFIX/server that all connections made before are over, whenever it comes and goes, and the broker
// says it for the server, or for a node that it was over, when it has lost them. That is not proved either: it ends
// connections sooner than their silence would.
package tunnel

import (
	"errors"

	"parley/tools/nodes/mqtt"
)

// Why connections end.
var (
	// ErrNobody means that nothing was answered at the broker.
	ErrNobody = errors.New("nobody answers through the MQTT broker (is the server connected to it, with the same prefix, and may this device use its topics there?)")
	// ErrOtherServer means that whoever answers does not have the key of the server that the node has joined.
	ErrOtherServer = errors.New("whoever answers through the MQTT broker isn't the server that this node has joined")
	// ErrCut means that the other end, or the broker, has ended the connection.
	ErrCut = errors.New("the connection through the MQTT broker was ended")
	// ErrDamaged means that the broker has lost packets, or that they are not those of the other end.
	ErrDamaged = errors.New("packets were lost or changed on the way through the MQTT broker")
)

// A Place is a broker, and what the topics there begin with.
type Place struct {
	Broker mqtt.Server
	Prefix string
}

func (p Place) up(node string) string   { return p.Prefix + "/nodes/" + node + "/up" }
func (p Place) down(node string) string { return p.Prefix + "/nodes/" + node + "/down" }
func (p Place) server() string          { return p.Prefix + "/server" }

// nodeOf returns the node that a topic is of, which is the one of up.
func (p Place) nodeOf(topic string) (string, bool) {
	before, after := len(p.up(""))-len("/up"), len("/up")
	if len(topic) <= before+after {
		return "", false
	}
	node := topic[before : len(topic)-after]
	return node, p.up(node) == topic
}
