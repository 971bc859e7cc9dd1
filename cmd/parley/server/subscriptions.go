package server

import (
	"parley/channels/subscriptions"
	"parley/cmd/parley/config"
	kept "parley/sessions/subscriptions"
)

// subscribing posts events to the programs that subscribe to them in the settings. A process of any role records its
// events for them.
type subscribing struct{ *subscriptions.Poster }

// newSubscribing returns the part that posts events to subscriptions.
func newSubscribing(on foundation, hidden *secrets) subscribing {
	return subscribing{subscriptions.New(subscriptions.Config{
		Current: func() []kept.Subscription { return on.settings.Load().Subscribers() }, Table: on.home.Store.Subscriptions(), Bus: on.home.Bus,
		Ask: on.home.Book.LookupAsk, Notes: on.home.Book, Redact: hidden.text, Agent: "Parley/" + on.version, Posted: on.metrics.Posted, Point: on.point, Log: on.log,
	})}
}

// Reload implements reloader: applying it posts events to the subscriptions in the next settings.
func (s subscribing) Reload(next *config.Config) (apply func(), err error) {
	return func() { s.Set(next.Subscribers()) }, nil
}
