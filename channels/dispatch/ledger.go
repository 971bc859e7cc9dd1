package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/channels"
)

// A ledger records in the book what becomes of a message.
type ledger struct {
	book      channels.Sends
	clearance *clearance
	drain     time.Duration
	log       *slog.Logger
}

// write repeats a write to the book until it succeeds, because a part that the platform has but the book doesn't
// know of would be sent twice. It gives up when the lease is lost, when Policy.Drain has passed since work ended,
// or when the book refuses the write with ErrNoSend or ErrFinished.
func (l *ledger) write(work context.Context, lost <-chan struct{}, write func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(work))
	defer cancel()
	defer context.AfterFunc(work, func() { time.AfterFunc(l.drain, cancel) })()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := write(ctx)
		if err == nil || errors.Is(err, channels.ErrNoSend) || errors.Is(err, channels.ErrFinished) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-lost:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// mark records the state of part i in the book. If the record was erased in the meantime and the platform has this
// part or an earlier one, the delivery continues without a record: with a new one it would send those parts again. If
// another process has finished the part, or the book can't be written to, the message is given back.
func (l *ledger) mark(work context.Context, d *delivery, i int, now channels.SentPart) error {
	err := l.write(work, d.lease.Lost(), func(ctx context.Context) error { return l.book.Mark(ctx, d.record.ID, i, now) })
	if errors.Is(err, channels.ErrNoSend) && (now.State == channels.Sent || slices.ContainsFunc(d.record.Parts, isPartSent)) {
		l.log.Warn("record of a message was erased while it was sent", slog.String("id", d.record.ID))
		err = nil
	}
	if errors.Is(err, channels.ErrFinished) { // the next delivery reads how it was finished
		l.log.Warn("part of a message was finished by another process meanwhile", slog.String("id", d.record.ID), slog.Int("part", i))
		return giveBackFor(0)
	}
	if err != nil {
		return l.retryAfterError(d, err)
	}
	d.record.Parts[i] = now
	return nil
}

// markUnsent records that a part was certainly not sent. If the lease is lost by then, it records nothing, because
// another process may be sending the part.
func (l *ledger) markUnsent(work context.Context, d *delivery, i int) error {
	if err := l.clearance.checkLease(work, d); err != nil {
		return err
	}
	p := d.record.Parts[i]
	p.State = channels.Queued
	return l.mark(work, d, i, p)
}

// retryAfterError logs an error from the book, and returns an error with which the message is tried again a little
// later.
func (l *ledger) retryAfterError(d *delivery, err error) error {
	l.log.Error("book could not be used", slog.String("id", d.record.ID), slog.Any("error", err))
	return giveBackFor(storageWait)
}
