package server

import (
	"context"
	"sync/atomic"

	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/gateway"
	"parley/channels/markup"
	"parley/channels/web"
	"parley/cmd/parley/config"
)

// A streamOnly channel has no platform: whoever is there reads by watching the
// session's events, and the log keeps what was said for the others.
type streamOnly struct {
	name   string
	agent  string
	events bus.Events
}

// Receive waits for ctx: what is said comes in over HTTP.
func (streamOnly) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

// Send tells the watchers. The part's key is its id: it names what the log has.
func (w streamOnly) Send(_ context.Context, to bus.Address, part channels.Part) (string, error) {
	key, err := sessionKey(w.agent, to)
	if err != nil {
		return "", &channels.SendError{Fault: channels.Rejected, Code: "no_session", Err: err}
	}
	// A turn's own answer says so by its id; what others said has no turn.
	turn, _ := channels.AnsweredTurn(part.Key)
	w.events.Emit(bus.Event{Type: bus.Spoken, Session: key, Route: to, Turn: turn, Call: part.Key, Delta: part.Text})
	return part.Key, nil
}

// Limits has none; watchers read Markdown.
func (streamOnly) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }

// streamOnlyEndpoints are the channels without a platform: terminals, and programs
// that talk to the agent.
func (s *Server) streamOnlyEndpoints() []*endpoint {
	var all []*endpoint
	for _, name := range []string{console.Name, web.Name} {
		l := &endpoint{name: name, channel: streamOnly{name: name, agent: config.MainAgent, events: s.home.Bus}, gate: &gateway.Gate{}, trouble: &atomic.Pointer[string]{}}
		l.config.Name, l.config.Agent = name, config.MainAgent
		all = append(all, l)
	}
	return all
}
