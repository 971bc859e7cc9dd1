package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"parley/bus"
)

// handleChange publishes to the session that a person edited or deleted one of their
// messages, if the session knows that message or has waiting mail: a message that was not
// meant for the bot is not published now either. A person whose change is not accepted is
// not told why.
func (d *intake) handleChange(ctx context.Context, in bus.Inbound) error {
	if in.Kind == bus.Deleted && in.From.ID == "" {
		return d.handleDeletion(ctx, in)
	}
	owner, ok, err := d.Gate.admits(ctx, d.Channel, d.Pairings, in.From)
	if err != nil || !ok {
		return err
	}
	key, err := d.Route(ctx, in)
	if err != nil {
		return nil //nolint:nilerr // without a session the bot knows nothing that was said there
	}
	known := false
	if d.Knows != nil {
		if known, err = d.Knows(ctx, key, in.Of); err != nil {
			return fmt.Errorf("look whether a message is known: %w", err)
		}
	}
	if !known {
		if known, err = d.Bus.HasMail(ctx, bus.InboundTopic, key); err != nil {
			return fmt.Errorf("look whether a session has mail: %w", err)
		}
	}
	if !known {
		return nil
	}
	in.From.Owner = owner
	return d.publishUpdate(ctx, key, in)
}

// handleDeletion handles a deletion for which the platform does not say who wrote the
// message. If a session knows the message, that tells the author. Otherwise the message may
// still wait to be read, in the conversation that all share there.
func (d *intake) handleDeletion(ctx context.Context, in bus.Inbound) error {
	if d.Whose != nil {
		session, person, err := d.Whose(ctx, in)
		if err != nil {
			return fmt.Errorf("look whose a deleted message is: %w", err)
		}
		if session != "" {
			in.From.ID = person
			return d.publishUpdate(ctx, session, in)
		}
	}
	key, err := d.Route(ctx, in)
	if err != nil {
		return nil //nolint:nilerr // without a session nothing waits
	}
	waits, err := d.Bus.HasMail(ctx, bus.InboundTopic, key)
	if err != nil {
		return fmt.Errorf("look whether a session has mail: %w", err)
	}
	if !waits {
		return nil
	}
	return d.publishUpdate(ctx, key, in)
}

// publishUpdate publishes a change or reaction to a session. If the bus refuses it, it logs that
// and drops it: nobody waits for an answer to it.
func (d *intake) publishUpdate(ctx context.Context, session string, in bus.Inbound) error {
	err := bus.PublishInbound(ctx, d.Bus, session, in, in.Kind == bus.Deleted)
	if errors.Is(err, bus.ErrFull) || errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("news of a message could not be taken", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		return nil
	}
	return err
}

// waits reports whether a turn of the session waits for people.
func (d *intake) waits(ctx context.Context, session string) bool {
	if d.Waits == nil {
		return false
	}
	waits, err := d.Waits(ctx, session)
	if err != nil {
		d.Log.Warn("it is not known whether a turn waits", slog.String("channel", d.Name), slog.Any("error", err))
	}
	return waits
}
