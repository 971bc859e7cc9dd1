package mqtt

import (
	"bufio"
	"errors"
	"net"

	"parley/tools/nodes"
)

// maxPacket is the size of the largest packet that is read completely: a message of nodes.MaxResult bytes and one more,
// under the longest topic.
const maxPacket = 2 + 1<<16 + 2 + nodes.MaxResult + 1

// errPacket is returned for a packet that no correct broker sends.
var errPacket = errors.New("the broker sends a packet that is malformed or too large")

// A boundedConn is a connection to a broker that cuts off messages that are too large. The library reads each packet
// into memory, whatever size the sender claims for it; ending the connection instead would let one agent cut off all
// others.
type boundedConn struct {
	net.Conn
	in          *bufio.Reader
	header      []byte // the unread part of the current packet's header
	bytesToPass int    // bytes of the packet that are passed on after the header
	bytesToSkip int    // bytes after those that are dropped
}

// newBoundedConn makes a boundedConn.
func newBoundedConn(c net.Conn) *boundedConn { return &boundedConn{Conn: c, in: bufio.NewReader(c)} }

// Read implements net.Conn.
func (b *boundedConn) Read(p []byte) (int, error) {
	for {
		switch {
		case len(b.header) > 0:
			n := copy(p, b.header)
			b.header = b.header[n:]
			return n, nil
		case b.bytesToPass > 0:
			n, err := b.in.Read(p[:min(len(p), b.bytesToPass)])
			b.bytesToPass -= n
			return n, err
		case b.bytesToSkip > 0:
			n, err := b.in.Discard(b.bytesToSkip)
			b.bytesToSkip -= n
			if err != nil {
				return 0, err
			}
		default:
			if err := b.readHeader(); err != nil {
				return 0, err
			}
		}
	}
}

const publishPacket = 3 // the type of a packet with a message

// readHeader reads the header of the next packet: its type, and the length of the rest in groups of seven bits.
func (b *boundedConn) readHeader() error {
	kind, err := b.in.ReadByte()
	if err != nil {
		return err
	}
	length, header := 0, []byte{kind}
	for shift := 0; ; shift += 7 {
		c, err := b.in.ReadByte()
		if err != nil {
			return err
		}
		if shift > 21 {
			return errPacket
		}
		header = append(header, c)
		if length |= int(c&0x7f) << shift; c&0x80 == 0 {
			break
		}
	}
	b.header, b.bytesToPass, b.bytesToSkip = header, length, 0
	if length > maxPacket {
		if kind>>4 != publishPacket {
			return errPacket
		}
		b.header, b.bytesToPass, b.bytesToSkip = appendLength([]byte{kind}, maxPacket), maxPacket, length-maxPacket
	}
	return nil
}

// appendLength appends the length of the rest of a packet.
func appendLength(header []byte, n int) []byte {
	for ; n > 0x7f; n >>= 7 {
		header = append(header, byte(n&0x7f)|0x80)
	}
	return append(header, byte(n))
}
