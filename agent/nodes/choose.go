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

// choose returns the node that is to run a call of a tool, and the tool. Its error is for the model: nothing was done. If
// the node that was named is away, it is returned as well.
func (s *Service) choose(ctx context.Context, node, tool string, call tools.Call) (string, nodes.Tool, error) {
	capability, isAny := strings.CutPrefix(node, nodes.Any)
	n, err := Node{}, stored.ErrUnknown
	if !isAny { // alone: there may be a thousand nodes
		n, err = s.Find(ctx, node)
	}
	if err != nil && !errors.Is(err, stored.ErrUnknown) {
		return "", nodes.Tool{}, s.storeFailed(err)
	}
	if err != nil || n.State != stored.Accepted || !s.cfg.May(call, n.Name) {
		all, err := s.usable(ctx, call)
		switch {
		case err != nil:
			return "", nodes.Tool{}, err
		case isAny:
			return s.chooseAny(ctx, withTool(all, capability, tool), call, capability, tool)
		}
		return "", nodes.Tool{}, tools.Errorf(tools.NotFound, textNoSuchNode, tools.Clip(node, 64), names(all))
	}
	t, has := n.tool(tool)
	switch {
	case !has:
		return "", t, tools.Errorf(tools.NotFound, textNoSuchTool, n.Name, tools.Clip(tool, 64))
	case n.Process == "":
		return n.Name, t, s.cfg.away([]Node{n}, call, tools.Errorf(tools.NodeAway, textAway, n.Name, sinceText(n.LinkChanged)))
	}
	return n.Name, t, nil
}

// away returns the error of a call if the nodes that could run it are away. If turns wait for some of these, the call is
// postponed until the first of them is back, for the longest of their times, counted from the first attempt.
func (c *Config) away(all []Node, call tools.Call, failed *tools.Error) error {
	var waitedFor []Node
	var longest time.Duration
	for _, n := range all {
		if wait := c.Wait(n.Name); wait > 0 {
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
			later.OneOf = append(later.OneOf, n.Name)
		}
	}
	return later
}

// withTool returns those of some nodes that have a capability and a tool.
func withTool(all []Node, capability, tool string) []Node {
	return slices.DeleteFunc(all, func(n Node) bool { _, has := n.tool(tool); return !has || !n.has(capability) })
}

// chooseAny returns the least busy of those nodes that are here, of all that have a capability and a tool. If all are away, the
// call may be postponed instead.
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
		return "", t, s.cfg.away(all, call, tools.Errorf(tools.NodeAway, textAllAway, names(all)))
	}
	return "", t, tools.Errorf(tools.NotFound, textNobodyHas, tools.Clip(capability, 64), tools.Clip(tool, 64))
}

// names lists the names of nodes for a model.
func names(all []Node) string {
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
