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

// Edges stores the nodes that have no key: edge agents at an MQTT broker.
type Edges interface {
	// Discover records that an edge agent was heard, and what it offers, and returns its node. It also records that
	// process can reach it now, unless process is "". Its errors are nodes.ErrTaken, nodes.ErrRevoked and
	// nodes.ErrFull.
	Discover(ctx context.Context, name, process string, offer json.RawMessage, now time.Time) (stored.Node, error)
	// OpenWithoutKey returns the calls to an edge agent of that name that have not ended, in the order in which they
	// were made. It leaves out calls to a device with a key, although that device may have the name now.
	OpenWithoutKey(ctx context.Context, node string) ([]stored.Call, error)
}

// A BrokerConfig says where the broker is, and how its edge agents are treated.
type BrokerConfig struct {
	Server mqtt.Server
	Edges  Edges
	// MayHaveName reports whether a node may have a name: not if another part of the server uses it.
	MayHaveName func(name string) bool
	// Tools returns the tools that the operator lists for an edge agent; nil means the tools that the agent lists
	// itself.
	Tools  func(name string) []string
	Timing EdgeTiming
}

// EdgeTiming says how long to wait for edge agents. Zero fields have defaults.
type EdgeTiming struct {
	// Call is how long a call may take.
	Call time.Duration
	// Silence is how long an edge agent may be silent before it counts as away.
	Silence time.Duration
	// LateReport is how long after a call's time its result may still arrive. Until then, an agent whose results don't
	// name their calls gets no other call of the same tool.
	LateReport time.Duration
}

const (
	edgeSilence    = 3 * time.Minute
	edgeLateReport = 10 * time.Minute
	maxEdges       = 512 // how many edge agents a process serves; it ignores others
	minRedialDelay = time.Second
	maxRedialDelay = 30 * time.Second
)

// A broker keeps a connection to a broker open, and has the edge agents that were heard there.
type broker struct {
	*Service
	cfg          BrokerConfig
	newNameLimit *rate.Limiter // limits how often new names are looked up

	mu      sync.Mutex
	conn    *mqtt.Conn // nil while there is none
	edges   map[string]*edge
	ignored map[string]bool // names that were logged
	closed  bool            // no more edges are added
	serving sync.WaitGroup  // counts the running edges; it grows only under mu, while closed is false
}

// ServeBroker connects to a broker, records which edge agents are there, and gives them their calls, until ctx is done.
// Meanwhile, Run records that this process can reach them. Only one process of the fleet may do so at a time. The
// records stay, and the next process continues with them. If there is none, the agents count as away after
// nodes.LinkLifetime.
func (s *Service) ServeBroker(ctx context.Context, c BrokerConfig) error {
	c.Timing.Call, c.Timing.Silence, c.Timing.LateReport = cmp.Or(c.Timing.Call, mqtt.Timeout), cmp.Or(c.Timing.Silence, edgeSilence), cmp.Or(c.Timing.LateReport, edgeLateReport)
	b := &broker{Service: s, cfg: c, newNameLimit: rate.NewLimiter(5, 50), edges: map[string]*edge{}, ignored: map[string]bool{}}
	defer s.followEdges(b)()
	if b.takeOverEdges(ctx) {
		b.keepConnected(ctx)
	}
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.serving.Wait()
	return nil
}

// followEdges passes the fleet's notifications on to a broker's edge agents, until the returned function is called.
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

// edge returns an edge agent; nil if this process doesn't serve one of that name.
func (b *broker) edge(name string) *edge {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.edges[name]
}

// allEdges returns the edge agents that this process serves.
func (b *broker) allEdges() (all []*edge) {
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

// takeOverEdges serves the recorded edge agents, including those that another process reached until now. So calls that
// were not sent yet are sent, although the agents may send nothing for a while. It returns false if ctx is done.
func (b *broker) takeOverEdges(ctx context.Context) bool {
	for {
		all, err := b.List(ctx)
		if err == nil {
			for _, n := range all {
				if n.IsKeyless() {
					b.mu.Lock()
					b.addEdge(ctx, n.Name, n)
					b.mu.Unlock()
				}
			}
			return ctx.Err() == nil
		}
		if !b.pause(ctx, storeRetryDelay) {
			return false
		}
		b.Service.cfg.Log.Warn("the edge agents that are known cannot be read; trying again", slog.Any("error", err))
	}
}

// pause waits for a time. It returns false if ctx is done.
func (b *broker) pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// addEdge starts to serve an edge agent. The caller holds mu.
func (b *broker) addEdge(ctx context.Context, name string, n Node) *edge {
	e := newEdge(b, name, n)
	b.edges[name] = e
	b.serving.Go(func() { e.run(ctx) })
	return e
}

// keepConnected connects to the broker whenever there is no connection, until ctx is done.
func (b *broker) keepConnected(ctx context.Context) {
	log := b.Service.cfg.Log
	for wait := minRedialDelay; ctx.Err() == nil; {
		conn, err := b.cfg.Server.Dial(ctx, func(m mqtt.Message) { b.receive(ctx, m) })
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("the MQTT broker cannot be reached; trying again", slog.Any("error", err))
			}
			b.pause(ctx, wait)
			wait = min(2*wait, maxRedialDelay)
			continue
		}
		wait = minRedialDelay
		log.Info("connected to the MQTT broker")
		b.setConnection(conn)
		select {
		case <-conn.Lost():
			log.Warn("the connection to the MQTT broker is lost", slog.Any("error", conn.Err()))
		case <-ctx.Done():
		}
		b.setConnection(nil)
		conn.Close()
		b.pause(ctx, minRedialDelay)
	}
}

// setConnection sets the connection over which calls are sent; nil means that there is none.
func (b *broker) setConnection(conn *mqtt.Conn) {
	b.mu.Lock()
	b.conn = conn
	b.mu.Unlock()
	for _, e := range b.allEdges() {
		notify(e.bell)
	}
}

// connection returns the connection to the broker; nil while there is none.
func (b *broker) connection() *mqtt.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conn
}

// receive passes a message on to its edge agent. It never waits: if there are too many messages, it drops some.
func (b *broker) receive(ctx context.Context, m mqtt.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.edges[m.Agent]
	if e == nil {
		if m.Kind == mqtt.KindReports || b.closed || ctx.Err() != nil || !b.mayAdd(m.Agent) {
			return
		}
		e = b.addEdge(ctx, m.Agent, Node{})
	}
	e.enqueue(m)
}

// mayAdd reports whether this process may serve one more edge agent. It logs once that an agent is ignored because no
// node can have its name. The caller holds mu.
func (b *broker) mayAdd(name string) bool {
	if !b.newNameLimit.Allow() {
		return false
	}
	if regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`).MatchString(name) && b.cfg.MayHaveName(name) {
		return len(b.edges) < maxEdges
	}
	if !b.ignored[name] && len(b.ignored) < maxEdges {
		b.ignored[name] = true
		b.Service.cfg.Log.Warn("an edge agent is ignored, because no node can have its name", slog.String("agent", clipName(name)))
	}
	return false
}

// removeEdge stops serving an edge agent.
func (b *broker) removeEdge(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.edges, name)
}
