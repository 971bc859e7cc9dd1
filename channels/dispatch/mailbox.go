package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
)

// serve claims mailboxes and sends their mail until held ends or the platform refuses the account. It returns when
// all sends have ended: with the platform's refusal, or nil.
func (r *run) serve(held context.Context) error {
	ctx, stop := context.WithCancelCause(held)
	defer stop(nil)
	// Sends in flight may finish after ctx is done, until cut is called.
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	var running sync.WaitGroup
	r.startIndicators(ctx, work, &running)
	r.running.Store(r)
	defer r.running.Store(nil)
	refused := r.claimAll(ctx, stop, func(lease bus.Lease) error { return r.workMailbox(ctx, work, lease) }, cut)
	stop(nil)
	running.Wait()
	return refused
}

// startIndicators starts the goroutines that show people that the bot is at work.
func (r *run) startIndicators(ctx, work context.Context, running *sync.WaitGroup) {
	listeners := []bus.Listener{r.pace}
	if r.typing != nil {
		listeners = append(listeners, r.typing)
		running.Go(func() { r.typing.show(ctx) })
	}
	if r.drafts != nil {
		listeners = append(listeners, r.drafts)
		r.drafts.Start(ctx, work, running)
	}
	if r.reactions != nil {
		listeners = append(listeners, r.reactions)
		running.Go(func() { r.reactions.Run(ctx) })
	}
	running.Go(func() { bus.Follow(ctx, r.Bus, r.Name, listeners...) })
}

// claimAll claims mailboxes and calls work for them, at most Policy.MaxAddresses at a time, until ctx is done. It returns
// after all work has ended; if some is still running after Policy.Drain, it calls cut to end it. It returns the first
// error of work, or why mailboxes can't be claimed.
func (r *run) claimAll(ctx context.Context, stop context.CancelCauseFunc, work func(bus.Lease) error, cut func()) error {
	var refused error
	var once sync.Once
	refuse := func(err error) {
		once.Do(func() { refused = err })
		stop(err)
	}
	wait, err := bus.ClaimEach(ctx, r.Bus, bus.OutboundTopic(r.Name), r.policy.MaxAddresses, func(lease bus.Lease) {
		if err := work(lease); err != nil {
			refuse(err)
		}
	})
	if err != nil {
		refuse(fmt.Errorf("claim mail: %w", err))
	}
	late := time.AfterFunc(r.policy.Drain, cut)
	defer late.Stop()
	wait()
	return refused
}

// workMailbox sends the mail of one address and settles its mailbox once. It returns the
// platform's refusal of the account, or nil.
func (r *run) workMailbox(ctx, work context.Context, lease bus.Lease) error {
	key := lease.Claim().Key
	r.drafts.Block(key)
	end := r.sendMail(ctx, work, lease)
	r.drafts.Unblock(key, end.mailLeft)
	if end.leaseLost {
		return nil // the process that holds the mailbox now will settle it
	}
	bus.RetrySettle(work, lease, end.End, r.policy.Drain, func(err error) {
		r.log.Warn("mail could not be settled", slog.String("address", key), slog.Any("error", err))
	})
	r.point("send:settled")
	return end.refusal
}

// A mailboxEnd describes how the work on a mailbox ended.
type mailboxEnd struct {
	bus.End
	mailLeft  bool  // whether the mailbox still contains mail to be sent later
	leaseLost bool  // whether another process may hold the mailbox, so that this one must not settle it
	refusal   error // the platform's refusal of the account, or nil
}

// sendMail sends the mail that waits in a mailbox, and returns how to settle the mailbox.
func (r *run) sendMail(ctx, work context.Context, lease bus.Lease) (end mailboxEnd) {
	began := time.Now()
	key := lease.Claim().Key
	if wait := r.retries.remaining(key, channels.Connected(r.Channel)); wait > 0 {
		return mailboxEnd{End: bus.End{Uncounted: true, After: wait}, mailLeft: true}
	}
	mail, err := lease.Mail(work, 0)
	if err != nil {
		r.log.Warn("mail could not be read", slog.String("address", key), slog.Any("error", err))
		return mailboxEnd{End: bus.End{Uncounted: true, After: time.Second}, mailLeft: true, leaseLost: errors.Is(err, bus.ErrFenced)}
	}
	for i, m := range mail {
		if ctx.Err() != nil || i > 0 && time.Since(began) > maxHold {
			end.Uncounted, end.mailLeft = true, true
			return end
		}
		attempts := 1 // only a mailbox's first message was tried by earlier claims
		if i == 0 {
			attempts = lease.Claim().Attempts
		}
		if how, failed := errors.AsType[*deliveryError](r.deliver(ctx, work, lease, m, attempts)); failed {
			how.applyTo(&end.End, m)
			end.mailLeft = how.deadLetterReason == "" || i+1 < len(mail)
			end.leaseLost, end.refusal = how.leaseLost, how.refusal
			return end
		}
		end.Done = m.Seq
	}
	r.retries.remove(key)
	return end
}
