// Package nodelinks is the part of a server that has to do with nodes, the devices that run calls for agents: it gives their
// tools to agents, and serves the API by which devices join and link, and owners accept them.
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

// Config holds the parts that the Nodes need.
type Config struct {
	Settings func() *config.Config
	Table    *stored.Table
	Notes    channels.Notes // keeps the fleet's key, and what owners were told
	Events   bus.Events
	Mail     bus.Bus // tells sessions that the nodes are back for which their turns wait
	// Ready returns why no node can be given calls now; "" if nodes can.
	Ready func(ctx context.Context) (why string, err error)
	// Terminal reports whether a session is one in the owner's terminal, where agents may use all nodes.
	Terminal func(session string) bool
	// Tell sends a text to the owners, once for each subject. If it fails, it may be called again.
	Tell  func(ctx context.Context, subject, text string) error
	Count func(node, result string, took time.Duration) // counts a call that has ended
	// Placed are the tools of agents that run on a node instead if the agent works there, and Left the names of those that
	// such an agent goes without, because they would only reach its workspace.
	Placed []tools.Spec
	Left   []string
	// Offered returns those of Placed that an ssh:// target may have, with a sandbox or without, as a node of this release
	// describes them.
	Offered func(sandboxed bool) []tools.Spec
	// Holds decides which process of the fleet has the connections to the MQTT broker, and which one to each ssh:// target.
	Holds bus.Holder
	// Redact removes secrets from what is logged.
	Redact func(text string) string
	// Links says that this process has the links of nodes.
	Links bool
	// Point, if set, is called at each step after which a test may kill the process.
	Point func(name string)
	Log   *slog.Logger
}

// Nodes are the nodes as agents, owners and devices reach them in this process.
type Nodes struct {
	*nodes.Service
	*waits.Waits
	// StartJob starts the commands that agents' tools on nodes run in the background. It is set before agents have tools.
	StartJob toolnodes.Starter
	cfg      Config
	tries    *rate.Limiter // of joining
	key      func(context.Context) (ed25519.PrivateKey, error)
	// reloaded has the ssh:// targets of settings that RunTargets has not heard of yet; one goroutine reloads.
	reloaded chan map[string]ssh.Target

	mu   sync.Mutex
	sets map[string]cachedTools // agents' tools, by the names of the nodes that they include
	told map[string]time.Time   // when the owners were last told about a node
}

// A cachedTools holds an agent's other tools together with those of nodes, and the version of the nodes that it was made for.
type cachedTools struct {
	version int64
	base    *tools.Set
	all     *tools.Set
}

// triesPerMinute is how often somebody may try to join through this process. A code has 50 bits and lasts ten minutes, so
// nobody guesses one.
const triesPerMinute = 30

// The subjects of the notes.
const (
	keySubject  = "nodes_key"  // about keyAbout: the seed of the key by which nodes know the fleet
	toldSubject = "nodes_told" // about a node: the set of tools that the owners were told of last
)

// keyAbout is what the note about the key is about: the fleet has one.
const keyAbout = "fleet"

// New makes the part.
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

// mayUse reports whether the agent that makes a call may use a node. A sub-agent may use only those that the agent which it
// works for may use, too.
func (n *Nodes) mayUse(call tools.Call, node string) bool {
	if call.Parent == "" {
		return n.mayUseIn(call.Session, node)
	}
	return mayUseFor(n, sessions.AgentOf(call.Session), call.Parent, node)
}

// Run looks after the links of this process, and after the turns that wait for nodes, until ctx is done.
func (n *Nodes) Run(ctx context.Context) error {
	var waking sync.WaitGroup
	defer waking.Wait()
	waking.Go(func() { _ = n.Waits.Run(ctx) }) // it ends with ctx, and with nil
	return n.Service.Run(ctx)
}

// WaitsIn reports whether a turn of a session waits for a node.
func (n *Nodes) WaitsIn(ctx context.Context, session string) (bool, error) {
	return n.cfg.Table.WaitsIn(ctx, session)
}

// mayUseIn reports whether the agent of a session that is no sub-agent's may use a node.
func (n *Nodes) mayUseIn(session, node string) bool {
	return n.cfg.Terminal(session) || n.cfg.Settings().MayUseNode(sessions.AgentOf(session), node)
}

// tellEvery is the shortest time between two texts about one node from this process.
const tellEvery = 10 * time.Minute

// tell tells the owners a text about a node that offers a set of tools, unless they were last told about the same set, or
// about this node less than tellEvery ago: a node may change what it offers again and again.
func (n *Nodes) tell(ctx context.Context, node, set, text string) {
	last, err := n.cfg.Notes.Noted(ctx, toldSubject, node)
	if err != nil || last.Value == digestOf(set) {
		return // the next link tells if the book has failed
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

// With returns base, an agent's other tools, as they are where the agent works (see InPlace), together with the tools of the
// nodes that it may use. They stay the same while a node is away. If owned is true, in the owner's terminal, these are the
// tools of all nodes.
func (n *Nodes) With(base *tools.Set, agent string, owned bool) *tools.Set {
	base, home := n.InPlace(base, agent), n.cfg.Settings().Agents[agent].Node()
	all, version := n.View()
	var has []nodes.Node
	var names []string // with who may approve their calls
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
			if one.Name == home { // these are there already, or the agent may not have them
				offered = slices.DeleteFunc(slices.Clone(offered), func(t toolnodes.Tool) bool { return n.isPlaced(t.Name) })
			}
			for _, t := range toolnodes.ToolsOf(n, device, offered) {
				if _, taken := base.Lookup(t.Spec().Name); !taken { // by a server or skill that came later
					more = append(more, t)
				}
			}
		}
		return base.With(append(more, toolnodes.New(n, digestOf(strings.Join(reached, "\n"))))...)
	})
}

// digestOf returns a short text that stands for a set of tools.
func digestOf(set string) string {
	sum := sha256.Sum256([]byte(set))
	return hex.EncodeToString(sum[:8])
}

// maxSets is how many sets are remembered, one for each group of agents with the same tools. Beyond it all are forgotten.
const maxSets = 64

// Gauges implements the server's interface for parts with metrics. Each process that has links says of all accepted nodes
// whether some process has their link.
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
