package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"

	"parley/channels/outbox"
	"parley/channels/webhook"
	"parley/channels/webhook/events"
	"parley/cmd/parley/config"
)

// webhooks are the paths where programs post messages, and events for agents.
type webhooks struct {
	foundation
	outbox *outbox.Outbox
	events *events.Channel
	hooks  atomic.Pointer[map[string]*webhook.Handler] // the current ones; nil before Load
}

// Load makes the webhooks in the current settings.
func (w *webhooks) Load(context.Context) error {
	w.replaceHooks(w.settings.Load())
	return nil
}

// Reload implements reloader: applying it makes the webhooks in the next settings.
func (w *webhooks) Reload(next *config.Config) (apply func(), err error) {
	return func() { w.replaceHooks(next) }, nil
}

// replaceHooks makes the webhooks in these settings. A webhook that existed before still knows what it has
// already sent.
func (w *webhooks) replaceHooks(c *config.Config) {
	hooks := map[string]*webhook.Handler{}
	for name, set := range c.Webhooks {
		var routes []webhook.Route
		for _, r := range set.Routes {
			routes = append(routes, webhook.Route{Match: r.Match, To: r.To})
		}
		prepare := webhook.New
		if old := w.named(name); old != nil {
			prepare = old.WithConfig
		}
		c := webhook.Config{
			Name: name, Kind: set.Kind, Token: string(set.Token), Secret: string(set.Secret), Routes: routes, To: set.To,
			Template: set.Template, Group: set.Group, Outbox: w.outbox, Log: w.log, Point: w.point,
		}
		if set.Agent != "" {
			c.Agent, c.Resolve = w.events, w.outbox.Resolve
		}
		h, err := prepare(c)
		if err != nil { // the configuration was checked
			w.log.Error("webhook cannot be served", slog.String("webhook", name), slog.Any("error", err))
			continue
		}
		hooks[name] = h
	}
	w.hooks.Store(&hooks)
}

// named returns the current webhook with that name; nil if there is none.
func (w *webhooks) named(name string) *webhook.Handler {
	if hooks := w.hooks.Load(); hooks != nil {
		return (*hooks)[name]
	}
	return nil
}

// handlers returns the handlers of the current webhooks, by name.
func (w *webhooks) handlers() map[string]http.Handler {
	all := map[string]http.Handler{}
	for name, h := range *w.hooks.Load() {
		all[name] = h
	}
	return all
}
