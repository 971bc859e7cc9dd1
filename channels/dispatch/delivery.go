package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/enclosure"
)

// Codes that the dispatcher itself records, beside the platforms' codes.
const (
	undecodable    = "undecodable"
	panicked       = "panicked"
	expired        = "expired"
	empty          = "empty"
	badAddress     = "bad_address"
	gaveUp         = "given_up"
	unknownOutcome = "unknown"
)

// A delivery is one message on its way to the platform.
type delivery struct {
	*run
	lease    bus.Lease
	out      bus.Outbound
	to       bus.Address   // where the message goes: out.To, or the chat's new id if it moved
	record   channels.Send // what the book has of the message; its ID is also the message's on the bus
	attempts int
	paced    bool              // waitForPace has reserved a send under the rate limit that was not made yet
	markdown map[string]string // the Markdown of each rendered text; made when first needed

	enclosures []enclosure.Enclosure // the files that go with the message
}

// isSettled reports whether nothing more is to be done for a part: it was sent, or nobody will ever
// know whether it was, or it is a file that the message goes without.
func (d *delivery) isSettled(i int) bool {
	p := d.record.Parts[i]
	return p.State == channels.Sent || p.State == channels.Unsure || isLeftOut(p)
}

// hasArrived reports whether the whole message was sent, apart from files that it goes
// without.
func (d *delivery) hasArrived() bool {
	sent := false
	for _, p := range d.record.Parts {
		if p.State != channels.Sent && !isLeftOut(p) {
			return false
		}
		sent = sent || p.State == channels.Sent
	}
	return sent
}

// hasExpired reports whether the message is past its expiry, so that nobody wants it any more.
func (d *delivery) hasExpired() bool {
	return !d.out.Expires.IsZero() && !time.Now().Before(d.out.Expires)
}

// waitForPace waits until the rate limit allows a send. If that would take long, it returns an
// error that gives the message back to the bus.
func (d *delivery) waitForPace(ctx context.Context) error {
	if d.paced {
		return nil
	}
	after, err := d.pace.Wait(ctx, d.lease.Lost(), d.to.Chat)
	switch {
	case errors.Is(err, bus.ErrFenced):
		return &deliveryError{leaseLost: true}
	case err != nil:
		return giveBackFor(0)
	case after > 0:
		return giveBackFor(after)
	}
	d.paced = true
	return nil
}

// waitAndCheckLease waits until the rate limit allows a send, and then checks that this process
// still holds the mailbox.
func (d *delivery) waitAndCheckLease(ctx, work context.Context) error {
	if err := d.waitForPace(ctx); err != nil {
		return err
	}
	return d.checkLease(work)
}

// checkLease asks the bus whether this process still holds the mailbox. It must be called
// before each call of the platform, and before each change of the book that could
// contradict what another process, holding the mailbox by now, has recorded.
func (d *delivery) checkLease(work context.Context) error {
	err := d.lease.Held(work)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bus.ErrFenced):
		d.Log.Warn("lease was lost before a send", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return &deliveryError{leaseLost: true}
	}
	return giveBackFor(0)
}

func isSent(p channels.SentPart) bool { return p.State == channels.Sent }

