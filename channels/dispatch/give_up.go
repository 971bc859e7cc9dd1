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
	// leastAttempts is how many times a message must have been tried before it is given up.
	leastAttempts = 10
	// leastBeforeFallback is how many sends in a row to an address must have failed before
	// its messages go to their fallbacks.
	leastBeforeFallback = 5
)

// shouldGiveUp reports whether a message that cannot be sent has been tried long enough. A
// message with a fallback is given up once sends to its address have failed for
// FallbackAfter. All sends to the address count, not only the message's own, so that
// messages behind it need not wait as long again.
func (d *delivery) shouldGiveUp() bool {
	if len(d.out.Fallback) > 0 {
		since, tries := d.streaks.lookup(d.out.To)
		after := d.policy.FallbackAfter
		if tries >= leastBeforeFallback && time.Since(since) > after && time.Since(d.out.At) > after {
			return true
		}
	}
	return d.triedLongEnough()
}

// triedLongEnough reports whether the message itself has been tried long enough. If it does
// not say when it was written, its age is estimated from the number of its attempts.
func (d *delivery) triedLongEnough() bool {
	if d.attempts < leastAttempts {
		return false
	}
	if d.out.At.IsZero() {
		return time.Duration(d.attempts)*longestBackoff/2 > d.policy.GiveUp
	}
	return time.Since(d.out.At) > d.policy.GiveUp
}

// noteFailure counts that the platform did not accept something, unless a rate limit was
// the reason.
func (d *delivery) noteFailure(fault *channels.SendError) {
	if !fault.Limited {
		d.streaks.add(d.out.To)
	}
}

// giveUp gives a message up: its unsent parts are marked as failed, its session is told, it
// goes to its fallback, and it becomes a dead letter. A message that has expired or is
// empty is neither sent elsewhere nor kept as a dead letter: nobody wants it, so there is
// nothing to look into or to replay.
func (d *delivery) giveUp(work context.Context, code string) error {
	if err := d.checkLease(work); err != nil {
		return err
	}
	if code == "" {
		code = string(channels.Rejected)
	}
	for i, p := range d.record.Parts {
		if p.State == channels.Failed || d.isSettled(i) {
			continue
		}
		p.State, p.Code = channels.Failed, code
		if err := d.mark(work, i, p); err != nil {
			return err
		}
	}
	d.crashPoint("send:failed")
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
	d.crashPoint("send:elsewhere")
	return &deliveryError{bury: code}
}

// withdrawUnreplaced ends the draft that the message should have replaced and did not:
// nothing else would replace it. Repeating the edit does no harm.
func (d *delivery) withdrawUnreplaced(work context.Context) error {
	first := d.record.Parts[0]
	if first.Edits == "" || first.PlatformID != "" || d.out.Turn == "" {
		return nil
	}
	draft, err := d.Book.Lookup(work, d.out.Turn+draftSuffix)
	if errors.Is(err, channels.ErrNoSend) {
		return nil // it should have replaced an earlier message about its subject
	}
	if err != nil {
		return d.errFromBook(err)
	}
	if draft.Parts[0].PlatformID != first.Edits {
		return nil
	}
	return d.withdrawDraft(work, first.Edits)
}

// notifySession tells the message's session, by Notify, that the message was given up.
func (d *delivery) notifySession(work context.Context, code string) error {
	if d.Notify == nil {
		return nil
	}
	out := d.out
	out.ID = d.record.ID
	if err := d.Notify(work, out, code); err != nil && !errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("session could not be told", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	return nil
}

// leaveUnknown records that nobody will find out whether a part has arrived.
func (d *delivery) leaveUnknown(work context.Context, i int) error {
	d.Log.Warn("nobody can tell whether a message was sent", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Int("part", i))
	// Once it is recorded as unknown nobody handles it again, so the fallback comes first.
	if err := d.sendToFallback(work, unknownOutcome); err != nil {
		return err
	}
	p := d.record.Parts[i]
	p.State = channels.Unsure
	p.Interrupted++
	return d.mark(work, i, p)
}

// sendToFallback publishes a message that is given up to its fallback addresses, with a
// sentence that says where it could not be delivered and why. The copies have no fallback
// of their own.
func (d *delivery) sendToFallback(work context.Context, code string) error {
	for n, to := range d.out.Fallback {
		if to == d.out.To || to.Chat == "" {
			continue
		}
		out := bus.Outbound{
			ID: bus.FallbackID(d.record.ID, n), To: to, Text: d.undeliveredText(code) + "\n\n" + d.out.Text,
			Session: d.out.Session, Turn: d.out.Turn, At: time.Now(), Expires: d.out.Expires,
			Subject: d.out.Subject, Origin: d.out.Origin, File: d.out.File, Files: d.out.Files, Needs: d.out.Needs,
		}
		if out.Subject != "" {
			// Copies of messages to two places may meet at one fallback; they must not
			// replace each other.
			out.Subject += " for " + d.out.To.String()
		}
		err := d.referFiles(out)
		if err == nil {
			err = d.publish(work, out)
		}
		switch {
		case err == nil:
		case errors.Is(err, bus.ErrInvalid):
			// It remains as a dead letter only.
			d.Log.Error("message cannot go to its fallback", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		default: // full, or the bus is away: keep the message until that is over
			d.Log.Warn("fallback could not be used", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
			return giveBackFor(storageWait)
		}
	}
	return nil
}

// publish puts a message on the bus.
func (d *delivery) publish(work context.Context, out bus.Outbound) error {
	if out.To == d.out.To {
		// This address's mailbox gets room only when the present work on it is settled.
		return bus.PublishUrgentOutbound(work, d.Bus, out, false)
	}
	return bus.PublishOutbound(work, d.Bus, out)
}

// undeliveredText returns a sentence for people: the message did not reach its address, and
// why.
func (d *delivery) undeliveredText(code string) string {
	to := d.out.To

	if code == unknownOutcome {
		return fmt.Sprintf("This may not have reached %s: sending was cut off, and nobody can tell whether it arrived.", markup.Verbatim(to.String()))
	}
	return fmt.Sprintf("This could not be delivered to %s: %s.", markup.Verbatim(to.String()), d.reasonInWords(code))
}

// reasonInWords returns, for people, why a message was given up.
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

// explainRefusal tells a chat that an answer will not come, if the platform has refused the
// answer's content and not the chat. The explanation's id is made of the answer's, so it is
// posted once; it has no session, so that its own fate is reported to nobody.
func (d *delivery) explainRefusal(work context.Context, code string) error {
	if d.out.Session == "" || d.out.Told != nil || len(d.out.Fallback) > 0 || !d.isAboutContent(code) {
		return nil
	}
	text := "I had an answer here"
	for i := range d.record.Parts {
		if d.isSettled(i) {
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
		return giveBackFor(storageWait)
	}
	d.crashPoint("send:excused")
	return nil
}

// isAboutContent reports whether a code refuses only this message's content, so that
// another message could still be sent to the same place.
func (d *delivery) isAboutContent(code string) bool {
	switch code {
	case expired, gaveUp, unknownOutcome, badAddress:
		return false
	}
	return channels.RefusalOf(d.Channel, code) == ""
}
