package slack

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// A publisher publishes the messages of one call of Receive, each once.
type publisher struct {
	me          Account
	translator  *translator
	speakers    *speakers
	panes       *panes
	log         *slog.Logger
	publish     func(context.Context, bus.Inbound) error
	lanes       *lanes
	published   *cache[struct{}] // ids of messages that were published within the last hour
	recentChats *cache[struct{}] // chats in which people talked to the bot within the last day
	namingPanes sync.WaitGroup   // the calls in progress that give panes a title
}

// newPublisher makes a publisher that passes messages of the Channel c to publish.
func newPublisher(c *Channel, me Account, lanes *lanes, publish func(context.Context, bus.Inbound) error) *publisher {
	return &publisher{
		me: me, translator: c.translator, speakers: c.speakers, panes: c.panes, log: c.log, publish: publish, lanes: lanes,
		published: newCache[struct{}](time.Hour), recentChats: newCache[struct{}](24 * time.Hour),
	}
}

// noAck is the ack of a message from history: there is nothing to acknowledge.
func noAck() {}

// deliver publishes one message, retrying until that succeeds, then acknowledges it. If nobody can say now whether
// its sender may talk to the bot, it moves the message to the sender's own lane (queue). It returns false if ctx
// ended first.
func (p *publisher) deliver(ctx context.Context, m *message, ack func()) bool {
	if p.lanes.hasSenderLane(m) { // so that it comes after the sender's earlier messages
		p.lanes.addToSenderLane(ctx, m, ack)
		return true
	}
	wait := &retryWait{longest: maxOwnWait}
	for ctx.Err() == nil { // a lane may call this for many messages of a gap after ctx has ended
		err := p.publishOnce(ctx, m)
		switch {
		case err == nil:
			ack()
			return true
		case errors.Is(err, channels.ErrUnjudged) && ctx.Err() == nil:
			p.lanes.addToSenderLane(ctx, m, ack)
			return true
		}
		if !p.pauseAndLog(ctx, wait, m, err) {
			return false
		}
	}
	return false
}

// publishInSenderLane publishes a message that waits in its sender's own lane (queue), retrying until that
// succeeds.
func (p *publisher) publishInSenderLane(ctx context.Context, m *message, ack func()) {
	wait := &retryWait{longest: maxSenderLaneWait, keepsLongest: true}
	for ctx.Err() == nil {
		err := p.publishOnce(ctx, m)
		if err == nil {
			ack()
			return
		}
		p.pauseAndLog(ctx, wait, m, err)
	}
}

// publishOnce makes one attempt to publish a message. It returns nil without an attempt if the message has already
// been published, or is not meant for the bot.
func (p *publisher) publishOnce(ctx context.Context, m *message) error {
	id := p.translator.messageID(m, p.me)
	if p.isPublished(m) {
		return nil
	}
	in, concerns, err := p.translator.messageInbound(ctx, m, p.me)
	if err != nil || !concerns {
		// A message that is not meant for the bot is not recorded as published: Slack sends two events for a
		// mention, and the one that is meant for the bot may come second.
		if err == nil {
			p.translator.unaddressed.Note(in.ID, in.At)
		}
		return err
	}
	p.speakers.note(in.At.Chat, in.At.Thread, m.User)
	first := p.panes.beginsPane(ctx, m, in.At)
	if err := p.publish(ctx, in); err != nil {
		return err
	}
	if first {
		p.namingPanes.Go(func() { p.panes.nameConversation(ctx, in) })
	}
	p.published.put(id, struct{}{})
	p.recentChats.put(m.Channel, struct{}{})
	return nil
}

// publishChange publishes an edit or a deletion after the messages that came before it in its chat, retrying until
// that succeeds, then acknowledges it.
func (p *publisher) publishChange(ctx context.Context, what change, ack func()) {
	wait := &retryWait{longest: maxOwnWait}
	for ctx.Err() == nil {
		err := p.publish(ctx, p.translator.changeInbound(ctx, what, p.me))
		if err == nil || errors.Is(err, channels.ErrUnjudged) { // nobody waits for an answer to a change
			ack()
			return
		}
		p.pauseAndLog(ctx, wait, what.message, err)
	}
}

// isPublished reports whether a message was published within the last hour. The bus recognizes later repetitions by
// the message's id.
func (p *publisher) isPublished(m *message) bool {
	_, ok := p.published.get(p.translator.messageID(m, p.me))
	return ok
}

// pauseAndLog waits before the next attempt to publish a message, and logs the failure if it is the
// first. It returns false if ctx ended first.
func (p *publisher) pauseAndLog(ctx context.Context, wait *retryWait, m *message, err error) bool {
	if !wait.series.HasWaited() && ctx.Err() == nil {
		p.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
			slog.String("message", p.translator.messageID(m, p.me)), slog.Any("error", err))
	}
	return wait.pause(ctx, err)
}
