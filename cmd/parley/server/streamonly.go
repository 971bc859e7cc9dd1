package server

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"parley/agent"
	"parley/bus"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/gateway"
	"parley/channels/markup"
	"parley/channels/web"
	"parley/cmd/parley/config"
	"parley/cmd/parley/events"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/personal"
	"parley/sessions/bill"
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

// streamOnlyEndpoints are the channels without a platform: terminals, programs that talk
// to the agent, webhooks whose events it is given, and the heartbeat.
func (s *Server) streamOnlyEndpoints() []*endpoint {
	var all []*endpoint
	add := func(name string, channel channels.Channel) {
		l := &endpoint{name: name, channel: channel, gate: &gateway.Gate{}, trouble: &atomic.Pointer[string]{}}
		l.config.Name, l.config.Agent = name, config.MainAgent
		all = append(all, l)
	}
	for _, name := range []string{console.Name, web.Name} {
		add(name, streamOnly{name: name, agent: config.MainAgent, events: s.home.Bus})
	}
	add(events.Name, s.events)
	add(heartbeat.Name, s.heart)
	return all
}

// eventWebhook is a webhook as the desk of events has to know it.
func (s *Server) eventWebhook(name string) (events.Webhook, bool) {
	w, ok := s.settings.Load().Webhooks[name]
	return events.Webhook{Agent: w.Agent, To: s.places(w.To)}, ok
}

// takeOwn carries out what somebody wants done about what is kept of them.
func (s *Server) takeOwn(ctx context.Context, in bus.Inbound) error {
	if personal.Is(in) {
		return (&personal.Desk{Book: s.home.Book, Bus: s.home.Bus, Prefix: s.commandPrefix}).Take(ctx, in)
	}
	return s.ownData.Take(ctx, in)
}

// eventSession is the session in which a webhook's events are answered.
func (s *Server) eventSession(at bus.Address) (string, bool) {
	if at.Channel != events.Name {
		return "", false
	}
	key, err := s.events.Session(at)
	return key, err == nil
}

// newHeart makes what has an agent look at a checklist.
func (s *Server) newHeart() *heartbeat.Desk {
	return &heartbeat.Desk{
		Bus: s.home.Bus, Events: s.home.Bus, Store: s.home.Store, Notes: s.home.Book, Ready: s.home.MaySchedule, Log: s.log,
		Cost: func(ctx context.Context, person string) (int64, error) {
			return s.home.Store.Money().Spent(ctx, bill.Cap{Of: bill.Person(person)}, time.Now())
		},
		Settings: func() heartbeat.Settings {
			c := s.settings.Load().Heartbeat
			return heartbeat.Settings{Every: c.Every, File: c.File, Agent: c.Agent, To: s.places(c.To), TokensDay: c.TokensDay, Day: c.Day}
		},
	}
}

// deserted tells of a session that nobody talks in who could be asked there.
func deserted(session string) bool {
	parts := strings.Split(session, ":")
	return len(parts) > 1 && (parts[1] == events.Name || parts[1] == heartbeat.Name)
}

// admit says why what a webhook was posted starts no turn.
func (s *Server) admit(ctx context.Context, in bus.Inbound) (*agent.Refusal, error) {
	refused, err := s.events.Admit(ctx, in)
	if refused == nil || err != nil {
		return nil, err
	}
	return &agent.Refusal{Code: "too_many_turns", Text: refused.Text}, nil
}
