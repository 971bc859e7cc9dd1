package discord

import (
	"context"
	"log/slog"
	"strconv"
	"sync"

	"parley/bus"
)

// maxRemembered is the number of published messages that a publisher remembers.
const maxRemembered = 4096

// A publisher publishes what the lanes of one call of Receive deliver, each message once.
type publisher struct {
	translator *translator
	directory  *directory
	publish    func(context.Context, bus.Inbound) error
	log        *slog.Logger

	mu             sync.Mutex
	published      map[uint64]string // who wrote the messages that were published recently, by message id
	publishedOrder []uint64          // the ids in published, oldest first
}

// newPublisher makes a publisher that translates with t and passes messages to publish.
func newPublisher(t *translator, publish func(context.Context, bus.Inbound) error, log *slog.Logger) *publisher {
	return &publisher{translator: t, directory: t.directory, publish: publish, log: log, published: map[uint64]string{}}
}

// deliver publishes one item from a lane, retrying until that succeeds. It returns false if ctx ended first.
func (p *publisher) deliver(ctx context.Context, n *laneItem) bool {
	wait := new(retryWait)
	for ctx.Err() == nil {
		err := p.publishOnce(ctx, n)
		if err == nil {
			return true
		}
		if !wait.series.HasWaited() && ctx.Err() == nil {
			p.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
				slog.String("chat", n.channel), slog.Uint64("message", n.id), slog.Any("error", err))
		}
		wait.pause(ctx, err)
	}
	return false
}

// publishOnce makes one attempt to publish an item. It returns nil without an attempt if the item is a message that
// has already been published, or is not meant for the bot.
func (p *publisher) publishOnce(ctx context.Context, n *laneItem) error {
	switch {
	case n.reaction != nil:
		in, err := p.translator.reactionInbound(ctx, n)
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
	in, concerns, err := p.translator.messageInbound(ctx, n.message)
	if err == nil && !concerns && !n.edited {
		p.translator.unaddressed.Note(in.ID, in.At)
	}
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

// publishDeletion publishes that a message was deleted. Discord does not say who wrote it: unless this process has
// recently published the message, From has no ID, and the caller's publish must find out who the author is.
func (p *publisher) publishDeletion(ctx context.Context, n *laneItem) error {
	p.mu.Lock()
	who := p.published[n.deleted]
	p.mu.Unlock()
	at, err := p.directory.findPlace(ctx, n.channel)
	if err != nil {
		return err
	}
	of := p.translator.messageID(p.directory.botUser().ID, n.channel, strconv.FormatUint(n.deleted, 10))
	return p.publish(ctx, bus.Inbound{
		ID: of + "#deleted", Kind: bus.Deleted, Of: of, At: p.translator.replyAddress(at), Group: at.isGroup(), Mentioned: true, From: bus.Person{ID: who},
	})
}

// isPublished reports whether this process has recently published a message.
func (p *publisher) isPublished(id uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published[id] != ""
}

// markPublished records that the message with that id was published, and that who wrote it.
func (p *publisher) markPublished(id uint64, who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.publishedOrder) >= maxRemembered {
		delete(p.published, p.publishedOrder[0])
		p.publishedOrder = p.publishedOrder[1:]
	}
	p.published[id] = who
	p.publishedOrder = append(p.publishedOrder, id)
}
