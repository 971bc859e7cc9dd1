package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/pacing"
)

// A clearance checks what every call to the platform needs: room under the rate limits, and the lease of the
// message's mailbox.
type clearance struct {
	pace *pacing.Pacer
	log  *slog.Logger
}

// awaitPaceAndLease waits until the rate limits allow a send, then checks that this process still holds the mailbox.
func (c *clearance) awaitPaceAndLease(ctx, work context.Context, d *delivery) error {
	if err := c.awaitPace(ctx, d); err != nil {
		return err
	}
	return c.checkLease(work, d)
}

// awaitPace waits until the rate limits allow a send. If that would take long, it returns an error that gives the
// message back to the bus.
func (c *clearance) awaitPace(ctx context.Context, d *delivery) error {
	if d.sendReserved {
		return nil
	}
	after, err := c.pace.Wait(ctx, d.lease.Lost(), d.to.Chat)
	switch {
	case errors.Is(err, bus.ErrFenced):
		return &deliveryError{leaseLost: true}
	case err != nil:
		return giveBackFor(0)
	case after > 0:
		return giveBackFor(after)
	}
	d.sendReserved = true
	return nil
}

// checkLease asks the bus whether this process still holds the mailbox. Call it before each call to the platform,
// and before each change to the book that could contradict what another process, which holds the mailbox by now,
// has recorded. If the lease is lost, or if the bus doesn't answer, it returns the *deliveryError that says so.
func (c *clearance) checkLease(work context.Context, d *delivery) error {
	err := d.lease.Held(work)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bus.ErrFenced):
		c.log.Warn("lease was lost before a send", slog.String("id", d.record.ID))
		return &deliveryError{leaseLost: true}
	}
	return giveBackFor(0)
}

// withLeaseCheck returns a context for calls to the platform: the adapter checks the lease again if this process was
// paused since asked, the time of the last check.
func (d *delivery) withLeaseCheck(work context.Context, asked time.Time) context.Context {
	return channels.WithLeaseCheck(work, channels.LeaseCheck{CheckedAt: asked, Check: d.lease.Held})
}
