package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/files"
	"parley/channels/markup"
)

// A stage is one step of a delivery. An error ends the delivery; a *deliveryError says how. What has begun may go
// on until work ends; nothing new is begun once ctx is done.
type stage interface {
	run(ctx, work context.Context, d *delivery) error
}

// deliver sends one message, starting with the first part that is not known to be sent. It returns nil once nothing
// more has to be done for the message, and otherwise a *deliveryError.
func (r *run) deliver(ctx, work context.Context, lease bus.Lease, m bus.Message, attempts int) error {
	d, err := r.newDelivery(lease, m, attempts)
	if err != nil {
		return err
	}
	err = r.recoverPanic(d, func() error { return r.send(ctx, work, d) })
	if how, failed := errors.AsType[*deliveryError](err); failed && how.deadLetterReason == codePanicked {
		err = r.recoverPanic(d, func() error { return r.abandoner.abandon(work, d, codePanicked) })
	}
	return r.finish(work, d, err)
}

// newDelivery decodes a message that is to be sent. It returns a *deliveryError if the message can never be sent,
// or not by this release.
func (r *run) newDelivery(lease bus.Lease, m bus.Message, attempts int) (*delivery, error) {
	d := &delivery{lease: lease, attempts: attempts, startedAt: time.Now()}
	var err error
	if d.out, err = bus.DecodeOutbound(m.Body); err != nil || d.out.To.Chat == "" {
		r.log.Error("message cannot be read and is buried", slog.String("id", m.ID), slog.Int("bytes", len(m.Body)))
		return nil, &deliveryError{deadLetterReason: codeUndecodable}
	}
	if !bus.IsClean(d.out.To.String()) {
		r.log.Error("message is for no address and is buried", slog.String("id", m.ID))
		return nil, &deliveryError{deadLetterReason: codeBadAddress}
	}
	if need, ok := unknownNeed(d.out.Needs); ok {
		r.log.Warn("message needs what this release does not know and is left to another",
			slog.String("id", m.ID), slog.String("need", markup.Verbatim(need)))
		return nil, giveBackFor(unknownNeedWait)
	}
	d.to, d.record, d.files = d.out.To, recordOf(m.ID, &d.out), files.Of(d.out)
	d.to.Chat = r.moved.current(d.out.To.Chat)
	return d, nil
}

// finish does what remains to be done after a message was sent, or has failed with an error, and returns what
// deliver returns.
func (r *run) finish(work context.Context, d *delivery, err error) error {
	how, failed := errors.AsType[*deliveryError](err)
	r.tracing.recordDelivery(d, how)
	if !failed || how.discarded || how.deadLetterReason != "" {
		r.drafts.NoteFinished(work, d.out)
		r.files.release(d)
	}
	if failed && how.discarded {
		return nil
	}
	if !failed && d.hasArrived() {
		r.reactions.MarkAnswered(d.out)
	}
	return err
}

// recordOf returns the book's record of a message, without its parts.
func recordOf(id string, out *bus.Outbound) channels.Send {
	record := channels.Send{ID: id, To: out.To}
	if out.IsReply() {
		record.Session = out.Session
	} else {
		record.Writer = out.Session
	}
	return record
}

// recoverPanic calls work and turns a panic into an error: the message is then tried again as after any other
// failure, and given up after minAttemptsToGiveUp.
func (r *run) recoverPanic(d *delivery, work func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			channels.LogPanic(r.Log, "send", r.Name, d.record.ID, p)
			err = &deliveryError{retryAfter: backoff(d.attempts, maxBackoff)}
			if d.attempts >= minAttemptsToGiveUp {
				err = &deliveryError{deadLetterReason: codePanicked}
			}
		}
	}()
	return work()
}

// send takes the message through the stages in order.
func (r *run) send(ctx, work context.Context, d *delivery) error {
	for _, s := range r.stages {
		if err := s.run(ctx, work, d); err != nil {
			return err
		}
	}
	return nil
}

const unknownNeedWait = 30 * time.Second // how long to wait before trying again to send a message that needs another release

// unknownNeed returns the first of a message's needs (see bus.Outbound) that this release does not know, and
// whether there is one.
func unknownNeed(needs []string) (string, bool) {
	known := []string{bus.NeedFiles, bus.NeedOtherwise}
	for _, need := range needs {
		if !slices.Contains(known, need) {
			return need, true
		}
	}
	return "", false
}
