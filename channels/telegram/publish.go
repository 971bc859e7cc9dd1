package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"

	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
	"parley/channels/backoff"
)

// A publisher publishes the contents of updates, for one run of Receive.
type publisher struct {
	*translator
	publish   func(context.Context, bus.Inbound) error
	answering sync.WaitGroup // answers to presses that are in progress
}

// publishReceived publishes the content of one update, retrying until that succeeds. It
// returns false if ctx ended first.
func (p *publisher) publishReceived(ctx context.Context, h updateContent) bool {
	switch {
	case h.press != nil:
		return p.publishPress(ctx, h.press)
	case h.reaction != nil:
		for _, in := range p.reactionsInbound(h.reaction) {
			if p.retryUntilStored(ctx, in.ID, func() error { return p.publishAtOrigin(ctx, in) }) != nil {
				return false
			}
		}
		return true
	}
	return p.publishMessage(ctx, h.message, h.edited)
}

// publishMessage publishes one message, retrying until that succeeds. It returns false if
// ctx ended first.
func (p *publisher) publishMessage(ctx context.Context, m *models.Message, edited bool) bool {
	if moved, ok := p.recordMessageMove(ctx, m); moved {
		return ok
	}
	return p.retryUntilStored(ctx, fmt.Sprint(m.Chat.ID, ":", m.ID), func() error {
		in, ok, err := p.messageInbound(ctx, m)
		if err != nil || !ok {
			return err
		}
		if edited {
			in = asEdit(in, m)
		}
		return p.publishAtOrigin(ctx, in)
	}) == nil
}

// publishAtOrigin publishes a message, under its chat's original id if the chat is a group that has moved.
func (p *publisher) publishAtOrigin(ctx context.Context, in bus.Inbound) error {
	chat, err := p.moves.originalID(ctx, in.At.Chat)
	if err != nil {
		return err
	}
	in.At.Chat = chat
	return p.publish(ctx, in)
}

// retryUntilStored calls store until it succeeds. It fails only when ctx ends, or with ErrNotAdmitted if store
// returns that. subject says, for the log, what is being stored.
func (p *publisher) retryUntilStored(ctx context.Context, subject string, store func() error) error {
	var wait backoff.Series
	for failures := 0; ; failures++ {
		err := store()
		if err == nil || errors.Is(err, channels.ErrNotAdmitted) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failures == 0 {
			p.log.LogAttrs(ctx, slog.LevelWarn, "a message is not stored yet; trying on",
				slog.String("message", subject), slog.Any("error", err))
		}
		if !backoff.Sleep(ctx, wait.Next(maxOwnWait)) {
			return ctx.Err()
		}
	}
}

// recordMessageMove records a group's move if a message reports one, retrying until the book has it. handled is
// false if the message reports none; ok is false if ctx ended first.
func (p *publisher) recordMessageMove(ctx context.Context, m *models.Message) (handled, ok bool) {
	from, to := m.Chat.ID, m.MigrateToChatID
	if m.MigrateFromChatID != 0 {
		from, to = m.MigrateFromChatID, m.Chat.ID
	}
	if to == 0 {
		return false, true
	}
	err := p.retryUntilStored(ctx, "a group's move", func() error {
		return p.moves.recordMove(ctx, strconv.FormatInt(from, 10), strconv.FormatInt(to, 10))
	})
	if err == nil {
		p.log.LogAttrs(ctx, slog.LevelInfo, "a group has become a supergroup; its conversation goes on",
			slog.Int64("from", from), slog.Int64("to", to))
	}
	return true, err == nil
}
