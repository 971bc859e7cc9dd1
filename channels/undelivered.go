package channels

import (
	"context"
	"fmt"
	"time"

	"parley/bus"
)

// TellSession is a Dispatcher's Notify that tells the session which said a
// message that it was not delivered. The notice has an id of its own made of
// the message's, so it arrives once; it is urgent, so that a full mailbox does
// not keep it out.
func TellSession(b bus.Bus) func(ctx context.Context, out bus.Outbound, reason string) error {
	return func(ctx context.Context, out bus.Outbound, reason string) error {
		if out.Session == "" {
			return nil
		}
		const suffix = "#undelivered"
		notice := bus.Inbound{
			ID:     out.ID[:min(len(out.ID), bus.MaxID-len(suffix))] + suffix,
			Kind:   bus.Notice,
			At:     out.To,
			Text:   fmt.Sprintf("A message to %s was not delivered: %s.", out.To, reason),
			SentAt: time.Now(),
		}
		body, err := notice.Encode()
		if err != nil {
			return fmt.Errorf("encode notice %s: %w", notice.ID, err)
		}
		err = b.Publish(ctx, bus.InboundTopic, bus.Message{ID: notice.ID, Key: out.Session, Urgent: true, Body: body})
		if err != nil {
			return fmt.Errorf("publish notice %s: %w", notice.ID, err)
		}
		return nil
	}
}
