package channels

import (
	"context"
	"fmt"
	"time"

	"parley/bus"
)

// TellSession is a Dispatcher's Notify that tells the session which said a
// message that it was not delivered. The notice has an id of its own made of
// the message's, so it arrives once.
func TellSession(b bus.Bus) func(ctx context.Context, out bus.Outbound, reason string) error {
	return func(ctx context.Context, out bus.Outbound, reason string) error {
		if out.Session == "" {
			return nil
		}
		return publishNotice(ctx, b, out.Session, bus.Inbound{
			ID:     noticeID(out.ID, "#undelivered"),
			Kind:   bus.Notice,
			At:     out.To,
			Text:   fmt.Sprintf("A message to %s was not delivered: %s.", out.To, reason),
			SentAt: time.Now(),
		})
	}
}
