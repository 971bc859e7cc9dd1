package models

import (
	"cmp"
	"slices"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai"
	"parley/channels/welcome"
	"parley/cmd/parley/config"
)

// Places returns the hosts of the models that read what is said to these agents, for welcome.Introduction: nil if other
// processes know them. It names this machine only if there are no others. answering are the models of this process, by
// agent.
func Places(c *config.Config, answering map[string]llm.Model, agents []string) (hosts []string) {
	for _, agent := range agents {
		for _, choice := range c.ReadersOf(agent) {
			model := c.Model
			if name, further := strings.CutPrefix(choice.Table, "models."); further {
				model = c.Models[name]
			}
			if choice.Demo || !model.Configured && answering[agent] != nil {
				hosts = append(hosts, welcome.Local)
				break // the demo always answers
			}
			if !model.Configured { // other processes answer
				return nil
			}
			hosts = append(hosts, welcome.Host(cmp.Or(model.BaseURL, openai.DefaultURL)))
		}
	}
	if c.Embeddings.Model != "" { // the embedding model reads people's words, too
		hosts = append(hosts, welcome.Host(cmp.Or(c.Embeddings.BaseURL, openai.DefaultURL)))
	}
	isLocal := func(host string) bool { return host == welcome.Local }
	if slices.ContainsFunc(hosts, func(host string) bool { return !isLocal(host) }) {
		return slices.DeleteFunc(hosts, isLocal)
	}
	return slices.Compact(hosts)
}
