package server

import (
	"context"
	"errors"
	"log/slog"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/welcome"
	"parley/cmd/parley/config"
	"parley/sessions"
	"parley/tools"
)

// gateways runs the gateways of the channels that receive.
type gateways struct {
	foundation
	liveChannels  liveChannels
	conversations *conversations
	introductions *introductions
	// capabilities returns what the agent of a session may do.
	capabilities func(session string) []tools.Permission
	// worksWithoutMail reports whether there is something to stop in a session that has no mail.
	worksWithoutMail func(ctx context.Context, session string) (bool, error)
	// ownData carries out a person's command about the data that is stored about them.
	ownData func(ctx context.Context, in bus.Inbound) error
	// recordDecision records who became an owner in a chat, and owners' decisions there about other people.
	recordDecision func(ctx context.Context, by, person, result string)
	// recordRefusal puts a message's refusal in the audit.
	recordRefusal func(sessions.AuditRecord)
}

// newGateways returns the part that runs the gateways of channels.
func newGateways(on foundation, c *chatSide, a *agentSide) *gateways {
	return &gateways{
		foundation: on, liveChannels: c.liveChannels, conversations: c.conversations, introductions: &introductions{foundation: on, owners: c.owners, chains: c.chains},
		capabilities: a.answerer.rights.capabilities, worksWithoutMail: a.answerer.worksWithoutMail, recordDecision: c.audit.recordDecision, recordRefusal: c.audit.Note,
	}
}

// Run runs, for each channel that receives, the gateway that publishes what people say. Only one
// process in the fleet does so for a channel; if the platform sends HTTP requests, every process
// does.
func (g *gateways) Run(ctx context.Context) error {
	return g.liveChannels.each(ctx, func(ctx context.Context, l *liveChannel) error {
		if !l.receive {
			<-ctx.Done()
			return nil
		}
		router := g.conversations.router(l)
		gw := &gateway.Gateway{
			Name: l.name, Channel: l.channel, Bus: g.home.Bus, Events: g.home.Bus, Gate: l.gate, Route: l.countIn(router.Route),
			Chats: g.home.Book, Pairings: g.home.Book, WorksWithoutMail: g.worksWithoutMail, KnowsMessage: g.hasMessage, FindAuthor: router.FindAuthor, Log: g.log,
			IntroductionText: g.introductions.textFor(l), Notes: g.home.Book, AboutText: g.capabilitiesText(l),
			HistoryLength: func() int { return g.settings.Load().Channels[l.name].History },
			AllReactions:  func() bool { return g.settings.Load().Channels[l.name].Reactions == config.ReactionsAll },
			Ratings:       g.home.Book, OnRated: g.metrics.RatingCounter(l.name), OwnData: g.ownData,
			OnDecided: g.recordDecision, OnRefused: g.refused, Trace: g.traces,
		}
		if _, ok := channels.AsHTTPReceiver(l.channel); ok {
			return l.rerunAfterRefusal(ctx, g.foundation, gw.Run) // the platform's requests may reach any process
		}
		return l.rerunAfterRefusal(ctx, g.foundation, func(ctx context.Context) error { return g.receiveWhileHeld(ctx, l, gw) })
	})
}

// countIn wraps route: it also records when somebody who may talk to the bot last said something.
func (l *liveChannel) countIn(route gateway.RouteFunc) gateway.RouteFunc {
	return func(ctx context.Context, in bus.Inbound) (gateway.RouteResult, error) {
		l.traffic.NoteReceived()
		return route(ctx, in)
	}
}

// refused records that a message was refused.
func (g *gateways) refused(r gateway.Refusal) {
	g.recordRefusal(sessions.AuditRecord{
		Kind: sessions.AuditRefusal, By: r.Person, Session: r.Session, Result: r.Rule, Address: r.At.String(), Messages: []string{r.Message},
	})
}

// capabilitiesText returns a function that tells the sender of a message what the agent of a
// session may do for them.
func (g *gateways) capabilitiesText(l *liveChannel) func(session string, opened bus.Inbound) string {
	return func(session string, opened bus.Inbound) string {
		return welcome.Text(welcome.Facts{
			Owner: opened.From.Owner, Approver: opened.From.Approver,
			Capabilities: g.capabilities(session), Prefix: channels.CommandPrefix(l.channel),
		})
	}
}

// hasMessage reports whether a session's log contains the message with this id.
func (g *gateways) hasMessage(ctx context.Context, session, message string) (bool, error) {
	_, err := g.home.Store.Find(ctx, session, message)
	if errors.Is(err, sessions.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// receiveWhileHeld waits until this process holds the channel's name on the bus, which only one process can do at a
// time, and then runs the channel's gateway for as long as it holds the name.
func (g *gateways) receiveWhileHeld(ctx context.Context, l *liveChannel, gw *gateway.Gateway) error {
	return bus.WhileHeld(ctx, g.home.Bus, "receive/"+gw.Name, func(held context.Context) error {
		l.held.Store(true)
		defer l.held.Store(false)
		err := gw.Run(held)
		if err == nil && ctx.Err() == nil {
			g.log.Warn("the connection was lost to another process and is waited for", slog.String("channel", gw.Name))
		}
		return err
	})
}
