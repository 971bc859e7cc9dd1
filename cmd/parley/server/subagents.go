package server

import (
	"context"
	"maps"
	"slices"

	"parley/agent/subagents"
	"parley/bus"
	"parley/channels/heartbeat"
	"parley/channels/webhook/events"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/server/nodelinks"
	"parley/tools"
)

// newSubAgents returns the service that hands tasks to sub-agents.
func newSubAgents(on foundation, w *home.CallWorkspaces, talk *conversations, who *turnAdmission, e *erasing, nodes func() *nodelinks.Nodes) *subagents.Service {
	return subagents.New(subagents.Config{
		Table: on.home.Store.SubAgents(), Bus: on.home.Bus, Ready: on.home.MayUseSubAgents, Admit: who.admit, Copy: copyTo(w),
		MaySpawn: func(agent string) []string {
			may := append([]string{agent}, on.settings.Load().Agents[agent].MaySpawn...)
			slices.Sort(may)
			return slices.Compact(may)
		},
		Abilities: func(call tools.Call, agent string) (can []subagents.Ability) {
			away := nodelinks.AbilitiesOf(nodes(), agent, call)
			for _, name := range slices.Sorted(maps.Keys(away)) {
				can = append(can, subagents.Ability{Name: name, Away: away[name]})
			}
			return can
		},
		Erase: func(ctx context.Context, sessions []string) ([]string, error) {
			return e.eraser().Sessions(ctx, sessions)
		},
		Sessions: on.home.Store,
		Describe: func(name string) subagents.AgentInfo {
			a := on.settings.Load().Agents[name]
			return subagents.AgentInfo{Model: a.Model, Capabilities: a.Capabilities, Prompt: a.Prompt}
		},
		AnswersAt: func(at bus.Address) bool {
			session, err := talk.replySession(context.Background(), at)
			return (session != "" || err != nil) && at.Channel != events.Name && at.Channel != heartbeat.Name
		},
		CountEnded: on.metrics.TaskEnded, Point: on.point, Log: on.log,
	})
}

// copyTo returns a function that copies files from the workspace of the session that made a call to that of another
// session.
func copyTo(w *home.CallWorkspaces) func(ctx context.Context, call tools.Call, to string, files []string) error {
	return func(ctx context.Context, call tools.Call, to string, files []string) error {
		from, err := w.Open(ctx, call)
		if err != nil {
			return err
		}
		call.Session = to
		dir, err := w.Open(ctx, call)
		if err != nil {
			return err
		}
		return (&subagents.Copier{From: from, To: dir}).Copy(ctx, files)
	}
}
