package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"golang.org/x/time/rate"

	stored "parley/sessions/nodes"
	"parley/tools/nodes/mqtt"
)

// Edges stores the nodes that have no key: edge agents at a broker.
type Edges interface {
	// Discover records that an edge agent was heard, and what it offers, and returns its node; unless process is "", that
	// process can reach it now. It returns nodes.ErrTaken, nodes.ErrRevoked and nodes.ErrFull.
	Discover(ctx context.Context, name, process string, offer json.RawMessage, now time.Time) (stored.Node, error)
	// OpenWithoutKey returns those calls that have not ended and were given to an edge agent of that name, in the order in
	// which they were made. Calls of a device with a key are never among them, although it may have the name now.
	OpenWithoutKey(ctx context.Context, node string) ([]stored.Call, error)
}

// A BrokerConfig says where edge agents are, and how they are treated.
type BrokerConfig struct {
	Server mqtt.Server
	Edges  Edges
	// May reports whether a node may have a name; nothing else of the server uses it.
	May func(name string) bool
	// Tools returns the tools that the operator lists for an edge agent; nil means those that it names itself.
	Tools  func(name string) []string
	Timing EdgeTiming
}

// EdgeTiming says how long edge agents are waited for. What is zero has its default.
type EdgeTiming struct {
	// Call is how long a call may take.
	Call time.Duration
	// Silence is how long an edge agent may be silent before it counts as away.
	Silence time.Duration
	// Late is how long after its time a call may still be reported. As long as an agent does not say which call a report is
	// of, it gets no other call of the same tool.
	Late time.Duration
}

const (
	edgeSilence = 3 * time.Minute
	edgeLate    = 10 * time.Minute
	maxEdges    = 512 // how many names a process looks after: it ignores others
	redialLeast = time.Second
	redialMost  = 30 * time.Second
)

// A broker is a connection to a broker, over and over again, and the edge agents that were heard there.
type broker struct {
	*Service
	cfg       BrokerConfig
	strangers *rate.Limiter // how often a name is looked at that was not heard before

	mu      sync.Mutex
	conn    *mqtt.Conn // nil while there is none
	edges   map[string]*edge
	ignored map[string]bool // names that were logged
	closed  bool            // no more edges are added
	serving sync.WaitGroup  // the edges; it grows only under mu, while closed is false
}

// ServeBroker connects to a broker, records which edge agents are there, and gives them their calls, until ctx is done. Run says
// meanwhile that this process can reach them. Only one process of the fleet may do so at a time. What it has recorded stays: the next one goes on with it, and a process that
// nobody follows counts its agents as away after nodes.LinkLifetime.
func (s *Service) ServeBroker(ctx context.Context, c BrokerConfig) error {
	c.Timing.Call, c.Timing.Silence, c.Timing.Late = cmp.Or(c.Timing.Call, mqtt.Timeout), cmp.Or(c.Timing.Silence, edgeSilence), cmp.Or(c.Timing.Late, edgeLate)
	b := &broker{Service: s, cfg: c, strangers: rate.NewLimiter(5, 50), edges: map[string]*edge{}, ignored: map[string]bool{}}
	defer s.followEdges(b)()
	if b.adopt(ctx) {
		b.keepConnected(ctx)
	}
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.serving.Wait()
	return nil
}

// followEdges has the bells of the fleet ring for the edge agents of a broker, until the returned function is called.
func (s *Service) followEdges(b *broker) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broker = b
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.broker = nil
	}
}

// edge returns an edge agent; nil if this process doesn't look after one of that name.
func (b *broker) edge(name string) *edge {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.edges[name]
}

// all returns the edge agents that this process looks after.
func (b *broker) all() (all []*edge) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.edges {
		all = append(all, e)
	}
	return all
}

// adopt looks after the edge agents that are recorded. Those that another process could reach a moment ago are taken over, so
// that calls which were not sent are sent, although the agents may not say anything for a while. It returns false if ctx is
// done.
func (b *broker) adopt(ctx context.Context) bool {
	for {
		all, err := b.List(ctx)
		if err == nil {
			for _, n := range all {
				if n.IsKeyless() {
					b.mu.Lock()
					b.add(ctx, n.Name, n)
					b.mu.Unlock()
				}
			}
			return ctx.Err() == nil
		}
		if !b.pause(ctx, storeAgain) {
			return false
		}
		b.Service.cfg.Log.Warn("the edge agents that are known cannot be read; trying again", slog.Any("error", err))
	}
}

// pause waits. It returns false if ctx is done.
func (b *broker) pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// add looks after one more edge agent. The caller holds mu.
func (b *broker) add(ctx context.Context, name string, n Node) *edge {
	e := newEdge(b, name, n)
	b.edges[name] = e
	b.serving.Go(func() { e.run(ctx) })
	return e
}

// keepConnected connects to the broker whenever there is no connection, until ctx is done.
func (b *broker) keepConnected(ctx context.Context) {
	log := b.Service.cfg.Log
	for wait := redialLeast; ctx.Err() == nil; {
		conn, err := b.cfg.Server.Dial(ctx, func(m mqtt.Message) { b.hear(ctx, m) })
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("the MQTT broker cannot be reached; trying again", slog.Any("error", err))
			}
			b.pause(ctx, wait)
			wait = min(2*wait, redialMost)
			continue
		}
		wait = redialLeast
		log.Info("connected to the MQTT broker")
		b.setConnection(conn)
		select {
		case <-conn.Lost():
			log.Warn("the connection to the MQTT broker is lost", slog.Any("error", conn.Err()))
		case <-ctx.Done():
		}
		b.setConnection(nil)
		conn.Close()
		b.pause(ctx, redialLeast)
	}
}

// setConnection makes a connection the one that calls are sent over; nil means that there is none.
func (b *broker) setConnection(conn *mqtt.Conn) {
	b.mu.Lock()
	b.conn = conn
	b.mu.Unlock()
	for _, e := range b.all() {
		poke(e.bell)
	}
}

// connection returns the connection to the broker; nil while there is none.
func (b *broker) connection() *mqtt.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conn
}

// hear hands what an edge agent says to whoever looks after it. It never waits: what is too much is dropped.
func (b *broker) hear(ctx context.Context, m mqtt.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.edges[m.Agent]
	if e == nil {
		if m.Kind == mqtt.Reports || b.closed || ctx.Err() != nil || !b.mayAdd(m.Agent) {
			return
		}
		e = b.add(ctx, m.Agent, Node{})
	}
	e.post(m)
}

// mayAdd reports whether this process may look after one more edge agent. It logs once that an agent is ignored because
// no node can have its name. The caller holds mu.
func (b *broker) mayAdd(name string) bool {
	if !b.strangers.Allow() {
		return false
	}
	if regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`).MatchString(name) && b.cfg.May(name) {
		return len(b.edges) < maxEdges
	}
	if !b.ignored[name] && len(b.ignored) < maxEdges {
		b.ignored[name] = true
		b.Service.cfg.Log.Warn("an edge agent is ignored, because no node can have its name", slog.String("agent", cut(name)))
	}
	return false
}

// forget looks after an edge agent no longer.
func (b *broker) forget(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.edges, name)
}
