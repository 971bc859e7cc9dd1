// Package nodelinks connects a server with nodes, the devices that run calls for agents: it gives their tools to
// agents, and serves the API by which devices join and link, and owners accept them.
package nodelinks

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/agent/metrics"
	"parley/agent/nodes"
	"parley/agent/nodes/waits"
	"parley/bus"
	"parley/channels"
	"parley/cmd/parley/config"
	"parley/sessions"
	stored "parley/sessions/nodes"
	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/ssh"
)

// Config holds what Nodes needs from the rest of the program.
type Config struct {
	Settings func() *config.Config
	Table    *stored.Table
	Notes    channels.Notes // stores the fleet's key, and what owners were told
	Events   bus.Events
	Mail     bus.Bus // notifies sessions when the nodes that their turns wait for are back
	// Ready returns why no node can be given calls now; "" if nodes can.
	Ready func(ctx context.Context) (why string, err error)
	// Terminal reports whether a session is in the owner's terminal, where agents may use all nodes.
	Terminal func(session string) bool
	// Tell sends a text to the owners, once for each subject. If it fails, it may be called again.
	Tell  func(ctx context.Context, subject, text string) error
	Count func(node, result string, took time.Duration) // counts a call that has ended
	// Placed are the agents' tools that run on a node if the agent works there. Left are the names of tools that such
	// an agent doesn't get, because they would only reach its workspace.
	Placed []tools.Spec
	Left   []string
	// Offered returns the tools in Placed that an ssh:// target may have, with or without a sandbox, as a node of this
	// release describes them.
	Offered func(sandboxed bool) []tools.Spec
	// Holds decides which process of the fleet has the connections to the MQTT broker and to each ssh:// target.
	Holds bus.Holder
	// Redact removes secrets from what is logged.
	Redact func(text string) string
	// Links says that this process accepts the links of nodes.
	Links bool
	// Point, if set, is called at each step after which a test may kill the process.
	Point func(name string)
	Log   *slog.Logger
}

// Nodes gives agents, owners and devices access to the nodes in this process.
type Nodes struct {
	*nodes.Service
	*waits.Waits
	// StartJob starts background commands for agents' tools on nodes. It is set before agents get tools.
	StartJob toolnodes.Starter
	cfg      Config
	tries    *rate.Limiter // limits attempts to join
	key      func(context.Context) (ed25519.PrivateKey, error)
	// reloaded contains the ssh:// targets of new settings until RunTargets reads them. Only one goroutine reloads.
	reloaded chan map[string]ssh.Target

	mu   sync.Mutex
	sets map[string]cachedTools // agents' tools, by the names of the nodes that they include
	told map[string]time.Time   // when the owners were last told about a node
}

// A cachedTools holds an agent's tools together with those of nodes, and the version of the nodes that it was made
// for.
type cachedTools struct {
	version int64
	base    *tools.Set
	all     *tools.Set
}

// triesPerMinute is how many attempts to join this process allows per minute. A code has 50 bits and is valid for ten
// minutes, so it can't be guessed.
const triesPerMinute = 30

// These are the subjects of the notes.
const (
	keySubject  = "nodes_key"  // about keyAbout: the seed of the key by which nodes recognize the fleet
	toldSubject = "nodes_told" // about a node: the set of tools in the last notice to the owners
)

// keyAbout is the object of the note with the fleet's only key.
const keyAbout = "fleet"

// New returns Nodes.
func New(c Config) *Nodes {
	n := &Nodes{cfg: c, tries: rate.NewLimiter(rate.Every(time.Minute/triesPerMinute), triesPerMinute), sets: map[string]cachedTools{}, told: map[string]time.Time{}, reloaded: make(chan map[string]ssh.Target, 1)}
	n.key = nodes.FleetKey(func(ctx context.Context, value string) (string, error) {
		return c.Notes.SetNoteOnce(ctx, keySubject, keyAbout, value)
	})
	n.Waits = waits.New(c.Table, c.Mail, c.Point, c.Log)
	n.Service = nodes.New(nodes.Config{
		Registry: c.Table, Links: c.Table, Calls: c.Table, Events: c.Events, Process: rand.Text(), Ready: c.Ready, MayUse: n.mayUse, TellOwners: n.tell, CountCall: c.Count, Point: c.Point, Log: c.Log,
		Trusted:  func(node string) bool { return c.Settings().Nodes[node].Trusted },
		WaitOver: n.Look,
		WaitTime: func(node string) time.Duration { return c.Settings().Nodes[node].Wait },
		Key:      n.key,
	})
	return n
}

// mayUse reports whether the agent that makes a call may use a node. A sub-agent may use only nodes that the agent it
// works for may use, too.
func (n *Nodes) mayUse(call tools.Call, node string) bool {
	if call.Parent == "" {
		return n.mayUseIn(call.Session, node)
	}
	return mayUseFor(n, sessions.AgentOf(call.Session), call.Parent, node)
}

