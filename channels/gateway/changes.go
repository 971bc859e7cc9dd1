package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"parley/bus"
)

// takeChange takes that somebody who may talk to the bot has edited or deleted what they
// said, where the session knows the message or has mail: what was not meant for the bot is
// not published now either. Nobody is told why theirs is not taken.
func (d *intake) takeChange(ctx context.Context, in bus.Inbound) error {
	if in.Kind == bus.Deleted && in.From.ID == "" {
		return d.takeDeletion(ctx, in)
	}
	owner, ok, err := d.Gate.admits(ctx, d.Channel, d.Pairings, in.From)
	if err != nil || !ok {
		return err
	}
	key, err := d.Route(ctx, in)
	if err != nil {
		return nil //nolint:nilerr // the bot knows nothing that was said where there is no session
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
	return d.tell(ctx, key, in)
}

// takeDeletion takes that a message is gone of which the platform does not tell who has said
// it. Where a session knows it, that tells. Else it may wait to be read, in the conversation
// that all share there.
func (d *intake) takeDeletion(ctx context.Context, in bus.Inbound) error {
	if d.Whose != nil {
		session, person, err := d.Whose(ctx, in)
		if err != nil {
			return fmt.Errorf("look whose a deleted message is: %w", err)
		}
		if session != "" {
			in.From.ID = person
			return d.tell(ctx, session, in)
		}
	}
	key, err := d.Route(ctx, in)
	if err != nil {
		return nil //nolint:nilerr // nothing waits where there is no session
	}
	waits, err := d.Bus.HasMail(ctx, bus.InboundTopic, key)
	if err != nil {
		return fmt.Errorf("look whether a session has mail: %w", err)
	}
	if !waits {
		return nil
	}
	return d.tell(ctx, key, in)
}

// tell publishes news of a message to a session. What is refused is left out: it is no
// message that somebody waits for.
func (d *intake) tell(ctx context.Context, session string, in bus.Inbound) error {
	err := bus.PublishInbound(ctx, d.Bus, session, in, in.Kind == bus.Deleted)
	if errors.Is(err, bus.ErrFull) || errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("news of a message could not be taken", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		return nil
	}
	return err
}

// waits tells whether a turn of a session waits for people.
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
