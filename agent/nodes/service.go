package nodes

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes/wire"
)

// Config holds what a Service needs.
type Config struct {
	Registry Registry
	Links    Links
	Calls    Calls
	Events   bus.Events
	// Key returns the fleet's private key, with which the server proves its identity to nodes.
	Key func(ctx context.Context) (ed25519.PrivateKey, error)
	// Process is the id of this process. No other process ever has the same one.
	Process string
	// Ready returns the reason why nodes can't be given calls now; "" if they can.
	Ready func(ctx context.Context) (why string, err error)
	// MayUse reports whether the agent that makes a call may use a node.
	MayUse func(call tools.Call, node string) bool
	// WaitTime returns how long a turn waits for a node that is away; 0 if it doesn't wait. WaitOver is called when a
	// node is back or was removed, so that turns stop waiting for it.
	WaitTime func(node string) time.Duration
	WaitOver func()
	// Trusted reports whether the operator trusts a node's results.
	Trusted func(node string) bool
	// TellOwners sends the owners a text about a node, once for each set. The set names what the node offers.
	TellOwners func(ctx context.Context, node, set, text string)
	// CountCall counts a call by its result.
	CountCall func(node, result string, took time.Duration)
	Timing    wire.Timing
	// Point, if set, is called at each step after which a test may kill the process.
	Point func(name string)
	Log   *slog.Logger
}

// A Service gives calls to nodes, and serves the links of the nodes that have connected to this process.
type Service struct {
	cfg Config

	mu             sync.Mutex
	links          map[string]*link // by node
	broker         *broker          // nil unless this process has the connection to it
	closed         bool             // no more links are accepted
	serving        sync.WaitGroup   // counts the links; it grows only under mu, while closed is false
	buffers        sync.Pool        // of the links
	authenticating chan struct{}    // has an element for each node that is proving its identity

	waiting waiters
	view    view
	changed chan struct{} // has an element if the view may be outdated
}

// New makes a Service.
func New(c Config) *Service {
	if c.Point == nil {
		c.Point = func(string) {}
	}
	return &Service{cfg: c, links: map[string]*link{}, waiting: waiters{byCall: map[string][]*waiter{}}, changed: make(chan struct{}, 1), authenticating: make(chan struct{}, maxAuthenticating)}
}

// The feed over which a fleet's processes notify each other, and the types of its events. Tool is a node, and Call is
// the id of a call; in a nodeLinked event, Call is the process that has the link now.
const (
	nodesFeed = "nodes"

	callWaits    = "node_call"     // a call waits to be sent or canceled
	callEnded    = "node_outcome"  // a call's outcome is recorded
	callErased   = "node_erased"   // a call that may run was erased: the node is to end it
	callProgress = "node_progress" // Delta: what a running call reports
	nodeLinked   = "node_link"     // a node has a new link
	nodeChanged  = "node_change"   // a node has joined, was accepted or revoked, offers something else or is away
)

// emit notifies all processes. Waiters in this process learn at once that a call has ended, because the bus may delay
// events.
func (s *Service) emit(kind, node, call, delta string) {
	if kind == callEnded {
		s.waiting.ring(call)
	}
	s.cfg.Events.Emit(bus.Event{Type: kind, Route: bus.Address{Channel: nodesFeed}, Tool: node, Call: call, Delta: delta})
}

const (
	recordLinksEvery = stored.LinkLifetime / 3 // how often a process records that it has its links
	recheckEvery     = 2 * time.Second         // how often a waiter checks whether it has missed an event
)

// Run follows the feed, and maintains the links of this process, until ctx is done. Then it closes the links, whose
// nodes connect to another process, and returns nil once all their goroutines have ended.
func (s *Service) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { bus.Follow(ctx, s.cfg.Events, nodesFeed, s) })
	beside.Go(func() { s.keepView(ctx) })
	beside.Go(func() { s.keepLinks(ctx) })
	<-ctx.Done()
	s.mu.Lock()
	s.closed = true
	for _, l := range s.links {
		l.end()
	}
	s.mu.Unlock()
	s.serving.Wait()
	beside.Wait()
	return nil
}

// keepLinks records regularly that this process has its links and can reach its edge agents, and ends those that it
// should not have. If a process stands still for so long that others count its nodes as away, it records its links
// again when it continues.
func (s *Service) keepLinks(ctx context.Context) {
	every := time.NewTicker(recordLinksEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		links, edges := s.ownLinks(), s.edges()
		if len(links)+len(edges) == 0 {
			continue
		}
		if err := s.cfg.Links.Hold(ctx, s.cfg.Process, time.Now()); err != nil {
			if ctx.Err() == nil {
				s.cfg.Log.Warn("it cannot be recorded which nodes are here", slog.Any("error", err))
			}
			continue
		}
		for _, l := range links {
			s.recheck(ctx, l)
		}
		for _, e := range edges {
			notify(e.check)
		}
	}
}

// recheck ends a link that this process must not have, because its node was revoked or is linked elsewhere.
func (s *Service) recheck(ctx context.Context, l *link) {
	n, err := s.cfg.Registry.Node(ctx, l.node)
	if err != nil && !errors.Is(err, stored.ErrUnknown) {
		return // try again at the next check
	}
	if l.isRecorded() && (err != nil || n.State == stored.Revoked || n.Process != s.cfg.Process) {
		l.end()
	}
}

// ownLinks returns the links of this process.
func (s *Service) ownLinks() (all []*link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.links {
		all = append(all, l)
	}
	return all
}

// edges returns the edge agents that this process serves.
func (s *Service) edges() []*edge {
	s.mu.Lock()
	b := s.broker
	s.mu.Unlock()
	return b.allEdges()
}

// Heard implements bus.Listener.
func (s *Service) Heard(e bus.Event) {
	s.mu.Lock()
	l, b := s.links[e.Tool], s.broker
	s.mu.Unlock()
	over := b.edge(e.Tool)
	switch e.Type {
	case callWaits:
		if l != nil {
			l.ring()
		}
		if over != nil {
			notify(over.bell)
		}
	case callErased:
		if l != nil {
			l.noteErased(e.Call)
		}
	case callEnded:
		s.waiting.ring(e.Call)
	case callProgress:
		s.waiting.reportProgress(e.Call, e.Delta)
	case nodeLinked:
		if l != nil && e.Call != s.cfg.Process {
			l.recheck()
		}
	case nodeChanged:
		if l != nil {
			l.recheck()
		}
		if over != nil {
			notify(over.check)
		}
		s.requestReload()
	}
}

// Missed implements bus.Listener: any event may have been lost.
func (s *Service) Missed() {
	for _, l := range s.ownLinks() {
		l.recheck()
		l.ring()
	}
	for _, over := range s.edges() {
		notify(over.check)
		notify(over.bell)
	}
	s.waiting.ringAll()
	s.requestReload()
}
