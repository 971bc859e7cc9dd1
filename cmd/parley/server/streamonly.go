package server

import (
	"context"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
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
