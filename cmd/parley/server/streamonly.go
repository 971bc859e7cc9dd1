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
	"parley/channels/sqlbook"
	"parley/channels/web"
	"parley/cmd/parley/config"
	"parley/cmd/parley/erase"
	"parley/cmd/parley/events"
	"parley/cmd/parley/heartbeat"
	"parley/cmd/parley/personal"
	"parley/sessions/bill"
)

// A streamOnly is a channel without a platform: people read it by watching the session's events,
// and whoever does not watch finds in the log what was said.
type streamOnly struct{ events bus.Events }

// Receive only waits until ctx is done: messages come in over HTTP.
func (streamOnly) Receive(ctx context.Context, _ func(context.Context, bus.Inbound) error) error {
	<-ctx.Done()
	return nil
}

// Send emits the part as an event to those who watch, and returns the part's key as its id,
// because the log has the part under that key.
func (w streamOnly) Send(_ context.Context, to bus.Address, part channels.Part) (string, error) {
	key := part.Session // several agents may talk at one address
	if key == "" {
		var err error
		if key, err = sessionKey(config.MainAgent, to); err != nil {
			return "", &channels.SendError{Fault: channels.Rejected, Code: "no_session", Err: err}
		}
	}
	// The key of a turn's own answer names the turn; other messages have no turn.
	turn, _ := channels.AnsweredTurn(part.Key)
	w.events.Emit(bus.Event{Type: bus.Spoken, Session: key, Route: to, Turn: turn, Call: part.Key, Delta: part.Text})
	return part.Key, nil
}

// Limits returns no limits: those who watch read Markdown of any length.
func (streamOnly) Limits() channels.Limits { return channels.Limits{Dialect: markup.Markdown} }

// streamOnlyEndpoints returns the channels without a platform: for terminals, for
// programs that talk to the agent, for webhooks that post events to it, and for the
// heartbeat.
func (s *Server) streamOnlyEndpoints() []*endpoint {
	var all []*endpoint
	add := func(name string, channel channels.Channel) {
		l := &endpoint{name: name, channel: channel, gate: &gateway.Gate{}, lastWarning: &atomic.Pointer[string]{}}
		l.config.Name, l.config.Agent = name, config.MainAgent
		all = append(all, l)
	}
	for _, name := range []string{console.Name, web.Name} {
		add(name, streamOnly{events: s.home.Bus})
	}
	add(events.Name, s.events)
	add(heartbeat.Name, s.heartbeat)
	return all
}

// eventWebhook returns those settings of a webhook that the channel of events needs; false if there
// is no webhook of that name.
func (s *Server) eventWebhook(name string) (events.Webhook, bool) {
	w, ok := s.settings.Load().Webhooks[name]
	return events.Webhook{Agent: w.Agent, To: s.resolvePlaces(w.To)}, ok
}

// handleOwnData carries out a person's command about the data that is kept about them, such as
// /forget or /export.
func (s *Server) handleOwnData(ctx context.Context, in bus.Inbound) error {
	if personal.IsPersonal(in) {
		return (&personal.Commands{Book: rewrittenLater{s.home.Book, s.rewriter}, Bus: s.home.Bus, Prefix: s.commandPrefix}).Handle(ctx, in)
	}
	return s.ownData.Handle(ctx, in)
}

// rewrittenLater is the book, whose file is rewritten some time after a memory was erased from it.
type rewrittenLater struct {
	*sqlbook.Book
	rewriter *erase.Rewriter
}

// Forget erases a memory.
func (b rewrittenLater) Forget(ctx context.Context, scope, owner string) error {
	return b.rewriter.Erase(ctx, func(ctx context.Context) (bool, error) {
		content, _, err := b.Recall(ctx, scope, owner)
		if err != nil {
			return false, err
		}
		return content != "", b.Book.Forget(ctx, scope, owner)
	})
}

// eventSession returns the session in which an agent answers what was posted to the webhook at
// this address; false if the address is no webhook's.
func (s *Server) eventSession(at bus.Address) (string, bool) {
	if at.Channel != events.Name {
		return "", false
	}
	key, err := s.events.Session(at)
	return key, err == nil
}

// newHeartbeat makes the service that regularly has an agent look at a checklist.
func (s *Server) newHeartbeat() *heartbeat.Service {
	return &heartbeat.Service{
		Bus: s.home.Bus, Events: s.home.Bus, Store: s.home.Store, Notes: s.home.Book, Ready: s.home.MaySchedule, Log: s.log,
		Cost: func(ctx context.Context, person string) (int64, error) {
			return s.home.Store.Money().Spent(ctx, bill.Cap{Of: bill.Person(person)}, time.Now())
		},
		Settings: func() heartbeat.Settings {
			c := s.settings.Load().Heartbeat
			return heartbeat.Settings{Every: c.Every, File: c.File, Agent: c.Agent, To: s.resolvePlaces(c.To), TokensDay: c.TokensDay, Day: c.Day}
		},
	}
}

// isUnattended reports whether there is no person in a session who could be asked: sessions of
// webhooks' events and of heartbeats have none, nor have sub-agents that work for one of these.
func (s *Server) isUnattended(session string) bool {
	if parent := s.parentOf(session); parent != "" {
		session = parent
	}
	parts := strings.Split(session, ":")
	return len(parts) > 1 && (parts[1] == events.Name || parts[1] == heartbeat.Name)
}

// admitEvent returns why a webhook's event may not start a turn; nil if it may.
func (s *Server) admitEvent(ctx context.Context, in bus.Inbound) (*agent.Refusal, error) {
	refused, err := s.events.Admit(ctx, in)
	if refused == nil || err != nil {
		return nil, err
	}
	return &agent.Refusal{Code: "too_many_turns", Text: refused.Text}, nil
}
