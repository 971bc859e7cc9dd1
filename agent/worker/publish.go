package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/turn"
	"parley/bus"
)

// publish publishes a message from this session on the bus. It checks the lease first: a holder that has lost
// the lease must no longer speak, because the next holder does. It drops what is addressed to a sub-agent's session.
func (s lifecycle) publish(ctx context.Context, out bus.Outbound) error {
	if err := s.Lease.Held(ctx); err != nil {
		return fmt.Errorf("before publishing %s: %w", out.ID, err)
	}
	if out.To.Channel == bus.SubAgents {
		return nil // nobody is there
	}
	return publish(ctx, s.Config.Bus, s.fillCommonFields(out))
}

// fillCommonFields fills in what all outbound messages of a session have in common.
func (s lifecycle) fillCommonFields(out bus.Outbound) bus.Outbound {
	out.Session, out.At, out.Text = s.Key(), time.Now(), s.Redactor().Text(out.Text)
	return out
}

// publish puts an outbound message on the bus. If the bus did not refuse the message, it can't be reached, and
// publish marks the error as turn.ErrBusAway.
func publish(ctx context.Context, b bus.Bus, out bus.Outbound) error {
	err := bus.PublishOutbound(ctx, b, out)
	if err == nil || bus.IsRefusal(err) {
		return err
	}
	return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
}

// recordChanges has History record what a turn has changed in the session's files. It is called before anybody
// hears of the turn's end and can change more. A failure is only logged.
func (s lifecycle) recordChanges(ctx context.Context, id string) {
	if s.Config.History == nil {
		return
	}
	err := s.Lease.Held(ctx)
	if err == nil {
		err = s.Config.History.End(ctx, s.Key(), id)
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("what a turn has changed in its workspace is not noted yet", slog.String("turn", id), slog.Any("error", err))
	}
}