// Run manages the links of this process, and wakes turns that wait for nodes, until ctx is done.
func (n *Nodes) Run(ctx context.Context) error {
	var waking sync.WaitGroup
	defer waking.Wait()
	waking.Go(func() { _ = n.Waits.Run(ctx) }) // it ends with ctx and returns nil
	return n.Service.Run(ctx)
}

// WaitsIn reports whether a turn of a session waits for a node.
func (n *Nodes) WaitsIn(ctx context.Context, session string) (bool, error) {
	return n.cfg.Table.WaitsIn(ctx, session)
}

// mayUseIn reports whether the agent of a session may use a node. The session must not be a sub-agent's.
func (n *Nodes) mayUseIn(session, node string) bool {
	return n.cfg.Terminal(session) || n.cfg.Settings().MayUseNode(sessions.AgentOf(session), node)
}

// tellEvery is the shortest time between two notices about one node from this process.
const tellEvery = 10 * time.Minute

// tell sends the owners a notice about a node that offers a set of tools, unless the last notice was about the same
// set, or was sent less than tellEvery ago, because a node may change its offer again and again.
func (n *Nodes) tell(ctx context.Context, node, set, text string) {
	last, err := n.cfg.Notes.Noted(ctx, toldSubject, node)
	if err != nil || last.Value == digestOf(set) {
		return // if the book has failed, the next link sends the notice
	}
	n.mu.Lock()
	soon := time.Since(n.told[node]) < tellEvery
	n.mu.Unlock()
	if soon {
		return
	}
	if err := n.cfg.Tell(ctx, "#node/"+node+"/"+digestOf(set), text); err != nil {
		n.cfg.Log.Warn("the owners could not be told about a node", slog.String("node", node), slog.Any("error", err))
		return
	}
	n.mu.Lock()
	n.told[node] = time.Now()
	n.mu.Unlock()
	if err := n.cfg.Notes.SetNote(ctx, toldSubject, node, digestOf(set)); err != nil {
		n.cfg.Log.Warn("it cannot be recorded what the owners were told about a node", slog.String("node", node), slog.Any("error", err))
	}
}

// With returns an agent's tools base, placed where the agent works (see InPlace), together with the tools of the
// nodes that it may use. They stay the same while a node is not connected. If owned is true, in the owner's terminal,
// these are the tools of all nodes.
func (n *Nodes) With(base *tools.Set, agent string, owned bool) *tools.Set {
	base, home := n.InPlace(base, agent), n.cfg.Settings().Agents[agent].Node()
	all, version := n.View()
	var has []nodes.Node
	var names []string // names of the nodes, with the approvers of their calls
	for _, one := range all {
		if one.State == stored.Accepted && (owned || n.cfg.Settings().MayUseNode(agent, one.Name)) {
			has = append(has, one)
			approvers := n.cfg.Settings().Nodes[one.Name].Approvers
			names = append(names, fmt.Sprintf("%s %t %q", one.Name, approvers != nil, approvers))
		}
	}
	if len(has) == 0 {
		return base
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cachedSet(fmt.Sprintf("%p of %s %s", base, home, strings.Join(names, " ")), version, base, func() *tools.Set {
		reached := slices.Clone(names)
		var more []tools.Tool
		for _, one := range has {
			device, offered := toolnodes.Device{Name: one.Name, Key: one.Key}, one.Tools
			reached = append(reached, device.Version(offered))
			if one.Name == home { // the agent already has these, or may not have them
				offered = slices.DeleteFunc(slices.Clone(offered), func(t toolnodes.Tool) bool { return n.isPlaced(t.Name) })
			}
			for _, t := range toolnodes.ToolsOf(n, device, offered) {
				if _, taken := base.Lookup(t.Spec().Name); !taken { // unless a server or skill that came later has the name
					more = append(more, t)
				}
			}
		}
		return base.With(append(more, toolnodes.New(n, digestOf(strings.Join(reached, "\n"))))...)
	})
}

// digestOf returns a short text that identifies a set of tools.
func digestOf(set string) string {
	sum := sha256.Sum256([]byte(set))
	return hex.EncodeToString(sum[:8])
}

// maxSets is how many sets are cached, one for each group of agents with the same tools. If there are more, the cache
// is cleared.
const maxSets = 64

// Gauges returns the metrics. A process that accepts links reports for each accepted node whether any process has its
// link.
func (n *Nodes) Gauges() []metrics.Gauge {
	return []metrics.Gauge{{Name: "node_up", Help: textNodeUp, Label: "node", Values: func() map[string]float64 {
		up := map[string]bool{}
		if all, _ := n.View(); n.cfg.Links {
			for _, one := range all {
				if one.State == stored.Accepted {
					up[one.Name] = one.Process != ""
				}
			}
		}
		return metrics.UpValues(up)
	}}}
}
