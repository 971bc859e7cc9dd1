package slack

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
)

// A publisher publishes the messages of one Receive, each once.
type publisher struct {
	channel   *Channel
	me        Account
	publish   func(context.Context, bus.Inbound) error
	lanes     *lanes
	published *cache[struct{}] // ids of what was published lately
	spokenTo  *cache[struct{}] // chats in which the bot was spoken to lately
}

func newPublisher(c *Channel, me Account, lanes *lanes, publish func(context.Context, bus.Inbound) error) *publisher {
	return &publisher{
		channel: c, me: me, publish: publish, lanes: lanes,
		published: newCache[struct{}](time.Hour), spokenTo: newCache[struct{}](24 * time.Hour),
	}
}

// noAck is the ack of a message from history: no socket waits for one.
func noAck() {}

// deliver publishes one message, trying until it is done, and acknowledges it.
// Where nobody can tell now whether its sender may talk, the message moves to the
// sender's own lane. It is false if ctx ended first.
func (p *publisher) deliver(ctx context.Context, m *message, ack func()) bool {
	if p.lanes.isAside(m) { // behind the sender's earlier messages
		p.lanes.setAside(ctx, m, ack)
		return true
	}
	wait := &retryWait{most: ownWait}
	for ctx.Err() == nil { // a lane may call this for many messages of a gap after ctx ended
		err := p.try(ctx, m)
		switch {
		case err == nil:
			ack()
			return true
		case errors.Is(err, channels.ErrUnjudged) && ctx.Err() == nil:
			p.lanes.setAside(ctx, m, ack)
			return true
		}
		if !p.pause(ctx, wait, m, err) {
			return false
		}
	}
	return false
}

// retryAside publishes a message of a sender's own lane, trying until it is done.
func (p *publisher) retryAside(ctx context.Context, m *message, ack func()) {
	wait := &retryWait{most: asideWait, firm: true}
	for ctx.Err() == nil {
		err := p.try(ctx, m)
		if err == nil {
			ack()
			return
		}
		p.pause(ctx, wait, m, err)
	}
}

// try publishes a message, unless that was done already or it is not for the bot.
func (p *publisher) try(ctx context.Context, m *message) error {
	id := p.channel.id(m, p.me)
	if p.isPublished(m) {
		return nil
	}
	in, concerns, err := p.channel.inbound(ctx, m, p.me)
	if err != nil || !concerns {
		// Such a message is not noted as published: Slack sends two events for a
		// mention, and the one that is for the bot may come second.
		return err
	}
	if err := p.publish(ctx, in); err != nil {
		return err
	}
	p.published.put(id, struct{}{})
	p.spokenTo.put(m.Channel, struct{}{})
	return nil
}

// isPublished tells whether a message was published lately.
func (p *publisher) isPublished(m *message) bool {
	_, ok := p.published.get(p.channel.id(m, p.me))
	return ok
}

// pause waits before a message is tried again, and logs the first failure.
func (p *publisher) pause(ctx context.Context, wait *retryWait, m *message, err error) bool {
	if !wait.series.Began() && ctx.Err() == nil {
		p.channel.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
			slog.String("message", p.channel.id(m, p.me)), slog.Any("error", err))
	}
	return wait.pause(ctx, err)
}
