package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes"
)

// A Node is a node with what it offers.
type Node struct {
	stored.Node
	Offer nodes.Offer
	// Tools are the node's tools that an owner has accepted, and Unaccepted the others. Both are sorted by name.
	Tools, Unaccepted []nodes.Tool
}

// decodeNode decodes a node's record. A record of another release that can't be decoded becomes a node without tools.
func decodeNode(n stored.Node) Node {
	all := Node{Node: n}
	accepted := map[string]string{}
	_ = json.Unmarshal(n.Accepted, &accepted) // empty before somebody has accepted it
	_ = json.Unmarshal(n.Offer, &all.Offer)   // empty before its first link
	for _, t := range all.Offer.Tools {
		if n.State == stored.Accepted && accepted[t.Name] == t.Digest() {
			all.Tools = append(all.Tools, t)
		} else {
			all.Unaccepted = append(all.Unaccepted, t)
		}
	}
	for _, list := range [][]nodes.Tool{all.Tools, all.Unaccepted} {
		slices.SortFunc(list, func(a, b nodes.Tool) int { return strings.Compare(a.Name, b.Name) })
	}
	return all
}

// has reports whether the node says that it has a capability.
func (n Node) has(capability string) bool { return slices.Contains(n.Offer.Capabilities, capability) }

// tool returns the node's accepted tool of that name; false if it has none.
func (n Node) tool(name string) (nodes.Tool, bool) {
	i := slices.IndexFunc(n.Tools, func(t nodes.Tool) bool { return t.Name == name })
	if i < 0 {
		return nodes.Tool{}, false
	}
	return n.Tools[i], true
}

// unacceptedSet returns a text that identifies the node's offered tools that no owner has accepted; "" if there are
// none.
func (n Node) unacceptedSet() string {
	var digests []string
	for _, t := range n.Unaccepted {
		digests = append(digests, t.Digest())
	}
	if len(digests) == 0 && n.State == stored.Waiting {
		return string(stored.Waiting)
	}
	return strings.Join(digests, " ")
}

// A view is this process's copy of the nodes, so that turns need not read the store. It is kept up to date by events,
// and is read again from time to time.
type view struct {
	mu      sync.Mutex
	nodes   []Node
	version int64 // grows whenever agents may get other tools
}

// Load reads all nodes into the view.
func (s *Service) Load(ctx context.Context) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}
	compactNodes(all)
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if !slices.EqualFunc(all, s.view.nodes, sameTools) {
		s.view.version++
	}
	s.view.nodes = all
	return nil
}

// compactNodes drops the parts of nodes that no user of the view reads, and shares equal texts: there may be a thousand
// nodes of one kind.
func compactNodes(all []Node) {
	texts := map[string]string{}
	once := func(text string) string {
		kept, known := texts[text]
		if !known {
			texts[text], kept = text, text
		}
		return kept
	}
	schemas := map[string]json.RawMessage{}
	for i := range all {
		n := &all[i]
		n.Node.Offer, n.Accepted, n.Offer.Tools = nil, nil, nil
		for _, list := range [][]nodes.Tool{n.Tools, n.Unaccepted} {
			for j := range list {
				t := &list[j]
				t.Name, t.Description = once(t.Name), once(t.Description)
				schema, known := schemas[string(t.Schema)]
				if !known {
					schemas[string(t.Schema)], schema = t.Schema, t.Schema
				}
				t.Schema = schema
			}
		}
	}
}

// sameTools reports whether agents get the same tools from two nodes.
func sameTools(a, b Node) bool {
	return a.Name == b.Name && bytes.Equal(a.Key, b.Key) && a.State == b.State && slices.EqualFunc(a.Tools, b.Tools, func(a, b nodes.Tool) bool {
		return a.Digest() == b.Digest() && a.Limit() == b.Limit()
	})
}

// View returns the nodes in this process's view, sorted by name, without the records of their offers, and a number that
// grows whenever agents may get other tools from them. It doesn't read the store.
func (s *Service) View() ([]Node, int64) {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	return s.view.nodes, s.view.version
}

// List reads all nodes, sorted by name.
func (s *Service) List(ctx context.Context) ([]Node, error) {
	found, err := s.cfg.Registry.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	all := make([]Node, len(found))
	for i, n := range found {
		all[i] = decodeNode(n)
	}
	return all, nil
}

// Find reads one node. It returns nodes.ErrUnknown if there is no node with that name.
func (s *Service) Find(ctx context.Context, name string) (Node, error) {
	n, err := s.cfg.Registry.Node(ctx, name)
	return decodeNode(n), err
}

// requestReload has the view read again soon.
func (s *Service) requestReload() { notify(s.changed) }

const viewReloadEvery = time.Minute // how often the view is read again while there are nodes: an event may get lost

// keepView keeps the view up to date until ctx is done.
func (s *Service) keepView(ctx context.Context) {
	every := time.NewTicker(viewReloadEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.changed:
		case <-every.C:
			if all, _ := s.View(); len(all) == 0 {
				continue
			}
		}
		if err := s.Load(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("it cannot be read which nodes there are", slog.Any("error", err))
			time.AfterFunc(recheckEvery, s.requestReload)
		}
	}
}

// isPure reports whether the tool of a call says that it is pure, as far as this process knows.
func (s *Service) isPure(c stored.Call) bool {
	all, _ := s.View()
	for _, n := range all {
		if n.Name == c.Node {
			t, _ := n.tool(c.Tool)
			return t.Pure
		}
	}
	return false
}

// Nodes implements nodes.Backend.
func (s *Service) Nodes(ctx context.Context, call tools.Call) ([]nodes.NodeStatus, error) {
	all, err := s.usableNodes(ctx, call)
	if err != nil {
		return nil, err
	}
	list := make([]nodes.NodeStatus, len(all))
	for i, n := range all {
		open, err := s.cfg.Calls.Open(ctx, n.Name)
		if err != nil {
			return nil, s.storeFailed(err)
		}
		list[i] = nodes.NodeStatus{
			Name: n.Name, IsHere: n.Process != "", Since: n.LinkChanged, Tools: n.Tools, Capabilities: n.Offer.Capabilities, Platform: n.Offer.Platform,
			Trusted: !n.IsKeyless() && s.cfg.Trusted(n.Name), Running: len(open),
		}
	}
	return list, nil
}

// usableNodes reads the accepted nodes that the caller's agent may use.
func (s *Service) usableNodes(ctx context.Context, call tools.Call) ([]Node, error) {
	all, err := s.List(ctx)
	if err != nil {
		return nil, s.storeFailed(err)
	}
	return slices.DeleteFunc(all, func(n Node) bool { return n.State != stored.Accepted || !s.cfg.MayUse(call, n.Name) }), nil
}
