package worker

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
	"parley/agent/figures"
	"parley/agent/journal"
	"parley/agent/model"
	"parley/agent/route"
	"parley/agent/task"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/tools"
)

// A lifecycle has the steps in the life of a turn that its session takes: the turn begins, waits for people, ends, and
// is published.
type lifecycle struct{ *turn.Session }

// beginTurn writes the beginning of a turn (C1): its messages and, if the turn also ends here, the entries of its
// ending. It returns the messages that the turn answers. There are none if the first message was answered long
// ago: the store remembers causes longer than the journal keeps the entries, and a message that it knows as
// answered ends the batch. If asker isn't nil, what the turn may use is reserved in the same write.
func (s lifecycle) beginTurn(ctx context.Context, b batch, asker *model.Asker, ending ...sessions.Entry) (batch, error) {
	s.Point("c1:before")
	id := b.items[0].in.ID
	why, err := s.whyFilesUnrecorded(ctx, b.items...)
	if err != nil {
		return b, err
	}
	for len(b.items) > 0 {
		entries := s.beginning(id, b, why)
		var c bill.Change
		if asker != nil {
			c = asker.ReservationChange(&b.items[0].in, b.textSize())
		}
		done, err := s.AppendWith(ctx, c, s.durabilityOfBeginning(entries, ending), append(entries, ending...)...)
		if seen, ok := errors.AsType[*sessions.SeenError](err); ok {
			at := max(0, slices.Index(b.causes(), seen.Cause))
			b = batch{items: b.items[:at], ended: true}
			continue
		}
		if err == nil {
			if asker != nil {
				asker.Reservations.Keep(c, done)
			}
			s.Point("c1")
		}
		return b, err
	}
	return b, nil
}

// beginning returns the entries with which a turn begins: where its replies go, and its messages. why says why
// their files must not be recorded; see userEntries.
func (s lifecycle) beginning(id string, b batch, why string) []sessions.Entry {
	started := journal.NewEntry(id, sessions.KindTurnStarted, sessions.TurnStarted{Route: route.Of(b.last().in).Encode(), Agent: s.Agent.Name})
	started.Person = b.items[0].in.From.ID
	entries := []sessions.Entry{started}
	for _, it := range b.items {
		entries = append(entries, userEntries(id, it.in, len(b.items), why)...)
	}
	return entries
}

