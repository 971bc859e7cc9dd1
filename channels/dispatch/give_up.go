package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

const (
	// leastAttempts is how often a message must have been tried before it is given up.
	leastAttempts = 10
	// leastBeforeFallback is how often sends to an address must have failed.
	leastBeforeFallback = 5
)

// shouldGiveUp tells whether a message that cannot be sent has been tried for long
// enough. Where there is a fallback, it is used once the platform has
// failed for a while: not for the message's own failures alone, so that what
// waits behind it for the same address need not wait as long again.
func (d *delivery) shouldGiveUp() bool {
	if len(d.out.Fallback) > 0 {
		since, tries := d.streaks.of(d.out.To)
		after := d.policy.FallbackAfter
		if tries >= leastBeforeFallback && time.Since(since) > after && time.Since(d.out.At) > after {
			return true
		}
	}
	return d.triedLongEnough()
}

// triedLongEnough says so of a message for its own sake. One that does not say when it was
// said is judged by what its attempts must have taken.
func (d *delivery) triedLongEnough() bool {
	if d.attempts < leastAttempts {
		return false
	}
	if d.out.At.IsZero() {
		return time.Duration(d.attempts)*longestBackoff/2 > d.policy.GiveUp
	}
	return time.Since(d.out.At) > d.policy.GiveUp
}

// noteFailure notes that the platform has failed to take something, and not because
// it was asked too often.
func (d *delivery) noteFailure(fault *channels.SendError) {
	if !fault.Limited {
		d.streaks.add(d.out.To)
	}
}

