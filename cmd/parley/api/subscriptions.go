package api

import (
	"context"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/sessions/subscriptions"
)

// A SubscriptionState says how a subscription does, for the whole fleet.
type SubscriptionState struct {
	Name     string     `json:"name"`
	Waiting  int        `json:"waiting"`                 // events
	Failing  *time.Time `json:"failing_since,omitempty"` // since when nothing was accepted although something waits
	Problem  string     `json:"problem,omitempty"`
	Accepted *time.Time `json:"last_accepted,omitempty"`
	Dropped  int64      `json:"dropped"` // events, so far
}

// subscriptions returns how the subscriptions do, by name.
func (h health) subscriptions(ctx context.Context) ([]SubscriptionState, error) {
	list := []SubscriptionState{}
	if h.Subscriptions == nil {
		return list, nil
	}
	for _, name := range h.Subscriptions.Names() {
		s, err := h.Subscriptions.State(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, SubscriptionState{name, s.Waiting, exchange.SomeTime(s.Failing), s.Problem, exchange.SomeTime(s.Accepted), s.Dropped})
	}
	return list, nil
}

// Subscriptions knows which subscriptions there are, and how each does.
type Subscriptions interface {
	Names() []string
	State(ctx context.Context, name string) (subscriptions.State, error)
}