// whyFilesUnrecorded returns the reason why the log must not record these messages' files now; "" if it may, or if
// there are no files.
func (s lifecycle) whyFilesUnrecorded(ctx context.Context, items ...*item) (why string, err error) {
	came := slices.ContainsFunc(items, func(it *item) bool { return len(it.in.Attachments) > 0 })
	if !came || s.Agent.MayNote == nil {
		return "", nil
	}
	if why, err = s.Agent.MayNote(ctx); err != nil {
		return "", fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	return why, nil
}

// How many characters of texts that programs post are given to the model: at most in total for the posts of a turn, and
// at least of each post.
const (
	maxPostedText = 40_000
	minPostedText = 400
)

// userEntries returns the entries for a message: its text and its files, or a notice that says why the files
// must not be recorded. messages is how many messages the turn has; if programs post many at once, only the
// beginning of each is kept. For the end of a job the entry is a notice.
func userEntries(id string, in bus.Inbound, messages int, why string) []sessions.Entry {
	switch in.Kind {
	case bus.Tasked:
		return task.Entries(id, in)
	case bus.TaskEnded:
		return []sessions.Entry{task.ReportEntry(id, in)}
	case bus.JobEnded:
		e := journal.NewEntry(id, sessions.KindNotice, sessions.Notice{Code: turn.NoticeJob, Text: in.Text})
		e.Cause, e.Person = in.ID, in.From.ID
		return []sessions.Entry{e}
	}
	said := sessions.User{Name: in.From.Name, Text: in.Text, Sent: in.SentAt, Quotes: quotes(&in), Schedule: in.Schedule, Chat: in.ChatName}
	if most := max(minPostedText, maxPostedText/messages); in.IsPosted() && utf8.RuneCountInString(said.Quotes[0].Text) > most {
		said.Quotes[0].Text = string([]rune(said.Quotes[0].Text)[:most]) + "… (the rest is left out, because so many came at once)"
	}
	e := journal.NewEntry(id, sessions.KindUser, said)
	e.Cause, e.Person = in.ID, in.From.ID
	return append([]sessions.Entry{e}, fileEntries(id, in, why)...)
}

// fileEntries returns the entries for a message's files or, if why is not "", notices that say why they must
// not be recorded.
func fileEntries(id string, in bus.Inbound, why string) []sessions.Entry {
	if why != "" {
		return attached.UnfetchedNotices(id, in, why)
	}
	return attached.Entries(id, in)
}

// finish ends a turn from outside (C6): it gives every open call a result, writes the turn's end with a message
// to the person, and publishes that message.
func (s lifecycle) finish(ctx context.Context, t *turn.Turn, end *turn.Ending) error {
	t, err := s.Fold(t.ID) // again, because entries may have been added since
	if err != nil {
		return err
	}
	if err := s.withdraw(ctx, t); err != nil {
		return err
	}
	if s.Config.SubAgents != nil {
		if err := s.Config.SubAgents.EndTurn(ctx, s.Key(), t.ID); err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
	}
	var entries []sessions.Entry
	open := t.OpenCalls()
	failures := make([]*tools.Error, len(open))
	for i, c := range open {
		failed := tools.Errorf(tools.Cancelled, "The turn ended before this call began.")
		switch {
		case t.Parked && c.Ask != nil && c.Ask.Ended == nil:
			failed = tools.Errorf(tools.Cancelled, "The turn ended before anybody had answered.")
		case c.Attempts > 0 && c.Started.IsPure:
			failed = tools.Errorf(tools.Cancelled, "The turn ended while this call ran. The call changes nothing.")
		case c.Attempts > 0:
			failed = tools.Errorf(tools.OutcomeUnknown, "The turn ended while this call ran. It may have had its effect: inspect before repeating it.")
		}
		failures[i] = failed
		entries = append(entries, turn.ResultEntry(t, c, failed.Result().Content, &turn.Outcome{Failed: failed}))
	}
	if len(t.Tasks) > 0 { // a task's report is sent even if the turn was silent
		end.Text = cmp.Or(end.Text, textSubAgentStopped)
	}
	done := sessions.TurnDone{State: end.State, Code: end.Code, Refused: end.Refused, Figures: figures.Of(&s.Agent, t, entries)}
	end.Text = s.Redactor().Text(end.Text)
	if end.Text != "" {
		entries = append(entries, journal.NewEntry(t.ID, sessions.KindNotice, sessions.Notice{Code: end.Code, Text: end.Text}))
		done.Outbound = []sessions.Reply{{ID: bus.ReplyID(t.ID), Text: end.Text}}
	}
	s.Point("c6:before")
	if len(open) > 0 { // audit records come after the results, and before anybody hears of them
		err = s.Journal.Append(ctx, appendTurnEnd(ctx, s.Session, t, done, entries)...)
	} else {
		_, err = s.appendEnd(ctx, t, bill.Change{}, done, entries)
	}
	if err != nil {
		return err
	}
	s.Point("c6")
	for i, c := range open {
		s.ShowResult(t, c, failures[i].Result().Content, &turn.Outcome{Failed: failures[i]})
		s.Audit(t, c, sessions.AuditRecord{Arguments: c.Started.Args, Result: turn.ResultCode(failures[i])})
	}
	return s.conclude(ctx, t.ID)
}

// conclude tells operators, watchers and metrics about a turn whose end was just written, and publishes its
// reply.
func (s lifecycle) conclude(ctx context.Context, id string) error {
	t, err := s.Fold(id)
	if err != nil {
		return err
	}
	s.reportEnd(t)
	if t.HasCalls() && !t.Published { // most turns only answer, and have changed nothing
		s.recordChanges(ctx, id)
	}
	s.Config.Observer.Turn(figures.OfEnded(t))
	s.emitEnd(t)
	return s.publishTurn(ctx, t, false)
}

// emitEnd tells watchers that a turn has ended.
func (s lifecycle) emitEnd(t *turn.Turn) {
	e := bus.Event{Type: bus.TurnComplete, Causes: t.Causes}
	if t.Done.State != sessions.TurnCompleted {
		e.Type, e.Error = bus.TurnError, &bus.Failure{Code: t.Done.State, Message: t.ReplyText()}
	}
	s.Emit(t, e)
}

// publishTurn publishes the replies of a turn on the bus, and then records that they are published (C7). If the
// process dies in between, the next holder publishes the same ids again, with repeated set; the bus drops them,
// or the book knows that they were sent. If the answer is read aloud, the narrator records it. If no bus will ever
// accept the replies, it returns errUnsendable.
func (s lifecycle) publishTurn(ctx context.Context, t *turn.Turn, repeated bool) error {
	if t.Done == nil || len(t.Done.Outbound) == 0 {
		return nil
	}
	if t.Published { // in the same write as the turn's end
		s.Point("c7:published")
		s.Point("c7")
		return nil
	}
	s.Audits.Wait() // what the turn has done is audited before people hear of it
	err := s.publishReplies(ctx, t)
	if errors.Is(err, bus.ErrInvalid) {
		return s.giveUpReplies(ctx, t, err)
	}
	if err != nil {
		return err
	}
	s.Point("c7:published")
	if t.Done.Aloud {
		return nil
	}
	if err := s.recordPublished(ctx, t, repeated); err != nil {
		return err
	}
	s.Point("c7")
	return nil
}

// noteSuspended writes that a turn stops in an orderly way, so that its next resume doesn't count as one after a crash.
// A failure is only logged.
func noteSuspended(ctx context.Context, s *turn.Session, t *turn.Turn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := s.Journal.Append(ctx, journal.NewEntry(t.ID, sessions.KindSuspended, nil)); err != nil {
		s.Log.Warn("noting the suspension failed", slog.Any("error", err))
	}
}

// publishReplies publishes a turn's replies on the bus, which passes them on to the chat. A sub-agent's reply
// goes as a report to the agent that handed out the task.
func (s lifecycle) publishReplies(ctx context.Context, t *turn.Turn) error {
	if len(t.Tasks) > 0 {
		return s.report(ctx, t)
	}
	for _, r := range t.Done.Outbound {
		out, err := t.ReplyMessage(r, t.Done.State)
		if err == nil {
			err = s.publish(ctx, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendEnd writes entries and the end of a turn (C6). If the log can publish, the same write publishes the
// replies and records that they are published (C7). If the bus refuses them, only the end is written, and
// publishTurn decides what happens next.
func (s lifecycle) appendEnd(ctx context.Context, t *turn.Turn, c bill.Change, done sessions.TurnDone, entries []sessions.Entry) (bill.Changed, error) {
	entries = appendTurnEnd(ctx, s.Session, t, done, entries)
	if mail := s.replyMail(ctx, t, done); len(mail) > 0 {
		if t.HasCalls() {
			s.recordChanges(ctx, t.ID)
		}
		s.Audits.Wait() // what the turn has done is audited before people hear of it
		publishing := func(log sessions.Log) sessions.Log { log, _ = journal.Publishing(log, mail...); return log }
		changed, err := s.AppendWith(ctx, c, publishing, append(entries, journal.NewEntry(t.ID, sessions.KindPublished, nil))...)
		if !errors.Is(err, sessions.ErrUnpublished) {
			return changed, err
		}
		s.Log.Info("the end of a turn is written without its reply", slog.String("turn", t.ID), slog.Any("error", err))
	}
	return s.AppendWith(ctx, c, turn.DurableAtOnce, entries...)
}

// replyMail returns the replies of a turn that is about to end, for the write of its end. It returns none if
// publishTurn has to publish them afterwards.
func (s lifecycle) replyMail(ctx context.Context, t *turn.Turn, done sessions.TurnDone) []sessions.Mail {
	if done.Aloud || len(t.Tasks) > 0 || t.Route.At.Channel == bus.SubAgents || !s.Journal.Publishes() || s.Lease.Held(ctx) != nil {
		return nil
	}
	var mail []sessions.Mail
	for _, r := range done.Outbound {
		out, err := t.ReplyMessage(r, done.State)
		if err != nil {
			return nil
		}
		m, err := bus.OutboundMessage(s.fillCommonFields(out))
		if err != nil {
			return nil
		}
		mail = append(mail, sessions.Mail{Topic: string(bus.OutboundTopic(out.To.Channel)), Key: m.Key, ID: m.ID, Body: m.Body})
	}
	return mail
}

// giveUpReplies abandons an answer that no bus will ever accept, so that the session can continue. It writes
// that to the log, and tells the sender if anything can be sent there. It returns errUnsendable, which turns
// the turn's messages into dead letters.
func (s lifecycle) giveUpReplies(ctx context.Context, t *turn.Turn, cause error) error {
	s.Log.Error("an answer can never be sent", slog.String("turn", t.ID), slog.Any("error", cause))
	if err := s.reportUnsendable(ctx, t); err != nil {
		return err
	}
	err := s.Journal.Append(ctx, journal.NewEntry(t.ID, sessions.KindNotice, sessions.Notice{Code: turn.NoticeUnsendable, Text: textNotSent}),
		journal.NewEntry(t.ID, sessions.KindPublished, nil))
	if err != nil {
		return err
	}
	return errUnsendable
}

// reportUnsendable tells the sender that the answer can't be sent. The id of its message is a hash of the
// reply's id, because the reply's id itself may be what is too long.
func (s lifecycle) reportUnsendable(ctx context.Context, t *turn.Turn) error {
	sum := sha256.Sum256([]byte(bus.ReplyID(t.ID)))
	err := s.publish(ctx, bus.Outbound{
		ID: "unsent:" + hex.EncodeToString(sum[:16]), To: t.Route.At, Failed: true,
		Text: textUnsendable,
	})
	if errors.Is(err, bus.ErrInvalid) {
		return nil // nothing can be sent there
	}
	return err
}

// report reports the end of a sub-agent's turn to the sessions that handed out its tasks.
func (s lifecycle) report(ctx context.Context, t *turn.Turn) error {
	untrusted := hasStrangersText(ctx, s.Session, t)
	for _, handed := range t.Tasks {
		if err := s.Lease.Held(ctx); err != nil {
			return fmt.Errorf("before reporting: %w", err)
		}
		r := task.Report{ID: handed.ID, State: t.Done.State, Text: t.ReplyText(), Untrusted: untrusted}
		if err := s.Config.SubAgents.Report(ctx, r); err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
		s.Point("task:reported")
	}
	return nil
}

// durabilityOfBeginning returns how durable the beginning of a turn has to be, as AppendWith needs it. Normally nothing
// waits for the disk: after a crash the messages come again, and the model is asked again as it would be anyway. It is
// durable at once if the turn also ends here, which is final; if it has files, because their names contain the numbers
// of their entries; and if an earlier attempt failed, so that a turn that kills its process is known to have begun.
func (s lifecycle) durabilityOfBeginning(entries, ending []sessions.Entry) func(sessions.Log) sessions.Log {
	isFile := func(e sessions.Entry) bool { return e.Kind == sessions.KindAttached }
	if len(ending) > 0 || slices.ContainsFunc(entries, isFile) || s.Lease.Claim().Attempts > 1 {
		return turn.DurableAtOnce
	}
	return journal.Soon
}

// recordPublished records that the replies of a turn are published (C7): with the next write to the log, or a
// moment later. If a crash loses the record, the next holder publishes the replies once more, unless it is sure
// that they were published, and then records it at once (repeated). That is also done after a sub-agent's report,
// and if the log can't be kept open.
func (s lifecycle) recordPublished(ctx context.Context, t *turn.Turn, repeated bool) error {
	e := journal.NewEntry(t.ID, sessions.KindPublished, nil)
	if len(t.Tasks) == 0 && !repeated {
		if owed, err := s.Journal.Owe(e); owed || err != nil {
			return err
		}
	}
	return s.Journal.Append(ctx, e)
}
