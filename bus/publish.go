package bus

import (
	"context"
	"errors"
	"fmt"
)

// PublishOutbound puts an outbound message into the mailbox of its address. Its error wraps that of
// Publish and contains the message's id.
func PublishOutbound(ctx context.Context, b Bus, out Outbound) error {
	return publishOutbound(ctx, b, out, Message{})
}

// PublishUrgentOutbound does what PublishOutbound does, for messages that a full mailbox must not
// refuse; bounded sets the message's Bounded.
func PublishUrgentOutbound(ctx context.Context, b Bus, out Outbound, bounded bool) error {
	return publishOutbound(ctx, b, out, Message{Urgent: true, Bounded: bounded})
}

// OutboundMessage returns the bus message that PublishOutbound publishes in the topic of the message's
// channel.
func OutboundMessage(out Outbound) (Message, error) {
	body, err := out.Encode()
	if err != nil {
		return Message{}, fmt.Errorf("encode message %s: %w", out.ID, err)
	}
	return Message{ID: out.ID, Key: out.To.String(), Body: body}, nil
}

// publishOutbound publishes an outbound message, with the options that how has.
func publishOutbound(ctx context.Context, b Bus, out Outbound, how Message) error {
	m, err := OutboundMessage(out)
	if err != nil {
		return err
	}
	m.Urgent, m.Bounded = how.Urgent, how.Bounded
	if err := b.Publish(ctx, OutboundTopic(out.To.Channel), m); err != nil {
		return fmt.Errorf("publish message %s: %w", out.ID, err)
	}
	return nil
}

// PublishInbound puts an inbound message into a session's mailbox; urgent sets the bus message's Urgent.
// Its error wraps that of Publish and contains the message's id.
func PublishInbound(ctx context.Context, b Bus, session string, in Inbound, urgent bool) error {
	body, err := in.Encode()
	if err != nil {
		return fmt.Errorf("encode message %s: %w", in.ID, err)
	}
	if err := b.Publish(ctx, InboundTopic, Message{ID: in.ID, Key: session, Urgent: urgent, Body: body}); err != nil {
		return fmt.Errorf("publish message %s: %w", in.ID, err)
	}
	return nil
}

// PublishNotice puts a notice into a session's mailbox. The notice is urgent, so that a
// full mailbox does not refuse it.
func PublishNotice(ctx context.Context, b Bus, session string, notice Inbound) error {
	return PublishInbound(ctx, b, session, notice, true)
}

// IsRefusal reports whether an error of Publish is a decision of the bus (the mailbox is full, the message is
// invalid, or the bus is closed), which a repetition a moment later would not change. After any other error, it is
// unknown whether the message is durable.
func IsRefusal(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed)
}
