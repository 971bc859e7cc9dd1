package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/enclosure"
	"parley/channels/markup"
)

// notifyReplySession tells the session of a chat what was posted there on somebody's behalf, so
// that a reply reaches an agent that knows what it is about. It publishes this notice once
// the message is known to have arrived, and before its mail is settled: after a crash in
// between, the notice is published again under the same id.
func (d *delivery) notifyReplySession(work context.Context) error {
	if d.out.Told == nil || d.SessionAt == nil || !d.hasArrived() {
		return nil
	}
	at, err := d.replyAddress(work)
	if fault := channels.FaultOf(err); err != nil && fault.Fault != channels.Rejected && !d.triedLongEnough() {
		return d.retryLater(work, fault)
	}
	if err != nil {
		return nil
	}
	session, err := d.SessionAt(work, at)
	if err != nil {
		d.Log.Warn("the session that is to know what was told could not be looked up", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	if session == "" {
		return nil
	}
	err = bus.PublishNotice(work, d.Bus, session, toldNotice(d.record, d.out.Told, at))
	switch {
	case errors.Is(err, bus.ErrInvalid):
		d.Log.Error("what was told cannot be noted in its session", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	case err != nil:
		d.Log.Warn("what was told could not be noted in its session", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	d.crashPoint("send:told")
	return nil
}

// replyAddress returns the address at which a reply to the message would appear.
func (d *delivery) replyAddress(work context.Context) (bus.Address, error) {
	r, ok := channels.AsReplier(d.Channel)
	if !ok {
		return d.to, nil
	}
	ctx, cancel := context.WithTimeout(work, d.policy.Timeout)
	defer cancel()
	at, err := r.ReplyAddress(ctx, d.to, d.firstSent())
	if err != nil {
		return bus.Address{}, fmt.Errorf("look for where a reply would be said: %w", err)
	}
	return at, nil
}

// firstSent returns the platform's id of the first part that was sent; "" if none was.
func (d *delivery) firstSent() string {
	for _, p := range d.record.Parts {
		if p.State == channels.Sent {
			return p.PlatformID
		}
	}
	return ""
}

// toldNotice returns the notice for the session. Its text is for releases that do not show
// quotes.
func toldNotice(send channels.Send, told *bus.Telling, at bus.Address) bus.Inbound {
	return bus.Inbound{
		ID: bus.DerivedID(send.ID, "#told"), Kind: bus.Notice, At: at, SentAt: time.Now(),
		Text: fmt.Sprintf("You have told this chat something on behalf of %s.", told.For.ID),
		Quotes: []bus.Quote{{
			Kind: bus.Told, From: told.For, Chat: told.At.String(), At: send.At, Text: told.Words,
		}},
	}
}

// TellSession returns a function for Dispatcher.Notify: it tells the session that wrote a
// message that the message was not delivered. The id of the notice is made of the
// message's, so the notice arrives once.
func TellSession(b bus.Bus) func(ctx context.Context, out bus.Outbound, reason string) error {
	return func(ctx context.Context, out bus.Outbound, reason string) error {
		if out.Session == "" {
			return nil
		}
		return bus.PublishNotice(ctx, b, out.Session, bus.Inbound{
			ID:     bus.DerivedID(out.ID, "#undelivered"),
			Kind:   bus.Notice,
			At:     out.To,
			Text:   fmt.Sprintf("A message to %s was not delivered: %s.", out.To, reason),
			SentAt: time.Now(),
		})
	}
}

// A file that a message goes without is recorded as a failed part, whose code is leftOutPrefix
// followed by fileMissing or by the platform's own code.
const (
	leftOutPrefix = "file:"
	fileMissing   = "file_missing"
)

// isLeftOut reports whether a part is a file that the message goes without.
func isLeftOut(p channels.SentPart) bool {
	return p.State == channels.Failed && p.File && strings.HasPrefix(p.Code, leftOutPrefix)
}

// mayLeaveOut reports whether a message may go on without the file of a part: the message
// only names the file, and the file is missing or the platform refuses it but not the
// place.
func (d *delivery) mayLeaveOut(i int, code string) bool {
	e, ok := d.enclosureOf(i)
	return ok && (e.IsReference() || e.IsText()) && d.record.Parts[i].Text == "" && (code == fileMissing || d.isAboutContent(code))
}

// leaveOutFile lets a message go on without a file. The sending session is told, and in its own
// conversation the people are told too, by messages whose ids are made of the message's.
func (d *delivery) leaveOutFile(work context.Context, i int, code string) error {
	if err := d.checkLease(work); err != nil {
		return err
	}
	e, _ := d.enclosureOf(i)
	if e.IsText() {
		return d.publishWhole(work, i, code)
	}
	why := "it is not there any more"
	if code != fileMissing {
		why = d.reasonInWords(code)
	} else {
		d.Log.Error("a file that a message names is not there; who sends needs the directory in which workers work (workspace.root)",
			slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Int("part", i))
	}
	suffix := fmt.Sprintf("#file/%d", i)
	if d.out.Session != "" {
		err := bus.PublishNotice(work, d.Bus, d.out.Session, bus.Inbound{
			ID: bus.DerivedID(d.record.ID, suffix), Kind: bus.Notice, At: d.out.To, SentAt: time.Now(),
			Text: fmt.Sprintf("The file %s of a message to %s was not delivered: %s.", e.Name, d.out.To, why),
		})
		if err != nil && !errors.Is(err, bus.ErrInvalid) {
			d.Log.Warn("session could not be told of a file", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
			return giveBackFor(storageWait)
		}
	}
	out := bus.Outbound{
		ID: bus.DerivedID(d.record.ID, suffix), To: d.out.To, At: time.Now(),
		Text: fmt.Sprintf("(The file %s could not be sent: %s.)", markup.Verbatim(e.Name), why),
	}
	if err := d.publish(work, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("chat could not be told of a file", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	d.crashPoint("send:leftout")
	p := d.record.Parts[i]
	p.State, p.Code = channels.Failed, leftOutPrefix+code
	return d.mark(work, i, p)
}

// publishWhole publishes a long text as ordinary messages, after the platform has refused it as
// a file.
func (d *delivery) publishWhole(work context.Context, i int, code string) error {
	out := bus.Outbound{ID: bus.DerivedID(d.record.ID, "#whole"), To: d.out.To, Text: d.out.Text, Session: d.out.Session, At: time.Now(), Whole: true}
	if err := d.publish(work, out); err != nil && !errors.Is(err, bus.ErrInvalid) {
		d.Log.Warn("a long text could not be said", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
		return giveBackFor(storageWait)
	}
	p := d.record.Parts[i]
	p.State, p.Code = channels.Failed, leftOutPrefix+code
	return d.mark(work, i, p)
}

// referFiles records that another message (out) names the files of this one, so that they are kept
// for it. If they no longer exist, that message will say so.
func (d *delivery) referFiles(out bus.Outbound) error {
	if len(out.Files) == 0 || d.Files == nil {
		return nil
	}
	if err := d.Files.Refer(out.Session, out.ID, out.Files); err != nil && !errors.Is(err, enclosure.ErrMissing) {
		return fmt.Errorf("refer to files: %w", err)
	}
	return nil
}

// releaseFiles records that a finished message no longer needs the files that it names. If that
// fails, a later sweep removes them.
func (d *delivery) releaseFiles() {
	if len(d.out.Files) == 0 || d.Files == nil {
		return
	}
	if err := d.Files.Release(d.record.ID, d.out.Files); err != nil {
		d.Log.Warn("files of a message that is through could not be removed", slog.String("channel", d.Name), slog.String("id", d.record.ID), slog.Any("error", err))
	}
	d.crashPoint("send:released")
}