// mark records the state of part i in the book. If the record was erased and the platform has the
// part, or an earlier one, the delivery goes on without it: from a new record it would send that again.
func (d *delivery) mark(work context.Context, i int, now channels.SentPart) error {
	err := d.writeToBook(work, d.lease.Lost(), func(ctx context.Context) error { return d.Book.Mark(ctx, d.record.ID, i, now) })
	if errors.Is(err, channels.ErrNoSend) && (now.State == channels.Sent || slices.ContainsFunc(d.record.Parts, isSent)) {
		d.Log.Warn("record of a message was erased while it was sent", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		err = nil
	}
	if errors.Is(err, channels.ErrFinished) { // the next delivery reads what has become of it
		d.Log.Warn("part of a message was finished by another process meanwhile", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Int("part", i))
		return giveBackFor(0)
	}
	if err != nil {
		return d.errFromBook(err)
	}
	d.record.Parts[i] = now
	return nil
}

// errFromBook logs an error of the book and returns one with which the message is tried again a
// little later.
func (d *delivery) errFromBook(err error) error {
	d.Log.Error("book could not be used", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	return giveBackFor(storageWait)
}

// platformPart returns part i in the form in which the channel sends it.
func (d *delivery) platformPart(i int) channels.Part {
	p := d.record.Parts[i]
	part := channels.Part{Key: channels.PartKey(d.record.ID, i), Session: d.out.Session, Text: p.Text, Plain: p.Plain, Under: p.Under, Markdown: d.markdownOf(p)}
	if i == 0 {
		part.ReplyTo = d.out.ReplyTo
	}
	if i == len(d.record.Parts)-1 {
		part.Buttons = d.buttons()
	}
	if f, ok := d.enclosureOf(i); ok {
		part.File = f.Name
	}
	return part
}

// markdownOf returns a part's text as Markdown, where the channel shows that better than the
// rendered text, and else "". The book does not store the Markdown, so it is rendered again from
// the message; it belongs to the part if both have the same rendered text.
func (d *delivery) markdownOf(p channels.SentPart) string {
	if !d.limits.Markdown || p.File {
		return ""
	}
	if d.markdown == nil {
		d.markdown = map[string]string{}
		pieces := d.renderer.Render(d.out.Text, d.limits.Dialect, d.limits.Length)
		if p.Edits != "" {
			pieces = append(pieces, d.renderer.RenderFirst(d.out.Text, d.limits.Dialect, d.limits.EditBytes, d.limits.Length)...)
		}
		for _, piece := range pieces {
			d.markdown[piece.Text] = piece.Markdown
		}
	}
	return d.markdown[p.Text]
}

// buttons returns the buttons to show with the message's last part. If the message is about a
// subject, a later message will replace it; then it has buttons only if that edit can remove them
// again, that is, if the message is a single text that may be edited.
func (d *delivery) buttons() []bus.Button {
	if len(d.out.Buttons) == 0 || d.record.Parts[len(d.record.Parts)-1].File {
		return nil
	}
	if d.out.Subject != "" && !d.canReplace(d.record.Parts) {
		return nil
	}
	return channels.ShownButtons(d.Channel, d.out.Buttons)
}

// markUnsent records that a part was certainly not sent. If the lease is lost by then, it records
// nothing, because another process may be sending the part.
func (d *delivery) markUnsent(work context.Context, i int) error {
	if err := d.checkLease(work); err != nil {
		return err
	}
	p := d.record.Parts[i]
	p.State = channels.Queued
	return d.mark(work, i, p)
}

// retryLater returns an error that gives the message back to the bus until the platform may
// accept it.
func (d *delivery) retryLater(work context.Context, fault *channels.SendError) error {
	if !fault.Limited {
		after := max(fault.RetryAfter, backoff(d.attempts, longestBackoff))
		if fault.RetryAfter == 0 {
			after = d.retries.add(d.lease.Claim().Key, after, true, !channels.Connected(d.Channel))
		}
		return &deliveryError{after: after}
	}
	asked := d.pace.NoteLimit(d.to.Chat, fault)
	if fault.Account {
		// The pacer of this process already waits; pausing the topic also tells a process
		// that takes over.
		if err := d.Bus.Pause(work, bus.OutboundTopic(d.Name), asked); err != nil {
			d.Log.Warn("topic could not be paused", slog.String("channel", d.Name), slog.Any("error", err))
		}
	}
	return giveBackFor(asked + backoff(1, longestBackoff))
}

// A deliveryError says why a delivery ended before its message was finished, and what to do
// with the message. With no field set, the message goes back to the bus at once, and the
// delivery counts as an attempt.
type deliveryError struct {
	discarded bool          // remove the message without sending it: nobody misses it
	bury      string        // make the message a dead letter for this reason; "" means not to
	after     time.Duration // give the message back to the bus, which lets nobody claim it again before that time is over
	uncounted bool          // giving it back does not count as an attempt: it is not the message's fault
	leaseLost bool          // do nothing with the message: another process holds its mailbox
	refused   error         // the platform refuses the account; no delivery can succeed
}

// Error says why the delivery ended, or else when the message is tried again.
func (e *deliveryError) Error() string {
	switch {
	case e.discarded:
		return "not worth sending"
	case e.bury != "":
		return "given up: " + e.bury
	case e.leaseLost:
		return "the lease is lost"
	case e.refused != nil:
		return "the platform refuses the account: " + e.refused.Error()
	}
	return "to be tried again after " + e.after.String()
}

// Unwrap returns the platform's refusal of the account, or nil.
func (e *deliveryError) Unwrap() error { return e.refused }

// giveBackFor returns an error that gives a message back for a while because of something that is
// not its fault.
func giveBackFor(after time.Duration) *deliveryError {
	return &deliveryError{after: after, uncounted: true}
}

// applyTo copies into end what to do with the message m when its mailbox is settled.
func (e *deliveryError) applyTo(end *bus.End, m bus.Message) {
	if e.bury != "" {
		end.Dead, end.Reason = m.Seq, e.bury
		return
	}
	end.After, end.Uncounted = e.after, e.uncounted
}
