package server

import (
	"log/slog"

	"parley/agent/llm"
	"parley/cmd/parley/api"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/models"
)

// modelChains are the chains of models that answer for agents, and what else models are asked for.
type modelChains struct {
	foundation
	lists   models.Lists         // the models in the chains; empty if nobody answers
	byAgent map[string]llm.Model // the chains, also those with names such as models.ForJudge; empty if nobody answers
}

// newModelChains returns the chains of these models.
func newModelChains(on foundation, lists models.Lists) *modelChains {
	return &modelChains{foundation: on, lists: lists, byAgent: models.Chains(lists, on.home.Book, meters{on.metrics, on.traces}, on.log)}
}

// answering returns all agents by name, and for each whether a model is configured that answers for
// it.
func (c *modelChains) answering() map[string]bool {
	all := map[string]bool{}
	for name := range c.settings.Load().Agents {
		all[name] = c.byAgent[name] != nil
	}
	return all
}

// leftTools returns the tools that models are not shown because of the models' servers.
func (c *modelChains) leftTools() []api.LeftTool {
	var list []api.LeftTool
	for _, one := range c.lists.LeftTools() {
		list = append(list, api.LeftTool(one))
	}
	return list
}

// Reload warns the operator if the next settings limit what models may cost but some models' prices
// are unknown, so that these models are not limited.
func (c *modelChains) Reload(next *config.Config) (apply func(), err error) {
	return func() {
		for name, model := range c.byAgent {
			if next.Budget.Written && !model.Info().Priced && c.lists[name][0].Server != "" { // the demo has no server, and costs nothing
				c.log.Warn("[budget] does not hold for a model of no known price, and the next start is refused: set price_input beside the model's name", slog.String("model", model.Info().Name))
			}
		}
	}, nil
}