// giveUp gives a message up: what was not sent of it will not be, the session is
// told, it goes to where it can be delivered, and is buried. What has expired
// or says nothing is not buried and goes nowhere: nobody wants it, so there is
// nothing to look into and nothing to be replayed.
func (d *delivery) giveUp(work context.Context, code string) error {
	if err := d.checkLease(work); err != nil {
		return err
	}
	if code == "" {
		code = string(channels.Rejected)
	}
	for i, p := range d.record.Parts {
		if p.State == channels.Failed || d.settled(i) {
			continue
		}
		p.State, p.Code = channels.Failed, code
		if err := d.mark(work, i, p); err != nil {
			return err
		}
	}
	d.point("send:failed")
	if code == expired {
		if err := d.withdrawUnreplaced(work); err != nil {
			return err
		}
	}
	if err := d.notifySession(work, code); err != nil {
		return err
	}
	if err := d.explainRefusal(work, code); err != nil {
		return err
	}
	switch code {
	case expired:
		d.Log.Info("message has expired", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return &deliveryError{discarded: true}
	case empty:
		d.Log.Warn("message has nothing to see in it", slog.String("channel", d.Name), slog.String("id", d.record.ID))
		return &deliveryError{discarded: true}
	}
	if err := d.sendToFallback(work, code); err != nil {
		return err
	}
	d.point("send:elsewhere")
	return &deliveryError{bury: code}
}

// withdrawUnreplaced withdraws the draft whose place the message was to take, and did
// not in time: nothing else would ever replace it. The edit may be repeated.
func (d *delivery) withdrawUnreplaced(work context.Context) error {
	first := d.record.Parts[0]
	if first.Edits == "" || first.PlatformID != "" || d.out.Turn == "" {
		return nil
	}
	draft, err := d.Book.Lookup(work, d.out.Turn+draftSuffix)
	if errors.Is(err, channels.ErrNoSend) {
		return nil // it was to take the place of an earlier message about its subject
	}
	if err != nil {
		return d.bookFailed(err)
	}
	if draft.Parts[0].PlatformID != first.Edits {
		return nil
	}
	return d.withdrawDraft(work, first.Edits)
}

// notifySession tells the session, where one has said it.
func (d *delivery) notifySession(work context.Context, code string) error {
	if d.Notify == nil {
		return nil
	}
	out := d.out
	out.ID = d.record.ID
	if err := d.Notify(work, out, code); err != nil && !errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("session could not be told", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return later(storageWait)
	}
	return nil
}

// leaveUnknown leaves it at not knowing whether a part has arrived.
func (d *delivery) leaveUnknown(work context.Context, i int) error {
	d.Log.Warn("nobody can tell whether a message was sent", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Int("part", i))
	// Once it is noted as unknown nobody comes back to it.
	if err := d.sendToFallback(work, unknownOutcome); err != nil {
		return err
	}
	p := d.record.Parts[i]
	p.State = channels.Unsure
	p.Interrupted++
	return d.mark(work, i, p)
}

// sendToFallback publishes a message that is given up to its fallback, saying where
// it could not be delivered and why. It goes no further from there.
func (d *delivery) sendToFallback(work context.Context, code string) error {
	for n, to := range d.out.Fallback {
		if to == d.out.To || to.Chat == "" {
			continue
		}
		out := bus.Outbound{
			ID: bus.FallbackID(d.record.ID, n), To: to, Text: d.misdelivered(code) + "\n\n" + d.out.Text,
			Session: d.out.Session, Turn: d.out.Turn, At: time.Now(), Expires: d.out.Expires,
			Subject: d.out.Subject, Origin: d.out.Origin, File: d.out.File, Files: d.out.Files, Needs: d.out.Needs,
		}
		if out.Subject != "" {
			// The same said to two places may meet here, and is two messages.
			out.Subject += " for " + d.out.To.String()
		}
		err := d.referFiles(out)
		if err == nil {
			err = d.publish(work, out)
		}
		switch {
		case err == nil:
		case errors.Is(err, bus.ErrInvalid):
			// It stays where dead letters are.
			d.Log.Error("message cannot go to its fallback", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		default: // full, or the bus is away: it is not given up before that is over
			d.Log.Warn("fallback could not be used", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
			return later(storageWait)
		}
	}
	return nil
}

func (d *delivery) publish(work context.Context, out bus.Outbound) error {
	if out.To == d.out.To {
		// The mailbox that is worked on here gets room only once this is done.
		return bus.PublishUrgentOutbound(work, d.Bus, out, false)
	}
	return bus.PublishOutbound(work, d.Bus, out)
}

// misdelivered says of a message that it did not reach its address, and why.
func (d *delivery) misdelivered(code string) string {
	to := d.out.To

	if code == unknownOutcome {
		return fmt.Sprintf("This may not have reached %s: sending was cut off, and nobody can tell whether it arrived.", markup.Verbatim(to.String()))
	}
	return fmt.Sprintf("This could not be delivered to %s: %s.", markup.Verbatim(to.String()), d.reasonInWords(code))
}

// reasonInWords says to people why a message was given up.
func (d *delivery) reasonInWords(code string) string {
	switch code {
	case gaveUp:
		return "the platform could not be reached, again and again"
	case panicked:
		return "sending it failed, again and again"
	case empty:
		return "there is nothing to see in it"
	}
	switch channels.RefusalOf(d.Channel, code) {
	case channels.NoSuchChat:
		return "there is no such chat, or the bot is not in it"
	case channels.NotInChat:
		return "the bot is not in that chat"
	case channels.ChatArchived:
		return "that chat is archived"
	case channels.PersonRefuses:
		return "that person does not take messages of the bot"
	case channels.NoRights:
		return "the bot may not write there"
	}
	return "the platform refused it (" + markup.Verbatim(code) + ")"
}

// explainRefusal tells a chat that an answer to it will not come, where the platform has
// taken offence at the answer and not at the chat. It has an id of its own, made
// of the answer's, so it is said once; and no session, so that nothing is said of
// what becomes of it.
func (d *delivery) explainRefusal(work context.Context, code string) error {
	if d.out.Session == "" || d.out.Told != nil || len(d.out.Fallback) > 0 || !d.isAboutContent(code) {
		return nil
	}
	text := "I had an answer here"
	for i := range d.record.Parts {
		if d.settled(i) {
			text = "There is more to this answer"
		}
	}
	text += ", but it cannot be shown: " + d.reasonInWords(code) + ". Please ask again, perhaps for something shorter or plainer."
	out := bus.Outbound{ID: bus.DerivedID(d.record.ID, "#excuse"), To: d.out.To, Text: text, At: time.Now()}
	err := d.publish(work, out)
	switch {
	case err == nil:
	case errors.Is(err, bus.ErrInvalid):
		d.Log.Error("chat cannot be told that its answer was refused", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	default:
		d.Log.Warn("chat could not be told that its answer was refused", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return later(storageWait)
	}
	d.point("send:excused")
	return nil
}

// isAboutContent tells of a code that another message could still be sent to the
// same place.
func (d *delivery) isAboutContent(code string) bool {
	switch code {
	case expired, gaveUp, unknownOutcome, badAddress:
		return false
	}
	return channels.RefusalOf(d.Channel, code) == ""
}
