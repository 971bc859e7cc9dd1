package api

import (
	"context"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/sessions/subscriptions"
)

// A SubscriptionState is the state of a subscription, for the whole fleet.
type SubscriptionState struct {
	Name     string     `json:"name"`
	Waiting  int        `json:"waiting"`                 // number of waiting events
	Failing  *time.Time `json:"failing_since,omitempty"` // since when nothing was accepted although something waits
	Problem  string     `json:"problem,omitempty"`
	Accepted *time.Time `json:"last_accepted,omitempty"`
	Dropped  int64      `json:"dropped"` // number of dropped events so far
}

// subscriptions returns the states of the subscriptions, in the order of their names.
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

// Subscriptions knows the subscriptions and the state of each.
type Subscriptions interface {
	Names() []string
	State(ctx context.Context, name string) (subscriptions.State, error)
}
