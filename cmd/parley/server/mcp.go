package server

import (
	"context"

	"parley/agent/metrics"
	"parley/channels/owners"
	"parley/cmd/parley/data/attachments"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/mcpservers"
	"parley/tools"
	"parley/tools/sandbox"
)

// newMCP returns the MCP servers in the settings. Those that are programs run in box.
func newMCP(on foundation, box sandbox.Sandbox, o *owners.Owners, w *home.CallWorkspaces, where *home.CommandPlaces, keeper *attachments.Keeper) *mcpservers.Servers {
	return mcpservers.New(mcpservers.Config{
		Settings: on.settings.Load(), Sandbox: box, Notes: on.home.Book, Bus: on.home.Bus, Changed: w.MarkAfterJob, Tell: o.Notify, Elsewhere: on.role == Gateway, Version: on.version, Log: on.log,
		Place: where.ForWorkspace, Keep: w.KeepServerFile,
		Show: func(ctx context.Context, call tools.Call, path string) (tools.Picture, error) {
			p, err := keeper.Show(ctx, call, path)
			return p.Picture, err
		},
	})
}

// mcpRunning is the part that runs the MCP servers.
type mcpRunning struct {
	*mcpservers.Servers
	role Role
}

// Gauges implements measured. A process that uses no servers has no figures.
func (m mcpRunning) Gauges() []metrics.Gauge {
	return []metrics.Gauge{{Name: "mcp_up", Help: textServerReached, Label: "server", Values: func() map[string]float64 {
		up := map[string]bool{}
		if m.role.Works() {
			for _, state := range m.States() {
				up[state.Name] = state.Reachable
			}
		}
		return metrics.UpValues(up)
	}}}
}
