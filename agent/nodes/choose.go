package nodes

import (
	"context"
	"errors"
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
			return s.chooseAny(ctx, all, capability, tool)
		}
		return "", nodes.Tool{}, tools.Errorf(tools.NotFound, textNoSuchNode, tools.Clip(node, 64), names(all))
	}
	t, has := n.tool(tool)
	switch {
	case !has:
		return "", t, tools.Errorf(tools.NotFound, textNoSuchTool, n.Name, tools.Clip(tool, 64))
	case n.Process == "":
		return n.Name, t, away(n, call, s.cfg.Wait(n.Name))
	}
	return n.Name, t, nil
}

// away returns the error of a call for a node that is away: if turns wait for the node, the call is postponed for that time,
// counted from the first attempt.
func away(n Node, call tools.Call, wait time.Duration) error {
	failed := tools.Errorf(tools.NodeAway, textAway, n.Name, sinceText(n.Since))
	until := call.WaitsUntil
	if until.IsZero() {
		until = time.Now().Add(wait)
	}
	if wait <= 0 || !time.Now().Before(until) {
		return failed
	}
	return &tools.Postponed{Node: n.Name, Since: n.Since, Until: until, Failed: failed}
}

// chooseAny returns the least busy of those nodes that are here and have a capability and a tool.
func (s *Service) chooseAny(ctx context.Context, all []Node, capability, tool string) (name string, t nodes.Tool, err error) {
	var away []string
	least := 0
	for _, n := range all {
		offered, has := n.tool(tool)
		if !has || !n.has(capability) {
			continue
		}
		if n.Process == "" {
			away = append(away, n.Name)
			continue
		}
		open, err := s.cfg.Calls.Open(ctx, n.Name)
		if err != nil {
			return "", t, s.storeFailed(err)
		}
		if name == "" || len(open) < least {
			name, t, least = n.Name, offered, len(open)
		}
	}
	switch {
	case name != "":
		return name, t, nil
	case len(away) > 0:
		return "", t, tools.Errorf(tools.NodeAway, textAllAway, strings.Join(away, ", "))
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
