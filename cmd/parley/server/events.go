package server

import (
	"context"

	"parley/agent"
	"parley/bus"
	"parley/channels/webhook/events"
)

// newEvents returns the channel for the events that programs post to agents.
func newEvents(on foundation) *events.Channel {
	return &events.Channel{
		Bus: on.home.Bus, Events: on.home.Bus, Book: on.home.Book,
		Webhooks: func(name string) (events.Webhook, bool) {
			w, ok := on.settings.Load().Webhooks[name]
			return events.Webhook{Agent: w.Agent, To: on.settings.places(w.To)}, ok
		},
	}
}

// admitEvent returns a function that says why a webhook's event may not start a turn; nil if it
// may.
func admitEvent(c *events.Channel) func(context.Context, bus.Inbound) (*agent.Refusal, error) {
	return func(ctx context.Context, in bus.Inbound) (*agent.Refusal, error) {
		refused, err := c.Admit(ctx, in)
		if refused == nil || err != nil {
			return nil, err
		}
		return &agent.Refusal{Code: "too_many_turns", Text: refused.Text}, nil
	}
}
