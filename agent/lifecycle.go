package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"parley/agent/attached"
	"parley/agent/delegation"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
)

// beginTurn writes the beginning of a turn (C1): its messages, and more entries, which
// may end it at once. It returns the messages that the turn answers. These are none if
// the first message was answered long ago: the store remembers causes longer than the
// journal keeps the entries, and a message that it knows as answered ends the batch. What
// the turn may use is reserved in the same write, if there is an asker.
func (s *session) beginTurn(ctx context.Context, b batch, a *asker, more ...sessions.Entry) (batch, error) {
	s.point("c1:before")
	id := b.items[0].in.ID
	why, err := s.whyNotNoted(ctx, b.items...)
	if err != nil {
		return b, err
	}
	for len(b.items) > 0 {
		entries := s.beginning(id, b, why)
		var c bill.Change
		if a != nil {
			c = a.reservationAhead(b)
		}
		done, err := s.appendWith(ctx, c, s.howToBegin(entries, more), append(entries, more...)...)
		if seen, ok := errors.AsType[*sessions.SeenError](err); ok {
			at := max(0, slices.Index(b.causes(), seen.Cause))
			b = batch{items: b.items[:at], ended: true}
			continue
		}
		if err == nil {
			if a != nil {
				a.purse.Keep(c, done)
			}
			s.point("c1")
		}
		return b, err
	}
	return b, nil
}

// beginning returns the entries with which a turn begins: where its replies go, and its messages.
// why says why their files must not be recorded; see userEntries.
func (s *session) beginning(id string, b batch, why string) []sessions.Entry {
	started := journal.NewEntry(id, sessions.KindTurnStarted, sessions.TurnStarted{Route: route.Of(b.last().in).Encode(), Agent: s.agent.Name})
	started.Person = b.items[0].in.From.ID
	entries := []sessions.Entry{started}
	for _, it := range b.items {
		entries = append(entries, userEntries(id, it.in, len(b.items), why)...)
	}
	return entries
}

// whyNotNoted returns why the log must not record the files of these messages now; "" if
// it may, or if there are none.
func (s *session) whyNotNoted(ctx context.Context, items ...*item) (why string, err error) {
	came := slices.ContainsFunc(items, func(it *item) bool { return len(it.in.Attachments) > 0 })
	if !came || s.agent.MayNote == nil {
		return "", nil
	}
	if why, err = s.agent.MayNote(ctx); err != nil {
		return "", fmt.Errorf("%w: %w", errBusAway, err)
	}
	return why, nil
}

// How much of the texts that programs post the model gets, in characters: from all posts
// of a turn, and at least from each.
const (
	mostPosted  = 40_000
	leastPosted = 400
)

// userEntries returns the entries of a message: its text and its files, or a notice that says why
// files must not be recorded, if they must not. messages is how many messages the turn has; if
// programs post many at once, only the beginning of each is kept. For the end of a job the entry is
// a notice.
func userEntries(turn string, in bus.Inbound, messages int, why string) []sessions.Entry {
	switch in.Kind {
	case bus.Tasked:
		return delegation.Entries(turn, in)
	case bus.TaskEnded:
		return []sessions.Entry{delegation.ReportEntry(turn, in)}
	case bus.JobEnded:
		e := journal.NewEntry(turn, sessions.KindNotice, sessions.Notice{Code: noticeJob, Text: in.Text})
		e.Cause, e.Person = in.ID, in.From.ID
		return []sessions.Entry{e}
	}
	said := sessions.User{Name: in.From.Name, Text: in.Text, Sent: in.SentAt, Quotes: quotes(&in), Schedule: in.Schedule, Chat: in.ChatName}
	if most := max(leastPosted, mostPosted/messages); in.IsPosted() && utf8.RuneCountInString(said.Quotes[0].Text) > most {
		said.Quotes[0].Text = string([]rune(said.Quotes[0].Text)[:most]) + "… (the rest is left out: many came at once)"
	}
	e := journal.NewEntry(turn, sessions.KindUser, said)
	e.Cause, e.Person = in.ID, in.From.ID
	return append([]sessions.Entry{e}, fileEntries(turn, in, why)...)
}

// fileEntries returns the entries of a message's files, or, if why is not "", notices that say why
// these must not be recorded.
func fileEntries(turn string, in bus.Inbound, why string) []sessions.Entry {
	if why != "" {
		return attached.UnfetchedNotices(turn, in, why)
	}
	return attached.Entries(turn, in)
}

