package erase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/bus"
	"parley/sessions"
)

// A target says what one call of an Eraser erases: everything about a person, or a session.
type target struct {
	person    string        // "" for a session
	origin    string        // the origin of the person's messages, if the person is a program's token
	addresses []bus.Address // the chats in which everything that was sent is erased
	alone     []string      // sessions that are erased completely
	shared    []string      // sessions from which the person's turns are erased
	eraseLog  func(context.Context, *target) (sessions.Erased, error)
}

// covers reports whether a message is part of what the target erases. Its errors are the store's.
func (e *Eraser) covers(ctx context.Context, t *target, topic bus.Topic, m bus.Message) (bool, error) {
	switch {
	case topic == bus.InboundTopic:
		if slices.Contains(t.alone, m.Key) {
			return true, nil
		}
		in, err := bus.DecodeInbound(m.Body)
		return err == nil && t.person != "" && (in.From.ID == t.person || personBehind(in) == t.person), nil
	case topic == bus.TimersTopic:
		timer, err := bus.DecodeTimer(m.Body)
		return err == nil && (slices.Contains(t.alone, timer.Session) || t.person != "" && timer.Person == t.person), nil
	case strings.HasPrefix(string(topic), string(bus.OutboundTopic(""))):
		out, err := bus.DecodeOutbound(m.Body)
		if err != nil {
			return false, nil // a message that can't be decoded belongs to nobody
		}
		if out.Told != nil && out.Told.Operator {
			return slices.Contains(t.alone, out.Session) || t.person != "" && out.Told.For.ID == t.person, nil
		}
		if out.Session == "" {
			return t.origin != "" && out.Origin == t.origin, nil
		}
		if slices.Contains(t.shared, out.Session) && !slices.Contains(t.alone, out.Session) {
			return e.belongsTo(ctx, t.person, out)
		}
		return slices.Contains(t.alone, out.Session), nil
	}
	return false, nil
}

// personBehind returns a person if the message is a notice that the agent has sent something to this session on
// that person's behalf, or that this person has answered here as the operator; "" for any other message.
func personBehind(in bus.Inbound) string {
	if in.Kind != bus.Notice || len(in.Quotes) == 0 || in.Quotes[0].Kind != bus.Told {
		return ""
	}
	return in.Quotes[0].From.ID
}

// belongsTo reports whether a queued outbound message comes from one of the person's turns. A turn that is missing
// from the log counts as theirs, because it was logged before the message was published and so must have been
// erased since.
func (e *Eraser) belongsTo(ctx context.Context, person string, out bus.Outbound) (bool, error) {
	cause := out.Turn
	if cause == "" { // the answer to a command
		cause = bus.ReplyCause(out.ID)
	}
	entry, err := e.cfg.Store.Find(ctx, out.Session, cause)
	if errors.Is(err, sessions.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("find out whose message %s is: %w", out.ID, err)
	}
	return entry.Person == person, nil
}

// addressOf returns the address of the chat in which the session with this key takes place; false if other people have
// sessions of their own in the same chat, so that not everything there belongs to this session, or if key isn't a
// session's.
func addressOf(key string) (bus.Address, bool) {
	parts, err := sessions.ParseKey(key)
	if err != nil || parts.User != "" {
		return bus.Address{}, false
	}
	return bus.Address{Channel: parts.Channel, Chat: parts.Chat, Thread: parts.Thread}, true
}
