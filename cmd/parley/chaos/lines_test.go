package chaos

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// A line is the connection between a device and the fleet: a proxy to one of the gateways, which a test can harm.
type line struct {
	address  string
	gateways []string

	mu   sync.Mutex
	open map[net.Conn]net.Conn // the fleet's end of each connection, by the device's end
	lost []net.Conn            // the fleet's ends of connections that are over for the device
	held chan struct{}         // closed when the delay ends; nil if there is no delay
}

// newLine starts a line to one of the gateways.
func newLine(t *testing.T, gateways []string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{address: listener.Addr().String(), gateways: gateways, open: map[net.Conn]net.Conn{}}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { l.serve(from) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close() // nobody connects anymore
		l.cut()
		serving.Wait()
	})
	return l
}

// serve connects a device to a gateway that accepts the connection.
func (l *line) serve(from net.Conn) {
	defer from.Close()
	for _, i := range rand.Perm(len(l.gateways)) {
		to, err := net.DialTimeout("tcp", l.gateways[i], time.Second)
		if err != nil {
			continue
		}
		l.mu.Lock()
		l.open[from] = to
		l.mu.Unlock()
		var back sync.WaitGroup
		back.Go(func() {
			l.pass(to, from)
			_ = from.Close() // the gateway has closed its end
		})
		l.pass(from, to)
		if l.forget(from) {
			_ = to.Close() // the device has closed its end
		}
		back.Wait()
		return
	}
}

// forget removes a connection that has ended. It returns false if the fleet must not notice that.
func (l *line) forget(from net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.open[from]
	delete(l.open, from)
	return known
}

// pass copies what one end sends to the other until it ends.
func (l *line) pass(from io.Reader, to io.Writer) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.mu.Lock()
		held := l.held
		l.mu.Unlock()
		if held != nil {
			<-held
		}
		_, _ = to.Write(buffer[:n]) // if that end is lost, nothing arrives
		if err != nil {
			return
		}
	}
}

// cut ends all connections at both ends.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for from, to := range l.open {
		_, _ = from.Close(), to.Close()
	}
	for _, to := range l.lost {
		_ = to.Close() // it may have ended
	}
	l.lost = nil
}

// lose ends all connections at the device's end, without the fleet noticing.
func (l *line) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for from, to := range l.open {
		delete(l.open, from)
		l.lost = append(l.lost, to)
		_ = from.Close() // that is the harm
	}
}

// hold delays what both ends send for some time.
func (l *line) hold(during time.Duration) {
	free := make(chan struct{})
	l.mu.Lock()
	l.held = free
	l.mu.Unlock()
	<-time.After(during)
	l.mu.Lock()
	l.held = nil
	l.mu.Unlock()
	close(free)
}

// breakLines returns a breaker that harms lines until the storm is over.
func breakLines(lines []*line) func(*storm, *rand.Rand, <-chan struct{}) {
	return func(s *storm, random *rand.Rand, over <-chan struct{}) {
		for pause(random, 300*time.Millisecond, 3*time.Second, over) {
			l := lines[random.IntN(len(lines))]
			switch random.IntN(3) {
			case 0:
				l.cut()
				s.countFault("cut a line")
			case 1:
				l.lose()
				s.countFault("lost a line on the way")
			case 2:
				l.hold(time.Duration(random.Int64N(int64(5 * time.Second))))
				s.countFault("held up a line")
			}
		}
	}
}

// breakBroker kills the broker, cuts the lines to it, and makes a man in the middle drop, repeat and change its
// messages, until the storm is over.
func (n *nodeStorm) breakBroker(s *storm, random *rand.Rand, over <-chan struct{}) {
	evil := rand.New(rand.NewPCG(n.seed, random.Uint64()))
	var before [][]byte
	n.middle.Change(func(_ string, payload []byte) [][]byte {
		before = append(before, bytes.Clone(payload))
		old := before[evil.IntN(len(before))]
		switch evil.IntN(150) {
		case 0:
			return nil
		case 1:
			changed := bytes.Clone(payload)
			changed[evil.IntN(len(changed))]++
			return [][]byte{changed}
		case 2, 3, 4, 5:
			return [][]byte{payload, payload, old}
		}
		return [][]byte{payload}
	})
	defer func() {
		if n.middle.Change(nil); len(before) == 0 {
			s.T.Error("nothing has gone through the broker")
		}
	}()
	for pause(random, time.Second, 5*time.Second, over) {
		if random.IntN(2) == 0 {
			n.middle.Cut()
			s.countFault("cut the lines to the broker")
			continue
		}
		n.broker.Kill()
		<-time.After(time.Duration(random.Int64N(int64(3 * time.Second))))
		n.broker.Restart()
		s.countFault("killed the broker")
	}
}
