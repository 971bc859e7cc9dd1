package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"parley/bus"
)

// handleChange publishes to the session that a person edited or deleted one of their messages, if the session knows
// that message or has mail waiting: a message that was not meant for the bot is not published now either. If a
// person's change is not accepted, the person isn't told why.
func (d *receiver) handleChange(ctx context.Context, in bus.Inbound) error {
	if in.Kind == bus.Deleted && in.From.ID == "" {
		return d.handleDeletion(ctx, in)
	}
	who, ok, err := d.Gate.Judge(ctx, d.Channel, d.Pairings, in.From)
	if err != nil || !ok {
		return err
	}
	to, err := d.Route(ctx, in)
	if err != nil {
		return nil //nolint:nilerr // without a session, the bot knows nothing that was said there
	}
	in.From.Owner = who.Owner
	keys, err := d.concernedSessions(ctx, to, in.Of)
	if err != nil {
		return err
	}
	for _, key := range keys {
		change := forSession(to, key, in)
		if to.NamesAgent && key == to.Session {
			change.Text = to.Text
		}
		if err := d.publishUpdate(ctx, key, change); err != nil {
			return err
		}
	}
	return nil
}

// concernedSessions returns the sessions that a change to a message concerns: the one whose log contains the
// message or, if there is none, those with mail waiting, which may contain it.
func (d *receiver) concernedSessions(ctx context.Context, to RouteResult, message string) (waiting []string, err error) {
	for _, key := range append([]string{to.Session}, to.OtherSessions...) {
		if d.KnowsMessage != nil {
			known, err := d.KnowsMessage(ctx, key, message)
			if err != nil {
				return nil, fmt.Errorf("look whether a message is known: %w", err)
			}
			if known {
				return []string{key}, nil
			}
		}
		has, err := d.Bus.HasMail(ctx, bus.InboundTopic, key)
		if err != nil {
			return nil, fmt.Errorf("look whether a session has mail: %w", err)
		}
		if has {
			waiting = append(waiting, key)
		}
	}
	return waiting, nil
}

// handleDeletion handles a deletion for which the platform does not say who wrote the message. If a session's log
// contains the message, the log says who the author is. Otherwise the message may still be waiting to be read, in
// the conversation that everybody shares there.
func (d *receiver) handleDeletion(ctx context.Context, in bus.Inbound) error {
	if d.FindAuthor != nil {
		session, person, err := d.FindAuthor(ctx, in)
		if err != nil {
			return fmt.Errorf("look whose a deleted message is: %w", err)
		}
		if session != "" {
			in.From.ID = person
			return d.publishUpdate(ctx, session, in)
		}
	}
	to, err := d.Route(ctx, in)
	if err != nil {
		return nil //nolint:nilerr // without a session, no mail is waiting
	}
	for _, key := range append([]string{to.Session}, to.OtherSessions...) {
		waits, err := d.Bus.HasMail(ctx, bus.InboundTopic, key)
		if err != nil {
			return fmt.Errorf("look whether a session has mail: %w", err)
		}
		if !waits {
			continue
		}
		if err := d.publishUpdate(ctx, key, forSession(to, key, in)); err != nil {
			return err
		}
	}
	return nil
}

// publishUpdate publishes a change or a reaction to a session. If the bus refuses it, it is logged and dropped:
// nobody waits for an answer to it.
func (d *receiver) publishUpdate(ctx context.Context, session string, in bus.Inbound) error {
	err := bus.PublishInbound(ctx, d.Bus, session, in, in.Kind == bus.Deleted)
	if errors.Is(err, bus.ErrFull) || errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("news of a message could not be taken", slog.String("channel", d.Name), slog.String("id", in.ID), slog.Any("error", err))
		return nil
	}
	return err
}

// worksWithoutMail reports whether /stop has something to end in a session that has no mail; false if that isn't
// known.
func (d *receiver) worksWithoutMail(ctx context.Context, session string) bool {
	if d.WorksWithoutMail == nil {
		return false
	}
	works, err := d.WorksWithoutMail(ctx, session)
	if err != nil {
		d.Log.Warn("it is not known whether a session works without mail", slog.String("channel", d.Name), slog.Any("error", err))
	}
	return works
}
