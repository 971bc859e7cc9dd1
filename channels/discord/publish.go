package discord

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/backoff"
)

const (
	maxRemembered  = 4096             // how many published messages a publisher remembers
	maxOwnWait     = 2 * time.Second  // longest wait between attempts after an error of the bus or the book
	maxDiscordWait = 30 * time.Second // longest wait after an error of Discord's
)

// A publisher publishes what the lanes of one Receive deliver, each message once.
type publisher struct {
	channel *Channel
	publish func(context.Context, bus.Inbound) error

	mu        sync.Mutex
	published map[uint64]string // who said the messages published lately, by message id
	order     []uint64          // the ids in published, oldest first
}

// newPublisher makes a publisher that translates with c and hands messages to publish.
func newPublisher(c *Channel, publish func(context.Context, bus.Inbound) error) *publisher {
	return &publisher{channel: c, publish: publish, published: map[uint64]string{}}
}

// deliver publishes one item of a lane, retrying until that succeeds. It returns false if ctx ended
// first.
func (p *publisher) deliver(ctx context.Context, n *laneItem) bool {
	wait := new(retryWait)
	for ctx.Err() == nil {
		err := p.publishOnce(ctx, n)
		if err == nil {
			return true
		}
		if !wait.series.HasWaited() && ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
				slog.String("chat", n.channel), slog.Uint64("message", n.id), slog.Any("error", err))
		}
		wait.pause(ctx, err)
	}
	return false
}

// publishOnce makes one attempt to publish an item. A message that is published already,
// or is not meant for the bot, needs no attempt and gives nil.
func (p *publisher) publishOnce(ctx context.Context, n *laneItem) error {
	switch {
	case n.reaction != nil:
		in, err := p.channel.reactionInbound(ctx, n)
		if err != nil {
			return err
		}
		return p.publish(ctx, in)
	case n.deleted != 0:
		return p.publishDeletion(ctx, n)
	}
	if !n.edited && p.isPublished(n.id) {
		return nil
	}
	in, concerns, err := p.channel.messageInbound(ctx, n.message)
	if err != nil || !concerns {
		return err
	}
	if n.edited {
		in.Kind, in.Of, in.SentAt = bus.Edited, in.ID, n.message.Edited.UTC()
		in.ID += "#edited/" + strconv.FormatInt(in.SentAt.UnixMicro(), 10)
		return p.publish(ctx, in)
	}
	if err := p.publish(ctx, in); err != nil {
		return err
	}
	p.markPublished(n.id, in.From.ID)
	return nil
}

// publishDeletion publishes that a message was deleted. Discord does not say who wrote it:
// if this process has not published the message lately, From has no ID, and the caller's
// publish must find the author out.
func (p *publisher) publishDeletion(ctx context.Context, n *laneItem) error {
	p.mu.Lock()
	who := p.published[n.deleted]
	p.mu.Unlock()
	at, err := p.channel.directory.findPlace(ctx, n.channel)
	if err != nil {
		return err
	}
	of := p.channel.messageID(p.channel.directory.botUser().ID, n.channel, strconv.FormatUint(n.deleted, 10))
	return p.publish(ctx, bus.Inbound{
		ID: of + "#deleted", Kind: bus.Deleted, Of: of, At: p.channel.replyAddress(at), Group: at.isGroup(), Mentioned: true, From: bus.Person{ID: who},
	})
}

// isPublished reports whether this process published a message lately.
func (p *publisher) isPublished(id uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published[id] != ""
}

// markPublished records that the message with that id was published, and that who wrote it.
func (p *publisher) markPublished(id uint64, who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) >= maxRemembered {
		delete(p.published, p.order[0])
		p.order = p.order[1:]
	}
	p.published[id] = who
	p.order = append(p.order, id)
}

// A retryWait makes the waits between attempts, which grow; an error of Discord's may prolong a
// wait.
type retryWait struct{ series backoff.Series }

// pause waits before the next attempt, at least for as long as Discord's error asks. It
// returns false if ctx ended first.
func (w *retryWait) pause(ctx context.Context, err error) bool {
	most, atLeast := maxOwnWait, time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		most, atLeast = maxDiscordWait, refusal.RetryAfter
	}
	return backoff.Sleep(ctx, max(w.series.Next(most), atLeast))
}
