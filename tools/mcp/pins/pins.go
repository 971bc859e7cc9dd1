// Package pins remembers how the tools of servers described themselves when they were accepted, and sets aside
// those that have changed.
//
// Models read what a tool says about itself as if the operator had said it. So the first listing of a server that
// an operator has configured is accepted, and from then on a tool that is new, or describes itself or its arguments
// differently, is set aside until an owner accepts it. All processes share what is accepted.
package pins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"parley/tools/plainjson"
)

// A Tool is a tool as its MCP server describes it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"` // the JSON Schema of its arguments, compact, names sorted
}

// unescape removes escapes from the schema. Older releases stored the schema with escapes, which would make the
// tool differ from the one that is listed.
func (t *Tool) unescape() { t.Schema = plainjson.Unescape(t.Schema) }

// equals reports whether two tools look the same to a model: name, description and arguments.
func (t Tool) equals(other Tool) bool {
	return t.Name == other.Name && t.Description == other.Description && bytes.Equal(t.Schema, other.Schema)
}

// Digest returns a short text that changes whenever the description of the tool or of its arguments changes.
func (t Tool) Digest() string {
	sum := sha256.New()
	for _, part := range []string{t.Name, t.Description, string(t.Schema)} {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// A Store stores short texts for all processes. The key of each is a subject, which names a kind of note, and the
// thing that the note is about.
type Store interface {
	// SetNote replaces the stored value; "" removes it.
	SetNote(ctx context.Context, subject, about, value string) error
	// SetNoteOnce stores a value unless there is one, and returns the stored one.
	SetNoteOnce(ctx context.Context, subject, about, value string) (kept string, err error)
	// Noted returns all values with a subject, keyed by what they are about.
	Noted(ctx context.Context, subject string) (map[string]string, error)
}

// The subjects under which pins are stored.
const (
	acceptedSubject = "mcp-tools" // about SERVER: the tools that were accepted
	asideSubject    = "mcp-aside" // about SERVER/TOOL: a tool as it describes itself now
)

// ErrNoServer says that nothing is known about the server.
var ErrNoServer = errors.New("nothing is known about that server's tools yet")

// ErrNothing says that no tool is set aside that could be accepted.
var ErrNothing = errors.New("nothing is waiting to be accepted")

// ErrChanged says that a tool describes itself differently now than when somebody looked at it.
var ErrChanged = errors.New("the tool has changed since")

// Pins records which tools of all servers are accepted, and how they were described then. It may be used by several
// goroutines at once.
type Pins struct {
	store Store

	change  sync.Mutex // held by the one goroutine of this process that changes the store
	mu      sync.Mutex
	servers map[string]server
	version atomic.Int64
}

// A server holds what is known about the tools of one server. It is immutable.
type server struct {
	accepted []Tool
	aside    []Tool
	// listed contains the names in the last listing that this process has seen; nil before the first.
	listed map[string]bool
}

// New makes Pins that use a store.
func New(store Store) *Pins { return &Pins{store: store, servers: map[string]server{}} }

// Version returns a number that grows whenever OfferedTools may return something else.
func (p *Pins) Version() int64 { return p.version.Load() }

// Load reads from the store which tools are accepted and set aside, including what other processes have written
// there.
func (p *Pins) Load(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	return p.load(ctx)
}

// load is Load for callers that hold change.
func (p *Pins) load(ctx context.Context) error {
	kept, err := p.store.Noted(ctx, acceptedSubject)
	if err != nil {
		return fmt.Errorf("read which tools are accepted: %w", err)
	}
	beside, err := p.store.Noted(ctx, asideSubject)
	if err != nil {
		return fmt.Errorf("read which tools are set aside: %w", err)
	}
	servers := map[string]server{}
	for name, raw := range kept {
		var s server
		if err := json.Unmarshal([]byte(raw), &s.accepted); err != nil {
			return fmt.Errorf("read which tools of %s are accepted: %w", name, err)
		}
		for i := range s.accepted {
			s.accepted[i].unescape()
		}
		servers[name] = s
	}
	for about, raw := range beside {
		name, _, _ := strings.Cut(about, "/")
		s, known := servers[name]
		var t Tool
		if err := json.Unmarshal([]byte(raw), &t); err != nil || !known {
			continue // the next listing sets it aside again
		}
		t.unescape()
		s.aside = append(s.aside, t)
		servers[name] = s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := len(servers) != len(p.servers)
	for name, s := range servers {
		slices.SortFunc(s.aside, compareNames)
		old := p.servers[name]
		s.listed = old.listed
		changed = changed || !equal(s.accepted, old.accepted) || !equal(s.aside, old.aside)
		servers[name] = s
	}
	p.servers = servers
	if changed {
		p.version.Add(1)
	}
	return nil
}

func compareNames(a, b Tool) int { return strings.Compare(a.Name, b.Name) }

func equal(a, b []Tool) bool { return slices.EqualFunc(a, b, Tool.equals) }

// Observe compares the tools that a server lists now with those that were accepted. listed is sorted by name,
// without duplicates. It returns the names of the tools that it has newly set aside, which agents don't get until
// an owner accepts them. The first listing of a server is accepted as it is.
func (p *Pins) Observe(ctx context.Context, name string, listed []Tool) (setAside []string, err error) {
	p.change.Lock()
	defer p.change.Unlock()
	if _, known := p.lookup(name); !known {
		raw, err := plainjson.Marshal(listed)
		if err != nil {
			return nil, fmt.Errorf("write down the tools of %s: %w", name, err)
		}
		if _, err := p.store.SetNoteOnce(ctx, acceptedSubject, name, string(raw)); err != nil {
			return nil, fmt.Errorf("keep the tools of %s: %w", name, err)
		}
		if err := p.load(ctx); err != nil { // another process may have been first
			return nil, err
		}
	}
	s, known := p.lookup(name)
	if !known {
		return nil, ErrNoServer
	}
	names := map[string]bool{}
	for _, t := range listed {
		names[t.Name] = true
		fresh, err := p.compare(ctx, name, s, t)
		if err != nil {
			return setAside, err
		}
		if fresh {
			setAside = append(setAside, t.Name)
		}
	}
	if err := p.load(ctx); err != nil {
		return setAside, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s = p.servers[name]
	if s.listed == nil || len(s.listed) != len(names) || slices.ContainsFunc(listed, func(t Tool) bool { return !s.listed[t.Name] }) {
		p.version.Add(1)
	}
	s.listed = names
	p.servers[name] = s
	return setAside, nil
}

// compare sets a tool aside if it differs from the accepted one, and ends that if it equals the accepted one again.
// fresh reports whether the tool was newly set aside, or has another description than when it was set aside before.
func (p *Pins) compare(ctx context.Context, name string, s server, t Tool) (fresh bool, err error) {
	was, isKnown := findTool(s.accepted, t.Name)
	set, isAside := findTool(s.aside, t.Name)
	about := name + "/" + t.Name
	switch {
	case isKnown && was.equals(t) && isAside:
		err = p.store.SetNote(ctx, asideSubject, about, "")
	case isKnown && was.equals(t), isAside && set.equals(t):
	default:
		var raw []byte
		if raw, err = plainjson.Marshal(t); err == nil {
			err = p.store.SetNote(ctx, asideSubject, about, string(raw))
		}
		fresh = err == nil
	}
	if err != nil {
		return false, fmt.Errorf("set aside the tool %s of %s: %w", t.Name, name, err)
	}
	return fresh, nil
}

func findTool(all []Tool, name string) (Tool, bool) {
	i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return all[i], true
}

// lookup returns what is known about a server; false if nothing is.
func (p *Pins) lookup(name string) (server, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, known := p.servers[name]
	return s, known
}

// Accept accepts a tool that is set aside, as it describes itself now, or all such tools of a server if tool is "".
// With a digest, it accepts only a tool with that [Tool.Digest]. It returns the names of the tools that it
// accepted. Its errors are ErrNoServer, ErrNothing and ErrChanged, or the store's.
func (p *Pins) Accept(ctx context.Context, name, tool, digest string) ([]string, error) {
	p.change.Lock()
	defer p.change.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	s, known := p.lookup(name)
	if !known {
		return nil, ErrNoServer
	}
	next := slices.Clone(s.accepted)
	var names []string
	for _, t := range s.aside {
		if tool != "" && t.Name != tool {
			continue
		}
		if digest != "" && t.Digest() != digest {
			return nil, ErrChanged
		}
		names = append(names, t.Name)
		next = append(slices.DeleteFunc(next, func(old Tool) bool { return old.Name == t.Name }), t)
	}
	if len(names) == 0 {
		return nil, ErrNothing
	}
	slices.SortFunc(next, compareNames)
	raw, err := plainjson.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("write down the tools of %s: %w", name, err)
	}
	// If the process dies between the two writes, an accepted tool stays set aside until Observe corrects that.
	if err := p.store.SetNote(ctx, acceptedSubject, name, string(raw)); err != nil {
		return nil, fmt.Errorf("accept tools of %s: %w", name, err)
	}
	for _, accepted := range names {
		if err := p.store.SetNote(ctx, asideSubject, name+"/"+accepted, ""); err != nil {
			return nil, fmt.Errorf("accept tools of %s: %w", name, err)
		}
	}
	return names, p.load(ctx)
}

// OfferedTools returns the tools of a server that models are shown, sorted by name: those that were accepted, are
// not set aside, and were in the last listing that this process has seen.
func (p *Pins) OfferedTools(name string) []Tool {
	s, _ := p.lookup(name)
	return slices.DeleteFunc(slices.Clone(s.accepted), func(t Tool) bool {
		_, isAside := findTool(s.aside, t.Name)
		return isAside || s.listed != nil && !s.listed[t.Name]
	})
}

// SetAside returns the tools of a server that agents don't get until an owner accepts them.
func (p *Pins) SetAside(name string) []Tool {
	s, _ := p.lookup(name)
	return slices.Clone(s.aside)
}

// Before returns a tool of a server as it was accepted; false if it never was.
func (p *Pins) Before(name, tool string) (Tool, bool) {
	s, _ := p.lookup(name)
	return findTool(s.accepted, tool)
}

// Accepted reports whether a tool equals the accepted one and is not set aside.
func (p *Pins) Accepted(name string, t Tool) bool {
	s, _ := p.lookup(name)
	was, known := findTool(s.accepted, t.Name)
	_, isAside := findTool(s.aside, t.Name)
	return known && !isAside && was.equals(t)
}

// IsKnown reports whether anything is known about a server's tools.
func (p *Pins) IsKnown(name string) bool {
	_, known := p.lookup(name)
	return known
}
