package subagents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"parley/sessions/subagents"
	"parley/tools"
)

// An Ability is something that an agent can do in a task, as a call names it in needs.
type Ability struct {
	Name string
	Away bool // it takes a node, and all nodes that have it are away
}

// choose returns the name of the agent that gets a task: the one that the call names, or one that has the abilities
// that the task needs. If the call has recorded its task, it gets the same agent again. The error tells the model why
// no agent can do the task.
func (d *Service) choose(ctx context.Context, call tools.Call, what tools.Task) (string, error) {
	may := d.cfg.MaySpawn(call.Agent)
	if len(what.Needs) == 0 {
		name := cmp.Or(what.Agent, call.Agent)
		if !slices.Contains(may, name) {
			return "", tools.Errorf(tools.InvalidArgs, "%q is no agent that may be given a task from here: there are %s", tools.Clip(name, 64), strings.Join(may, ", "))
		}
		return name, nil
	}
	known, err := d.cfg.Table.Get(ctx, subagents.ID(call.Session, call.Key))
	if !errors.Is(err, subagents.ErrNone) {
		return known.Agent, err
	}
	open, err := d.cfg.Table.OpenOf(ctx, call.Session)
	if err != nil {
		return "", fmt.Errorf("the sub-agents cannot be looked up now: %w", err)
	}
	busy := map[string]int{}
	for _, t := range open {
		busy[t.Agent]++
	}
	able := d.cfg.capableAgents(call, may, what.Needs)
	if len(able) == 0 {
		return "", tools.Errorf(tools.NotFound, "no agent that may be given a task from here can do all of this: %s. %s", tools.Clip(strings.Join(what.Needs, ", "), 300), d.cfg.describeAbilities(call, may))
	}
	best := slices.MinFunc(able, func(a, b candidate) int {
		switch {
		case a.away != b.away:
			return cmp.Compare(a.away, b.away)
		case busy[a.name] != busy[b.name]:
			return cmp.Compare(busy[a.name], busy[b.name])
		case a.name == call.Agent:
			return 1
		case b.name == call.Agent:
			return -1
		}
		return cmp.Compare(a.name, b.name)
	})
	d.cfg.Log.Info("a task goes to an agent that can do what it needs", slog.String("agent", best.name), slog.Any("needs", what.Needs), slog.String("session", call.Session), slog.String("call", call.ID))
	return best.name, nil
}

// A candidate is an agent that can do a task. away is how many of the needed abilities are those of nodes that are
// away.
type candidate struct {
	name string
	away int
}

// capableAgents returns those of the agents that have all abilities that a task needs.
func (c *Config) capableAgents(call tools.Call, agents, needs []string) (list []candidate) {
agents:
	for _, name := range agents {
		one, can := candidate{name: name}, c.Abilities(call, name)
		for _, need := range needs {
			i := slices.IndexFunc(can, func(a Ability) bool { return a.Name == need })
			if i < 0 {
				continue agents
			}
			if can[i].Away {
				one.away++
			}
		}
		list = append(list, one)
	}
	return list
}

// describeAbilities lists for a model what the agents can do to whom it may give tasks.
func (c *Config) describeAbilities(call tools.Call, agents []string) string {
	all := map[string]bool{}
	for _, name := range agents {
		for _, one := range c.Abilities(call, name) {
			all[one.Name] = true
		}
	}
	if len(all) == 0 {
		return "They name nothing that they can do: name the agent instead."
	}
	return "They can do: " + strings.Join(slices.Sorted(maps.Keys(all)), ", ") + "."
}
