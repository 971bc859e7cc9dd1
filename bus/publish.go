package bus

import (
	"context"
	"fmt"
)

// PublishOutbound puts an outbound message into the mailbox of its address. The
// error is Publish's and names the message.
func PublishOutbound(ctx context.Context, b Bus, out Outbound) error {
	return publishOutbound(ctx, b, out, Message{})
}

// PublishUrgentOutbound is PublishOutbound for what a full mailbox must not keep
// out; bounded is Message.Bounded.
func PublishUrgentOutbound(ctx context.Context, b Bus, out Outbound, bounded bool) error {
	return publishOutbound(ctx, b, out, Message{Urgent: true, Bounded: bounded})
}

func publishOutbound(ctx context.Context, b Bus, out Outbound, m Message) error {
	body, err := out.Encode()
	if err != nil {
		return fmt.Errorf("encode message %s: %w", out.ID, err)
	}
	m.ID, m.Key, m.Body = out.ID, out.To.String(), body
	if err := b.Publish(ctx, OutboundTopic(out.To.Channel), m); err != nil {
		return fmt.Errorf("publish message %s: %w", out.ID, err)
	}
	return nil
}

// PublishNotice puts a notice into a session's mailbox. It is urgent, so that a
// full mailbox does not keep it out.
func PublishNotice(ctx context.Context, b Bus, session string, notice Inbound) error {
	body, err := notice.Encode()
	if err != nil {
		return fmt.Errorf("encode notice %s: %w", notice.ID, err)
	}
	m := Message{ID: notice.ID, Key: session, Urgent: true, Body: body}
	if err := b.Publish(ctx, InboundTopic, m); err != nil {
		return fmt.Errorf("publish notice %s: %w", notice.ID, err)
	}
	return nil
}
