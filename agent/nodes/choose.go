package nodes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	stored "parley/sessions/nodes"
	"parley/tools"
	"parley/tools/nodes"
)

// choose returns the node and the tool for a call. Its error is for the model: nothing was done. If the named node is
// away, choose returns the node along with the error.
func (s *Service) choose(ctx context.Context, node, tool string, call tools.Call) (string, nodes.Tool, error) {
	capability, isAny := strings.CutPrefix(node, nodes.AnyPrefix)
	n, err := Node{}, stored.ErrUnknown
	if !isAny { // read only this node, because there may be a thousand
		n, err = s.Find(ctx, node)
	}
	if err != nil && !errors.Is(err, stored.ErrUnknown) {
		return "", nodes.Tool{}, s.storeFailed(err)
	}
	if err != nil || n.State != stored.Accepted || !s.cfg.MayUse(call, n.Name) {
		all, err := s.usableNodes(ctx, call)
		switch {
		case err != nil:
			return "", nodes.Tool{}, err
		case isAny:
			return s.chooseAny(ctx, nodesWithTool(all, capability, tool), call, capability, tool)
		}
		return "", nodes.Tool{}, tools.Errorf(tools.NotFound, textNoSuchNode, tools.Clip(node, 64), nameList(all))
	}
	t, has := n.tool(tool)
	switch {
	case !has:
		return "", t, tools.Errorf(tools.NotFound, textNoSuchTool, n.Name, tools.Clip(tool, 64))
	case n.Process == "":
		return n.Name, t, s.cfg.awayError([]Node{n}, call, tools.Errorf(tools.NodeAway, textNodeAway, n.Name, sinceText(n.LinkChanged)))
	}
	return n.Name, t, nil
}

// awayError returns the error of a call if the nodes that could run it are away. If turns wait for some of these nodes,
// the call is postponed until the first one is back, or until the longest of their wait times is over, counted from the
// first attempt.
func (c *Config) awayError(all []Node, call tools.Call, failed *tools.Error) error {
	var waitedFor []Node
	var longest time.Duration
	for _, n := range all {
		if wait := c.WaitTime(n.Name); wait > 0 {
			waitedFor, longest = append(waitedFor, n), max(longest, wait)
		}
	}
	until := call.WaitsUntil
	if until.IsZero() {
		until = time.Now().Add(longest)
	}
	if longest <= 0 || !time.Now().Before(until) {
		return failed
	}
	later := &tools.Postponed{Node: waitedFor[0].Name, Since: waitedFor[0].LinkChanged, Until: until, Failed: failed}
	if len(waitedFor) > 1 {
		for _, n := range waitedFor {
			later.Alternatives = append(later.Alternatives, n.Name)
		}
	}
	return later
}

// nodesWithTool returns those of some nodes that have a capability and a tool.
func nodesWithTool(all []Node, capability, tool string) []Node {
	return slices.DeleteFunc(all, func(n Node) bool { _, has := n.tool(tool); return !has || !n.has(capability) })
}

// chooseAny returns the least busy node that is here, of all nodes with the capability and the tool. If all are away,
// the call may be postponed instead.
func (s *Service) chooseAny(ctx context.Context, all []Node, call tools.Call, capability, tool string) (name string, t nodes.Tool, err error) {
	least := 0
	for _, n := range all {
		if n.Process == "" {
			continue
		}
		open, err := s.cfg.Calls.Open(ctx, n.Name)
		if err != nil {
			return "", t, s.storeFailed(err)
		}
		if name == "" || len(open) < least {
			name, least = n.Name, len(open)
			t, _ = n.tool(tool)
		}
	}
	switch {
	case name != "":
		return name, t, nil
	case len(all) > 0:
		return "", t, s.cfg.awayError(all, call, tools.Errorf(tools.NodeAway, textAllAway, nameList(all)))
	}
	return "", t, tools.Errorf(tools.NotFound, textNoNodeHas, tools.Clip(capability, 64), tools.Clip(tool, 64))
}

// nameList lists the names of nodes for a model.
func nameList(all []Node) string {
	if len(all) == 0 {
		return "none"
	}
	list := make([]string, len(all))
	for i, n := range all {
		list[i] = n.Name
	}
	return strings.Join(list, ", ")
}

// sinceText says since when a node is away.
func sinceText(at time.Time) string {
	if at.IsZero() {
		return "it joined"
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}