// finish ends a turn from outside (C6): every open call gets a result, the turn's end is
// written with a message to the person, and that is published.
func (s *session) finish(ctx context.Context, t *turn, end *ending) error {
	t, err := s.fold(t.id) // with what has happened since
	if err != nil {
		return err
	}
	if err := s.withdraw(ctx, t); err != nil {
		return err
	}
	if s.cfg.Tasks != nil {
		if err := s.cfg.Tasks.EndTurn(ctx, s.key(), t.id); err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
	}
	var entries []sessions.Entry
	open := t.openCalls()
	failures := make([]*tools.Error, len(open))
	for i, c := range open {
		failed := tools.Errorf(tools.Cancelled, "The turn ended before this call began.")
		switch {
		case t.parked && c.ask != nil && c.ask.ended == nil:
			failed = tools.Errorf(tools.Cancelled, "The turn ended before anybody had answered.")
		case c.attempts > 0:
			failed = tools.Errorf(tools.OutcomeUnknown, "The turn ended while this call ran. It may have had its effect: inspect before repeating it.")
		}
		failures[i] = failed
		entries = append(entries, resultEntry(t, c, failed.Result().Content, &outcome{failed: failed}))
	}
	if len(t.tasks) > 0 { // there is always a report
		end.text = cmp.Or(end.text, "The sub-agent was stopped before it had ended.")
	}
	done := sessions.TurnDone{State: end.state}
	end.text = s.redactor().Text(end.text)
	if end.text != "" {
		entries = append(entries, journal.NewEntry(t.id, sessions.KindNotice, sessions.Notice{Code: end.code, Text: end.text}))
		done.Outbound = []sessions.Reply{{ID: bus.ReplyID(t.id), Text: end.text}}
	}
	s.point("c6:before")
	if len(open) > 0 { // their results are audited after they are written, and before anybody hears of them
		err = s.journal.Append(ctx, append(entries, journal.NewEntry(t.id, sessions.KindTurnDone, done))...)
	} else {
		_, err = s.appendEnd(ctx, t, bill.Change{}, done, entries)
	}
	if err != nil {
		return err
	}
	s.point("c6")
	for i, c := range open {
		s.audit(t, c, sessions.AuditRecord{Arguments: c.started.Args, Result: resultCode(failures[i])})
	}
	if end.code != "" {
		s.slog.Warn("turn ended early", slog.String("turn", t.id), slog.String("state", end.state), slog.String("code", end.code))
	}
	return s.conclude(ctx, t.id)
}

// conclude reports to watchers and metrics a turn whose end has just been written, and
// publishes its reply.
func (s *session) conclude(ctx context.Context, id string) error {
	t, err := s.fold(id)
	if err != nil {
		return err
	}
	if t.hasCalls() && !t.published { // most turns only answer, and have changed nothing
		s.recordChanges(ctx, id)
	}
	s.cfg.Observer.Turn(t.done.State, time.Since(t.started)-t.waitingTime())
	s.emitEnd(t)
	return s.publishTurn(ctx, t, false)
}

// emitEnd reports the end of a turn to watchers.
func (s *session) emitEnd(t *turn) {
	e := bus.Event{Type: bus.TurnComplete, Causes: t.causes}
	if t.done.State != sessions.TurnCompleted {
		e.Type, e.Error = bus.TurnError, &bus.Failure{Code: t.done.State, Message: t.replyText()}
	}
	s.emit(t, e)
}

// publishTurn publishes the replies of a turn on the bus, and then records that they are published
// (C7). If the process dies before that, the next holder publishes the same ids again, with
// repeated set; the bus drops them, or the book knows that they were sent.
func (s *session) publishTurn(ctx context.Context, t *turn, repeated bool) error {
	if t.done == nil || len(t.done.Outbound) == 0 {
		return nil
	}
	if t.published { // in the write of the turn's end
		s.point("c7:published")
		s.point("c7")
		return nil
	}
	s.trail.Wait() // what the turn has done is audited before people hear of it
	err := s.publishReplies(ctx, t)
	if errors.Is(err, bus.ErrInvalid) {
		return s.giveUpReplies(ctx, t, err)
	}
	if err != nil {
		return err
	}
	s.point("c7:published")
	if err := s.recordPublished(ctx, t, repeated); err != nil {
		return err
	}
	s.point("c7")
	return nil
}

