package server

import (
	"parley/channels/owners"
	"parley/cmd/parley/server/nodelinks"
	"parley/tools/nodes/placed"
)

// newNodes returns the part that manages nodes.
func newNodes(on foundation, o *owners.Owners, hidden *secrets) *nodelinks.Nodes {
	return nodelinks.New(nodelinks.Config{
		Settings: on.settings.Load, Table: on.home.Store.Nodes(), Notes: on.home.Book, Events: on.home.Bus, Mail: on.home.Bus, Holds: on.home.Bus, Ready: on.home.MayUseNodes,
		Terminal: isOwnerTerminal, Tell: o.NotifyOnce, Count: on.metrics.NodeCall, Placed: placed.Tools(), Left: placed.Left(), Offered: placed.Offered, Links: on.role.Receives(), Redact: hidden.text, Point: on.point, Log: on.log,
	})
}
