package tunnel

import (
	"net"
	"os"
	"sync"
	"time"
)

const (
	maxUnsent  = 4 * maxContent  // bytes that were written and not published yet
	closeGrace = 2 * time.Second // how long Close waits for written data to be published
)

// A stream is one end of a connection: it makes packets of written data, and returns the data of received packets. It
// implements net.Conn. It does not protect the data.
type stream struct {
	id   id
	node string

	mu                sync.Mutex
	changed           *sync.Cond // signals that a field below has changed, or that a deadline has passed
	unread            [][]byte   // contents that arrived and were not read yet, without the part of the first that was read
	receivedCount     uint64     // packets with content that arrived
	readCount         uint64     // how many of those were read
	acknowledgedCount uint64     // how many of those the other end knows to be read
	unsent            []byte     // data that was written and not published yet
	sentCount         uint64     // packets with content that were published
	peerReadCount     uint64     // how many of those the other end has read
	err               error      // why the stream has ended; nil before that
	state             streamState
	readDeadline      timeAlarm
	writeDeadline     timeAlarm
	closeDeadline     timeAlarm
}

// A streamState says how far a stream has ended.
type streamState int

const (
	streamOpen    streamState = iota
	streamClosing             // Close was called: written data is still published, and then the end
	streamBroken              // only the end is still published
	streamDead                // nothing is published anymore
)

func newStream(of id, node string) *stream {
	s := &stream{id: of, node: node}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// A timeAlarm is a time at which a stream wakes up.
type timeAlarm struct {
	at    time.Time // zero means never
	timer *time.Timer
}

func (a *timeAlarm) isDue() bool { return !a.at.IsZero() && !time.Now().Before(a.at) }

// set sets an alarm; the caller holds mu.
func (s *stream) set(a *timeAlarm, at time.Time) {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if a.at = at; !at.IsZero() && time.Until(at) > 0 {
		a.timer = time.AfterFunc(time.Until(at), s.wake)
	}
	s.changed.Broadcast()
}

func (s *stream) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed.Broadcast()
}

// receive takes a packet. It never waits.
func (s *stream) receive(p packet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state > streamClosing {
		return
	}
	defer s.changed.Broadcast()
	if p.acknowledged > s.sentCount {
		s.endWith(ErrDamaged, streamBroken)
		return
	}
	s.peerReadCount = max(s.peerReadCount, p.acknowledged)
	switch {
	case p.kind == endPacket && (p.number == 0 || p.number == s.receivedCount+1):
		s.endWith(ErrEnded, streamDead)
	case p.kind == ackPacket, p.number <= s.receivedCount, s.state == streamClosing: // the packet is old, or nobody reads it
	case p.kind == endPacket, p.number > s.receivedCount+1, s.receivedCount-s.readCount >= maxUnread:
		s.endWith(ErrDamaged, streamBroken)
	default:
		s.receivedCount++
		s.unread = append(s.unread, p.content)
	}
}

// end ends the stream, because nothing can be published anymore, or the other end is gone.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endWith(err, streamDead)
}

// endWith ends the stream with an error; the caller holds mu. Data that arrived before can still be read.
func (s *stream) endWith(err error, how streamState) {
	if s.err == nil {
		s.err = err
	}
	s.state = max(s.state, how)
	s.changed.Broadcast()
}

// publish publishes packets until the stream has ended. If one cannot be published, the stream ends.
func (s *stream) publish(say func(raw []byte) error) {
	defer s.stopAlarms()
	for {
		p, ok := s.nextPacket()
		if !ok {
			return
		}
		if err := say(p.encode()); err != nil {
			s.end(err)
			return
		}
	}
}

// stopAlarms stops the alarms of a stream that has ended. All waiting goroutines have been woken.
func (s *stream) stopAlarms() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range []*timeAlarm{&s.readDeadline, &s.writeDeadline, &s.closeDeadline} {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
}

// nextPacket waits for the next packet to publish; false if there will be none.
func (s *stream) nextPacket() (packet, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		p := packet{id: s.id, acknowledged: s.readCount}
		switch {
		case s.state == streamDead:
			return p, false
		case s.state == streamBroken, s.state == streamClosing && (len(s.unsent) == 0 || s.closeDeadline.isDue()):
			if p.kind = endPacket; s.state == streamClosing {
				p.number = s.sentCount + 1
			}
			s.state = streamDead
			return p, true
		case len(s.unsent) > 0 && s.sentCount-s.peerReadCount < maxUnread:
			n := min(len(s.unsent), maxContent)
			s.sentCount++
			p.kind, p.number, p.content = contentPacket, s.sentCount, s.unsent[:n:n]
			s.unsent = s.unsent[n:]
			s.acknowledgedCount = s.readCount
			s.changed.Broadcast()
			return p, true
		case s.readCount-s.acknowledgedCount >= maxUnread/2:
			s.acknowledgedCount = s.readCount
			p.kind = ackPacket
			return p, true
		}
		s.changed.Wait()
	}
}

// Read implements net.Conn.
func (s *stream) Read(into []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.state == streamClosing:
			return 0, net.ErrClosed
		case s.readDeadline.isDue():
			return 0, os.ErrDeadlineExceeded
		case len(into) == 0:
			return 0, nil
		case len(s.unread) > 0:
			n := copy(into, s.unread[0])
			if s.unread[0] = s.unread[0][n:]; len(s.unread[0]) == 0 {
				s.unread = s.unread[1:]
				s.readCount++
				s.changed.Broadcast()
			}
			return n, nil
		case s.err != nil:
			return 0, s.err
		}
		s.changed.Wait()
	}
}

// Write implements net.Conn. Written data may be lost if the stream ends.
func (s *stream) Write(from []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.state == streamClosing:
			return n, net.ErrClosed
		case s.err != nil:
			return n, s.err
		case s.writeDeadline.isDue():
			return n, os.ErrDeadlineExceeded
		case len(from) == 0:
			return n, nil
		case len(s.unsent) < maxUnsent:
			some := min(len(from), maxUnsent-len(s.unsent))
			s.unsent = append(s.unsent, from[:some]...)
			n, from = n+some, from[some:]
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// Close implements net.Conn. Written data is still published for a while, if the other end reads it.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.set(&s.closeDeadline, time.Now().Add(closeGrace))
		s.endWith(net.ErrClosed, streamClosing)
	}
	return nil
}

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.readDeadline, t)
	s.set(&s.writeDeadline, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.readDeadline, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.writeDeadline, t)
	return nil
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return address{s.node} }

// An address is the address of a node, or of the server.
type address struct{ node string }

// Network implements net.Addr.
func (address) Network() string { return "mqtt" }

// String implements net.Addr.
func (a address) String() string {
	if a.node == "" {
		return "server"
	}
	return a.node
}
