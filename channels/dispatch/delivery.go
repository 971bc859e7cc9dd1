package dispatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/enclosure"
)

// Codes of the dispatcher's own, beside the platforms'.
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
	to       bus.Address   // out.To, or where that moved
	record   channels.Send // as the book has it; its ID is the message's on the bus
	attempts int
	paced    bool              // the pace was waited for and not yet used
	markdown map[string]string // of rendered texts, once it was needed

	enclosures []enclosure.Enclosure // the files that go with it
}

// settled tells whether nothing more is to be done for a part: it was sent, nobody
// will ever know, or it is a file that the message goes without.
func (d *delivery) settled(i int) bool {
	p := d.record.Parts[i]
	return p.State == channels.Sent || p.State == channels.Unsure || isLeftOut(p)
}

// arrived tells whether all of the message was sent, but for files that it goes without.
func (d *delivery) arrived() bool {
	sent := false
	for _, p := range d.record.Parts {
		if p.State != channels.Sent && !isLeftOut(p) {
			return false
		}
		sent = sent || p.State == channels.Sent
	}
	return sent
}

// expired says that the message is too old to be worth sending.
func (d *delivery) expired() bool {
	return !d.out.Expires.IsZero() && !time.Now().Before(d.out.Expires)
}

// waitForPace waits until the pace allows a send. A message that would have to wait
// for long is given back to the bus instead.
func (d *delivery) waitForPace(ctx context.Context) error {
	if d.paced {
		return nil
	}
	after, err := d.pace.Wait(ctx, d.lease.Lost(), d.to.Chat)
	switch {
	case errors.Is(err, bus.ErrFenced):
		return &deliveryError{leaseLost: true}
	case err != nil:
		return later(0)
	case after > 0:
		return later(after)
	}
	d.paced = true
	return nil
}

// waitAndCheckLease waits for the pace and asks for the lease.
func (d *delivery) waitAndCheckLease(ctx, work context.Context) error {
	if err := d.waitForPace(ctx); err != nil {
		return err
	}
	return d.checkLease(work)
}

// checkLease asks the bus whether the mailbox is still ours. It is called before each
// call of the platform and before each change of the book that another process,
// holding the mailbox by now, may have made otherwise.
func (d *delivery) checkLease(work context.Context) error {
	err := d.lease.Held(work)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bus.ErrFenced):
		d.Log.Warn("lease was lost before a send", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return &deliveryError{leaseLost: true}
	}
	return later(0)
}

// mark notes what became of a part.
func (d *delivery) mark(work context.Context, i int, now channels.SentPart) error {
	err := d.writeToBook(work, d.lease.Lost(), func(ctx context.Context) error { return d.Book.Mark(ctx, d.record.ID, i, now) })
	if err != nil {
		return d.bookFailed(err)
	}
	d.record.Parts[i] = now
	return nil
}

func (d *delivery) bookFailed(err error) error {
	d.Log.Error("book could not be used", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	return later(storageWait)
}

func (d *delivery) platformPart(i int) channels.Part {
	p := d.record.Parts[i]
	part := channels.Part{Key: channels.PartKey(d.record.ID, i), Text: p.Text, Plain: p.Plain, Under: p.Under, Markdown: d.markdownOf(p)}
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

// markdownOf is a part as Markdown, where the channel shows that better than its text. The
// book does not keep it: it is made again of the message, and is of a part if its text is.
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

// buttons are shown with the message's last part. What is to be replaced later gets
// them only where that takes them away again: as one text that may be edited.
func (d *delivery) buttons() []bus.Button {
	if len(d.out.Buttons) == 0 || d.record.Parts[len(d.record.Parts)-1].File {
		return nil
	}
	if d.out.Subject != "" && !d.replaces(d.record.Parts) {
		return nil
	}
	return channels.ShownButtons(d.Channel, d.out.Buttons)
}

// markUnsent notes that a part was certainly not sent; if the lease is lost by now,
// the part may be in another's hands and is left alone.
func (d *delivery) markUnsent(work context.Context, i int) error {
	if err := d.checkLease(work); err != nil {
		return err
	}
	p := d.record.Parts[i]
	p.State = channels.Queued
	return d.mark(work, i, p)
}

// retryLater gives the message back until the platform may take it.
func (d *delivery) retryLater(work context.Context, fault *channels.SendError) error {
	if !fault.Limited {
		after := max(fault.RetryAfter, backoff(d.attempts, longestBackoff))
		if fault.RetryAfter == 0 {
			after = d.retries.add(d.lease.Claim().Key, after, true, !channels.Connected(d.Channel))
		}
		return &deliveryError{after: after}
	}
	asked := d.pace.Limited(d.to.Chat, fault)
	if fault.Account {
		// The pace here already waits; the pause also tells whoever takes over.
		if err := d.Bus.Pause(work, bus.OutboundTopic(d.Name), asked); err != nil {
			d.Log.Warn("topic could not be paused", slog.String("channel", d.Name), slog.Any("error", err))
		}
	}
	return later(asked + backoff(1, longestBackoff))
}

// A deliveryError is why a delivery ended before its message was through, and what
// is to become of the message. Without more it is given back to the bus at once, and
// that counts as an attempt.
type deliveryError struct {
	discarded bool          // nothing: it is through without being sent, and nobody misses it
	bury      string        // it is put with the dead letters, for this reason; "" does not
	after     time.Duration // it is given back, and not given out before then
	uncounted bool          // giving it back is no attempt: it is not the message's fault
	leaseLost bool          // another process has it, so nothing may be done any more
	refused   error         // the platform refuses the account; no delivery can succeed
}

// Error says what is to become of the message.
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

// Unwrap is the platform's refusal, if it is one.
func (e *deliveryError) Unwrap() error { return e.refused }

// later gives a message back because of something that is not its fault.
func later(after time.Duration) *deliveryError {
	return &deliveryError{after: after, uncounted: true}
}

// settles writes into end what is to become of the message m when its mailbox is settled.
func (e *deliveryError) settles(end *bus.End, m bus.Message) {
	if e.bury != "" {
		end.Dead, end.Reason = m.Seq, e.bury
		return
	}
	end.After, end.Uncounted = e.after, e.uncounted
}
