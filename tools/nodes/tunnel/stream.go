package tunnel

import (
	"net"
	"os"
	"sync"
	"time"
)

const (
	maxUnsent  = 4 * maxContent  // bytes that were written and not yet published
	closeGrace = 2 * time.Second // for what was written before Close to be published
)

// A stream is one end of a connection: it makes packets of what is written, and hands out what packets bring. It implements
// net.Conn. It protects nothing.
type stream struct {
	id   id
	node string

	mu      sync.Mutex
	changed *sync.Cond // whatever is below has changed, or a time has come
	in      [][]byte   // contents that came and were not read, but for the first bytes of the first
	came    uint64     // packets with content that came
	read    uint64     // of those, how many were read
	told    uint64     // of those, how many the other end knows of
	out     []byte     // what was written and not published
	sent    uint64     // packets with content that were published
	wasRead uint64     // of those, how many the other end has read
	err     error      // why the stream has ended; nil while it has not
	ending  ending
	readBy  alarm
	writeBy alarm
	endBy   alarm
}

// ending says how far a stream has ended.
type ending int

const (
	open    ending = iota
	closing        // Close was called: what was written is still published, and then that the stream is over
	broken         // it is still published that the stream is over
	dead           // nothing is published anymore
)

func newStream(of id, node string) *stream {
	s := &stream{id: of, node: node}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// An alarm is a time at which a stream wakes up.
type alarm struct {
	at    time.Time // zero means never
	timer *time.Timer
}

func (a *alarm) has() bool { return !a.at.IsZero() && !time.Now().Before(a.at) }

// set sets an alarm; the caller holds mu.
func (s *stream) set(a *alarm, at time.Time) {
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

// hear takes a packet. It never waits.
func (s *stream) hear(p packet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending > closing {
		return
	}
	defer s.changed.Broadcast()
	if p.read > s.sent {
		s.fail(ErrDamaged, broken)
		return
	}
	s.wasRead = max(s.wasRead, p.read)
	switch {
	case p.kind == endPacket && (p.number == 0 || p.number == s.came+1):
		s.fail(ErrCut, dead)
	case p.kind == readPacket, p.number <= s.came, s.ending == closing: // nothing new, or nobody reads it
	case p.kind == endPacket, p.number > s.came+1, s.came-s.read >= maxUnread:
		s.fail(ErrDamaged, broken)
	default:
		s.came++
		s.in = append(s.in, p.content)
	}
}

// end ends the stream, because nothing can be said anymore, or nobody is there to hear it.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(err, dead)
}

// fail ends the stream; the caller holds mu. What came before can still be read.
func (s *stream) fail(err error, how ending) {
	if s.err == nil {
		s.err = err
	}
	s.ending = max(s.ending, how)
	s.changed.Broadcast()
}

// publish publishes packets until the stream has ended. If one cannot be published, the stream ends.
func (s *stream) publish(say func(raw []byte) error) {
	defer s.silence()
	for {
		p, ok := s.next()
		if !ok {
			return
		}
		if err := say(p.wire()); err != nil {
			s.end(err)
			return
		}
	}
}

// silence stops the alarms of a stream that has ended. Whoever waits has been woken.
func (s *stream) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range []*alarm{&s.readBy, &s.writeBy, &s.endBy} {
		if a.timer != nil {
			a.timer.Stop()
		}
	}
}

// next waits for the next packet that is to be published; false if there will be none.
func (s *stream) next() (packet, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		p := packet{id: s.id, read: s.read}
		switch {
		case s.ending == dead:
			return p, false
		case s.ending == broken, s.ending == closing && (len(s.out) == 0 || s.endBy.has()):
			if p.kind = endPacket; s.ending == closing {
				p.number = s.sent + 1
			}
			s.ending = dead
			return p, true
		case len(s.out) > 0 && s.sent-s.wasRead < maxUnread:
			n := min(len(s.out), maxContent)
			s.sent++
			p.kind, p.number, p.content = contentPacket, s.sent, s.out[:n:n]
			s.out = s.out[n:]
			s.told = s.read
			s.changed.Broadcast()
			return p, true
		case s.read-s.told >= maxUnread/2:
			s.told = s.read
			p.kind = readPacket
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
		case s.ending == closing:
			return 0, net.ErrClosed
		case s.readBy.has():
			return 0, os.ErrDeadlineExceeded
		case len(into) == 0:
			return 0, nil
		case len(s.in) > 0:
			n := copy(into, s.in[0])
			if s.in[0] = s.in[0][n:]; len(s.in[0]) == 0 {
				s.in = s.in[1:]
				s.read++
				s.changed.Broadcast()
			}
			return n, nil
		case s.err != nil:
			return 0, s.err
		}
		s.changed.Wait()
	}
}

// Write implements net.Conn. What it takes may be lost if the stream ends.
func (s *stream) Write(from []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ending == closing:
			return n, net.ErrClosed
		case s.err != nil:
			return n, s.err
		case s.writeBy.has():
			return n, os.ErrDeadlineExceeded
		case len(from) == 0:
			return n, nil
		case len(s.out) < maxUnsent:
			some := min(len(from), maxUnsent-len(s.out))
			s.out = append(s.out, from[:some]...)
			n, from = n+some, from[some:]
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// Close implements net.Conn. What was written is still published, for a while, if the other end reads it.
func (s *stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.set(&s.endBy, time.Now().Add(closeGrace))
		s.fail(net.ErrClosed, closing)
	}
	return nil
}

// SetDeadline implements net.Conn.
func (s *stream) SetDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.readBy, t)
	s.set(&s.writeBy, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (s *stream) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.readBy, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (s *stream) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(&s.writeBy, t)
	return nil
}

// LocalAddr implements net.Conn.
func (s *stream) LocalAddr() net.Addr { return address{} }

// RemoteAddr implements net.Conn.
func (s *stream) RemoteAddr() net.Addr { return address{s.node} }

// An address is that of a node, or of the server.
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
