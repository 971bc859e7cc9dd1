package tunnel

import "encoding/binary"

// A packet is published as one message, in this form:
//
//	1 byte    version
//	1 byte    kind
//	16 bytes  id
//	8 bytes   number, in network order, like the next field
//	8 bytes   acknowledged
//	the rest  content
type packet struct {
	kind byte
	id   id
	// number counts the packets with content of one direction, from 1. In an end packet it is the number that would be
	// next, or 0 if that does not matter.
	number uint64
	// acknowledged is how many packets with content of the other direction were read.
	acknowledged uint64
	content      []byte // of kind content only
}

// An id identifies a connection. A node chooses it at random.
type id [16]byte

// The kinds of packets.
const (
	contentPacket = 1 // a part of the connection's data
	ackPacket     = 2 // only acknowledges
	endPacket     = 3 // the connection has ended; with the zero id, all have
)

const (
	protocolVersion = 1
	headerSize      = 34
	maxContent      = 16 << 10 // bytes; brokers may be set up to refuse messages of more than some KB
	maxUnread       = 16       // packets with content that may be on the way, or unread
)

func (p packet) encode() []byte {
	raw := make([]byte, 0, headerSize+len(p.content))
	raw = append(raw, protocolVersion, p.kind)
	raw = append(raw, p.id[:]...)
	raw = binary.BigEndian.AppendUint64(raw, p.number)
	raw = binary.BigEndian.AppendUint64(raw, p.acknowledged)
	return append(raw, p.content...)
}

// parsePacket decodes a packet; false if the data is not one.
func parsePacket(raw []byte) (p packet, ok bool) {
	if len(raw) < headerSize || len(raw) > headerSize+maxContent || raw[0] != protocolVersion {
		return p, false
	}
	p.kind = raw[1]
	copy(p.id[:], raw[2:18])
	p.number, p.acknowledged = binary.BigEndian.Uint64(raw[18:26]), binary.BigEndian.Uint64(raw[26:34])
	p.content = raw[headerSize:]
	return p, (p.kind == contentPacket) == (len(p.content) > 0) && p.kind >= contentPacket && p.kind <= endPacket
}
