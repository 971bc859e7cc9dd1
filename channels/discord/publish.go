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
	mostPublished = 4096             // messages that are remembered as published
	ownWait       = 2 * time.Second  // most between attempts after an error of our own bus or book
	mostWait      = 30 * time.Second // most after an error of Discord's
)

// A publisher publishes the news of one Receive, each message once.
type publisher struct {
	channel *Channel
	publish func(context.Context, bus.Inbound) error

	mu        sync.Mutex
	published map[uint64]string // by message, lately: who has said it
	order     []uint64          // the same, by time
}

func newPublisher(c *Channel, publish func(context.Context, bus.Inbound) error) *publisher {
	return &publisher{channel: c, publish: publish, published: map[uint64]string{}}
}

// deliver publishes one thing, trying until it is done. It is false if ctx ended first.
func (p *publisher) deliver(ctx context.Context, n *news) bool {
	wait := new(retryWait)
	for ctx.Err() == nil {
		err := p.try(ctx, n)
		if err == nil {
			return true
		}
		if !wait.series.Began() && ctx.Err() == nil {
			p.channel.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
				slog.String("chat", n.channel), slog.Uint64("message", n.id), slog.Any("error", err))
		}
		wait.pause(ctx, err)
	}
	return false
}

// try publishes one thing, unless that was done already or it is not for the bot.
func (p *publisher) try(ctx context.Context, n *news) error {
	switch {
	case n.reaction != nil:
		in, err := p.channel.reacted(ctx, n)
		if err != nil {
			return err
		}
		return p.publish(ctx, in)
	case n.deleted != 0:
		return p.tryDeleted(ctx, n)
	}
	if !n.edited && p.isPublished(n.id) {
		return nil
	}
	in, concerns, err := p.channel.inbound(ctx, n.message)
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
	p.note(n.id, in.From.ID)
	return nil
}

// tryDeleted publishes that a message is gone. Discord does not tell whose it was: of what
// this process has not published lately that is left to be found out.
func (p *publisher) tryDeleted(ctx context.Context, n *news) error {
	p.mu.Lock()
	who := p.published[n.deleted]
	p.mu.Unlock()
	at, err := p.channel.directory.place(ctx, n.channel)
	if err != nil {
		return err
	}
	of := p.channel.messageID(p.channel.directory.self().ID, n.channel, strconv.FormatUint(n.deleted, 10))
	return p.publish(ctx, bus.Inbound{
		ID: of + "#deleted", Kind: bus.Deleted, Of: of, At: p.channel.replyAddress(at), Group: at.group(), Mentioned: true, From: bus.Person{ID: who},
	})
}

func (p *publisher) isPublished(id uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published[id] != ""
}

// note remembers that a message was published.
func (p *publisher) note(id uint64, who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) >= mostPublished {
		delete(p.published, p.order[0])
		p.order = p.order[1:]
	}
	p.published[id] = who
	p.order = append(p.order, id)
}

// A retryWait is a series of growing waits that Discord's errors may prolong.
type retryWait struct{ series backoff.Series }

// pause waits before the next attempt, at least for as long as Discord asks. It is false
// if ctx ended first.
func (w *retryWait) pause(ctx context.Context, err error) bool {
	most, atLeast := ownWait, time.Duration(0)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok {
		most, atLeast = mostWait, refusal.RetryAfter
	}
	return backoff.Sleep(ctx, max(w.series.Next(most), atLeast))
}
