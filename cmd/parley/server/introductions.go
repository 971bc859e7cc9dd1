package server

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"parley/agent/openai"
	"parley/channels"
	"parley/channels/owners"
	"parley/channels/welcome"
	"parley/cmd/parley/config"
)

// introductions introduce the bot to people who talk to it for the first time.
type introductions struct {
	foundation
	owners *owners.Owners
	chains *modelChains
}

// on returns a function for the text that introduces the bot to people who talk to it on a channel
// for the first time; the function returns "" if there is no such text.
func (i *introductions) on(l *liveChannel) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		c := i.settings.Load()
		now := c.Channels[l.name]
		if now.Introduce == config.IntroduceNever {
			return "", nil
		}
		owners, err := i.owners.Names(ctx, l.name)
		if err != nil {
			return "", err
		}
		return welcome.Introduction{About: now.About, Owners: owners, Models: i.modelPlaces(now.AllAgents()), Days: c.Retention.Days, Prefix: channels.CommandPrefix(l.channel)}.Text(), nil
	}
}

// modelPlaces returns the hosts of the models that read what is said to these agents, for welcome.Introduction: nil
// if other processes know them. It names this machine only if there are no others.
func (i *introductions) modelPlaces(agents []string) (hosts []string) {
	c := i.settings.Load()
	for _, agent := range agents {
		for _, choice := range c.ReadersOf(agent) {
			model := c.Model
			if name, further := strings.CutPrefix(choice.Table, "models."); further {
				model = c.Models[name]
			}
			if choice.Demo || !model.Configured && i.chains.byAgent[agent] != nil {
				hosts = append(hosts, welcome.Local)
				break // the demo always answers
			}
			if !model.Configured { // other processes answer
				return nil
			}
			hosts = append(hosts, welcome.Host(cmp.Or(model.BaseURL, openai.DefaultURL)))
		}
	}
	if c.Embeddings.Model != "" { // it reads what is said, too
		hosts = append(hosts, welcome.Host(cmp.Or(c.Embeddings.BaseURL, openai.DefaultURL)))
	}
	isLocal := func(host string) bool { return host == welcome.Local }
	if slices.ContainsFunc(hosts, func(host string) bool { return !isLocal(host) }) {
		return slices.DeleteFunc(hosts, isLocal)
	}
	return slices.Compact(hosts)
}