// publishReplies publishes a turn's replies on the bus, from where they go to the chat; a
// sub-agent's reply goes as a report to the agent that has handed out the task.
func (s *session) publishReplies(ctx context.Context, t *turn) error {
	if len(t.tasks) > 0 {
		return s.report(ctx, t)
	}
	for _, r := range t.done.Outbound {
		out, err := t.replyMessage(r, t.done.State)
		if err == nil {
			err = s.publish(ctx, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendEnd writes entries and the end of a turn (C6). Where the log can publish, the replies are
// published and recorded as published (C7) in the same write. If the bus refuses them, only the end
// is written, and publishTurn decides what follows.
func (s *session) appendEnd(ctx context.Context, t *turn, c bill.Change, done sessions.TurnDone, entries []sessions.Entry) (bill.Done, error) {
	entries = append(entries, journal.NewEntry(t.id, sessions.KindTurnDone, done))
	if mail := s.replyMail(ctx, t, done); len(mail) > 0 {
		if t.hasCalls() {
			s.recordChanges(ctx, t.id)
		}
		s.trail.Wait() // what the turn has done is audited before people hear of it
		publishing := func(log sessions.Log) sessions.Log { log, _ = journal.Publishing(log, mail...); return log }
		changed, err := s.appendWith(ctx, c, publishing, append(entries, journal.NewEntry(t.id, sessions.KindPublished, nil))...)
		if !errors.Is(err, sessions.ErrUnpublished) {
			return changed, err
		}
		s.slog.Info("the end of a turn is written without its reply", slog.String("turn", t.id), slog.Any("error", err))
	}
	return s.appendWith(ctx, c, atOnce, entries...)
}

// replyMail returns the replies of a turn that is about to end, for the write of its end; none if
// publishTurn has to publish them afterwards.
func (s *session) replyMail(ctx context.Context, t *turn, done sessions.TurnDone) []sessions.Mail {
	if len(t.tasks) > 0 || t.route.At.Channel == bus.SubAgents || !s.journal.Publishes() || s.lease.Held(ctx) != nil {
		return nil
	}
	var mail []sessions.Mail
	for _, r := range done.Outbound {
		out, err := t.replyMessage(r, done.State)
		if err != nil {
			return nil
		}
		m, err := bus.OutboundMessage(s.complete(out))
		if err != nil {
			return nil
		}
		mail = append(mail, sessions.Mail{Topic: string(bus.OutboundTopic(out.To.Channel)), Key: m.Key, ID: m.ID, Body: m.Body})
	}
	return mail
}

// giveUpReplies gives up an answer that no bus will ever accept, to let the session go
// on. It writes that to the log, and tells the sender if anything can be sent there. It
// returns errUnsendable, which makes dead letters of the turn's messages.
func (s *session) giveUpReplies(ctx context.Context, t *turn, cause error) error {
	s.slog.Error("an answer can never be sent", slog.String("turn", t.id), slog.Any("error", cause))
	if err := s.reportUnsendable(ctx, t); err != nil {
		return err
	}
	err := s.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindNotice, sessions.Notice{Code: noticeUnsendable, Text: "Your answer could not be sent."}),
		journal.NewEntry(t.id, sessions.KindPublished, nil))
	if err != nil {
		return err
	}
	return errUnsendable
}

// reportUnsendable tells the sender that the answer cannot be sent. Its message has a
// hash of the reply's id for an id, because the reply's id itself may be what is too
// long.
func (s *session) reportUnsendable(ctx context.Context, t *turn) error {
	sum := sha256.Sum256([]byte(bus.ReplyID(t.id)))
	err := s.publish(ctx, bus.Outbound{
		ID: "unsent:" + hex.EncodeToString(sum[:16]), To: t.route.At, Failed: true,
		Text: "I have an answer for you that cannot be sent: it, or the id of your message, is too long. Ask for less at once, or ask anew.",
	})
	if errors.Is(err, bus.ErrInvalid) {
		return nil // nothing can be sent there
	}
	return err
}

// report reports the end of a sub-agent's turn to those who have handed out its tasks.
func (s *session) report(ctx context.Context, t *turn) error {
	untrusted := transcript.Untrusted(s.journal.Records(), t.id, s.journal.Newest()+1) || s.agent.Untrusted != nil && s.agent.Untrusted(ctx, s.key())
	for _, task := range t.tasks {
		if err := s.lease.Held(ctx); err != nil {
			return fmt.Errorf("before reporting: %w", err)
		}
		r := delegation.Report{ID: task.ID, State: t.done.State, Text: t.replyText(), Untrusted: untrusted}
		if err := s.cfg.Tasks.Report(ctx, r); err != nil {
			return fmt.Errorf("%w: %w", errBusAway, err)
		}
		s.point("task:reported")
	}
	return nil
}

// fetchAttached fetches the files that came with the turn's messages, and returns the
// turn after that. A file that was fetched but is not in the log is fetched again, to
// the same place.
func (r *turnRun) fetchAttached(ctx context.Context, id string) (*turn, error) {
	t, err := r.fold(id)
	if err != nil || !t.files.AreOpen() {
		return t, err
	}
	r.recordChanges(ctx, id) // the files that people sent are none of the turn's changes
	if err := t.files.EachOpen(func(f attached.File) error { return r.fetch(ctx, t, f) }); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return r.fold(id)
}

// fetch fetches one file and writes the result to the log.
func (r *turnRun) fetch(ctx context.Context, t *turn, f attached.File) error {
	r.point("fetch:before")
	got := sessions.Fetched{Problem: "files cannot be fetched here"}
	if r.agent.Fetch != nil {
		var err error
		if got, err = r.agent.Fetch(ctx, FileToFetch{Session: r.key(), Turn: t.id, At: t.route.At, File: f, Held: r.lease.Held}); err != nil {
			return fmt.Errorf("fetch what came with a message: %w", err)
		}
	}
	got.Attached, got.Message = f.N, f.Message
	r.point("fetch")
	e := journal.NewEntry(t.id, sessions.KindFetched, got)
	e.Person = f.Person
	if err := r.journal.Append(ctx, e); err != nil {
		return err
	}
	r.point("fetched")
	r.slog.Info("a file came with a message", slog.String("turn", t.id), slog.Int64("entry", f.N),
		slog.String("kind", f.Kind), slog.Int64("bytes", got.Size), slog.Bool("fetched", got.Path != ""))
	return nil
}
