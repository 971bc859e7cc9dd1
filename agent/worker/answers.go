package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/agent/asks"
	"parley/agent/calls"
	"parley/agent/journal"
	"parley/agent/route"
	"parley/agent/spans"
	"parley/agent/task"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// handleDecision records that an ask has ended. The turn continues if it waits for no other ask.
func (r *sessionRun) handleDecision(ctx context.Context, in *bus.Inbound) error {
	t, a, err := r.findAsk(in.ID)
	if err != nil {
		return err
	}
	if a != nil && a.Ended == nil {
		end := bus.Ask{ID: a.ID, State: in.Decision.State, Ended: in.SentAt, Answer: bus.Answer{Text: in.Decision.Text, Reason: in.Decision.Reason, By: in.From}}
		if t, err = r.endAsk(ctx, t, a, end, in.ID); err != nil {
			return err
		}
	}
	if r.Config.Asks != nil { // even if the turn is over or unknown
		if err := r.Config.Asks.NoteTold(ctx, in.ID); err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
	}
	return r.continueTurn(ctx, t)
}

// handleNodeBack continues a turn that waits for a node, because the node is back, was removed, or has been away for
// too long. The call runs again and finds out which of these applies.
func (r *sessionRun) handleNodeBack(ctx context.Context, in *bus.Inbound) error {
	t, a, err := r.findAsk(in.ID)
	if err != nil {
		return err
	}
	if a != nil && a.Ended == nil {
		if t, err = r.recordEnd(ctx, t, a, sessions.AskEnded{Ask: a.ID, State: in.Decision.State}, in.ID, "", nil); err != nil {
			return err
		}
	}
	if err := closeNodeWait(ctx, r.Session, in.ID); err != nil { // even if the turn is over or unknown
		return err
	}
	return r.continueTurn(ctx, t)
}

// handleReport gives the report of a task to the turn that waits for it. If no turn does any longer, it drops
// the report.
func (r *sessionRun) handleReport(ctx context.Context, in *bus.Inbound) error {
	t, a, err := r.findAsk(in.ID)
	if err != nil {
		return err
	}
	if a != nil && a.Ended == nil {
		out := &turn.Outcome{}
		out.Result, out.Failed = task.Result(*in)
		ended := sessions.AskEnded{Ask: a.ID, State: bus.AskAnswered, Answer: in.Task.State}
		if t, err = r.recordEnd(ctx, t, a, ended, in.ID, "", out); err != nil {
			return err
		}
	}
	if r.Config.SubAgents != nil { // even if the turn is over or unknown
		if err := r.Config.SubAgents.NoteTold(ctx, in.Task.ID); err != nil {
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
	}
	return r.continueTurn(ctx, t)
}

// continueTurn continues a turn that was waiting for people. It does nothing if t is nil, or if the turn has
// ended or is still waiting for another answer.
func (r *sessionRun) continueTurn(ctx context.Context, t *turn.Turn) error {
	if t == nil || t.Parked || t.Done != nil {
		return nil
	}
	release, err := r.turns.countResumed(ctx, t)
	if err != nil {
		return err
	}
	defer release()
	r.Emit(t, bus.Event{Type: bus.TurnStart, Causes: t.Causes})
	return r.runTurn(ctx, t, r.shared.askers.New(r.Session))
}

// endAsk tells people how an ask has ended, and writes that to the log. The same write contains the call's
// result if the ask has decided it, an entry that the turn continues if it waits for nothing else, and the
// entries in more. cause is the id of the message that brought the answer. endAsk returns the turn as it is
// afterwards.
func (r *sessionRun) endAsk(ctx context.Context, t *turn.Turn, a *turn.Ask, end bus.Ask, cause string, more ...sessions.Entry) (*turn.Turn, error) {
	if err := r.showEnd(ctx, t, a, end); err != nil {
		return nil, err
	}
	ended := sessions.AskEnded{Ask: a.ID, State: end.State, Answer: end.Answer.Text, Reason: end.Answer.Reason, Name: end.Answer.By.Name}
	if a.Kind == bus.AskQuestion {
		ended.Question = asks.QuestionText(a.Ask)
	}
	var out *turn.Outcome
	if result, failed, runs := asks.Result(a.Ask, end); !runs {
		out = &turn.Outcome{Result: result, Failed: failed}
	}
	return r.recordEnd(ctx, t, a, ended, cause, end.Answer.By.ID, out, more...)
}

// recordEnd writes to the log that an ask has ended. out is what that means for the ask's call: its outcome, or
// nil if the call was approved and still has to run. by is the id of the person who answered, "" for nobody;
// cause is the id of the message that brought the answer. It returns the turn as it is afterwards.
func (r *sessionRun) recordEnd(ctx context.Context, t *turn.Turn, a *turn.Ask, ended sessions.AskEnded, cause, by string, out *turn.Outcome, more ...sessions.Entry) (*turn.Turn, error) {
	e := journal.NewEntry(t.ID, sessions.KindAskEnded, ended)
	e.Cause, e.Person, e.Call = cause, by, a.Call
	entries := append([]sessions.Entry{e}, more...)
	var content json.RawMessage
	if out != nil {
		whole, isCut := r.Redactor().JSON(out.Content()), false
		if content, isCut = tools.Truncate(whole, calls.ShareOf(r.Session, t).Take(len(whole)), ""); isCut {
			out.NoteWhole(whole)
		}
		entries = append(entries, turn.ResultEntry(t, a.ForCall, content, out))
	}
	if len(t.OpenAsks()) == 1 {
		entries = append(entries, journal.NewEntry(t.ID, sessions.KindTurnUnparked, nil))
	}
	r.Point("unpark:before")
	if err := r.Journal.Append(ctx, entries...); err != nil {
		if _, seen := errors.AsType[*sessions.SeenError](err); seen {
			return t, nil
		}
		return nil, err
	}
	r.Point("unpark")
	if out != nil {
		r.ShowResult(t, a.ForCall, content, out)
		r.reportAnswered(t, a, out, by)
	}
	return r.Fold(t.ID)
}

// reportAnswered tells audit, metrics and watchers about a call that did not run, because its result is
// people's answer. by is the person's id.
func (r *sessionRun) reportAnswered(t *turn.Turn, a *turn.Ask, out *turn.Outcome, by string) {
	verdict := tools.Ask
	if a.Kind != bus.AskApproval { // the call itself was allowed
		verdict = tools.Allow
	}
	result := turn.ResultCode(out.Failed)
	r.Audit(t, a.ForCall, sessions.AuditRecord{
		Arguments: a.Args, Verdict: string(verdict), Result: result, Bytes: int64(len(out.Result.Content)), Detail: by,
	})
	e := bus.Event{Type: bus.ToolEnd, Tool: a.ForCall.Use.Name, Call: a.Call}
	if out.Failed != nil {
		e.Error = &bus.Failure{Code: result, Message: r.Redactor().Text(out.Failed.Message)}
	}
	r.Config.Observer.Tool(a.ForCall.Use.Name, result, 0)
	r.Log.Info("tool call", slog.String("turn", t.ID), slog.String("call", a.Call), slog.String("tool", a.ForCall.Use.Name),
		slog.String("person", t.Person), slog.String("result", result), slog.Duration("waited", time.Since(t.ParkedAt)))
	r.Emit(t, e)
}

// handleWhileWaiting handles a message that arrives while a turn waits. If a question is open and the turn's person or
// an owner writes, the message is the answer. Any other message is kept for the turn, and its sender is told what the
// turn waits for.
func (r *sessionRun) handleWhileWaiting(ctx context.Context, t *turn.Turn, in *bus.Inbound) error {
	unnoted, err := r.whyFilesUnrecorded(ctx, &item{in: *in})
	if err != nil {
		return err
	}
	if a := openQuestion(t, in); a != nil && r.Config.Asks != nil {
		of, err := r.Config.Asks.Answer(ctx, a.ID, bus.Answer{Text: strings.TrimSpace(in.Text), By: in.From, Cause: in.ID})
		switch {
		case err == nil:
			if t, err = r.endAsk(ctx, t, a, of, in.ID, fileEntries(t.ID, *in, unnoted)...); err != nil {
				return err
			}
			return r.continueTurn(ctx, t)
		case !bus.AnswerRefused(err):
			return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
		}
	}
	if _, known := r.Journal.Find(in.ID); !known {
		if err := r.Journal.Append(ctx, userEntries(t.ID, *in, len(t.Causes)+1, unnoted)...); err != nil {
			if _, seen := errors.AsType[*sessions.SeenError](err); seen {
				return nil
			}
			return err
		}
		if err := r.showNewMessages(t); err != nil {
			return err
		}
	}
	if in.Kind != bus.Said {
		return nil
	}
	return r.replyWaitReason(ctx, t, in)
}

// replyWaitReason tells the sender of a message what the turn waits for, unless no person takes part in the conversation.
func (r *sessionRun) replyWaitReason(ctx context.Context, t *turn.Turn, in *bus.Inbound) error {
	if r.HasNoPeople() {
		return nil
	}
	p := r.CommandPrefix(in.At)
	to := route.Of(*in)
	return r.publish(ctx, bus.Outbound{
		ID: bus.ReplyID(in.ID), To: to.At, ReplyTo: to.ReplyTo,
		Text: fmt.Sprintf(textNoted, r.waitReasonText(t, in.At), p),
	})
}

// openQuestion returns the open question that a message answers; nil if it answers none. Only the turn's person and
// owners can answer. Words that an agent says here on somebody's behalf are not that person's answer.
func openQuestion(t *turn.Turn, in *bus.Inbound) *turn.Ask {
	if strings.TrimSpace(in.Text) == "" || in.Kind != bus.Said || len(in.Quotes) > 0 && in.Quotes[0].Kind == bus.Told {
		return nil
	}
	for _, a := range t.OpenAsks() {
		if a.Kind == bus.AskQuestion && (in.From.ID == t.Person || in.From.Owner) {
			return a
		}
	}
	return nil
}

// applyEdits returns a batch with the edits and deletions of its messages applied that arrived before an
// answer. A deleted message is not answered, and the log records only its id.
func (r *sessionRun) applyEdits(ctx context.Context, b batch) (batch, error) {
	changes := r.inbox.changesOf(b.causes())
	if len(changes) == 0 {
		return b, nil
	}
	var said, behind []bus.Inbound
	for _, it := range b.items {
		said = append(said, it.in)
	}
	for _, it := range changes {
		behind = append(behind, it.in)
	}
	now, deleted := applyChanges(said, behind)
	kept := batch{ended: b.ended}
	for _, it := range b.items {
		if i := slices.IndexFunc(now, func(in bus.Inbound) bool { return in.ID == it.in.ID }); i >= 0 {
			kept.items = append(kept.items, &item{seq: it.seq, in: now[i]})
			continue
		}
		i := slices.IndexFunc(deleted, func(in bus.Inbound) bool { return in.ID == it.in.ID })
		err := r.Journal.Append(ctx, deletedUnreadEntry(deleted[i]))
		if _, seen := errors.AsType[*sessions.SeenError](err); err != nil && !seen {
			return b, err
		}
		r.inbox.markHandled(it)
	}
	return kept, nil
}

// recordChange writes an edit or a reaction to the log, or empties a deleted message. It doesn't start a turn.
func (r *sessionRun) recordChange(ctx context.Context, in *bus.Inbound) error {
	if in.Kind == bus.Deleted {
		return r.blankDeleted(ctx, in)
	}
	e, ok := changeEntry(in.ID, *in, r.Journal.Records())
	if !ok {
		return nil
	}
	err := r.Journal.Append(ctx, e)
	if _, seen := errors.AsType[*sessions.SeenError](err); seen {
		return nil
	}
	return err
}

// blankDeleted empties the text of a deleted message, and removes the files that came with it, even if a
// summary covers the message. It does nothing if the message is known to be another person's.
func (r *sessionRun) blankDeleted(ctx context.Context, in *bus.Inbound) error {
	trace, at, err := r.Trace(ctx, in.Of)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return fmt.Errorf("look for a deleted message: %w", err)
	}
	if trace.Person != "" && !appliesTo(*in, trace.Person) {
		return nil
	}
	if len(trace.Paths) > 0 && r.Agent.Discard != nil {
		if err := r.Lease.Held(ctx); err != nil {
			return fmt.Errorf("before removing files: %w", err)
		}
		if err := r.Agent.Discard(ctx, r.Key(), trace.Paths); err != nil {
			return fmt.Errorf("remove the files of a deleted message: %w", err)
		}
	}
	if err := r.Journal.EraseMessage(ctx, in.Of); err != nil {
		return err
	}
	r.ShowDeleted(at)
	return nil
}

// republish publishes the replies of a turn again after one of its messages has arrived again: the bus may have
// lost what was published before (a restored backup, another bus). The ids are the same, so a reply that did
// arrive is not delivered twice. The messages of a turn that was given up become dead letters. If the turn still waits,
// the sender is told so again.
func (r *sessionRun) republish(ctx context.Context, id string, it *item) error {
	t, records, err := r.foldFromLog(ctx, id)
	if err != nil {
		return err
	}
	if t.Done == nil {
		if t.Parked && t.MessagesMeanwhile[it.in.ID] { // an earlier holder may have been cut off before it told the sender
			return r.replyWaitReason(ctx, t, &it.in)
		}
		return nil
	}
	if t.Unsendable {
		return errUnsendable
	}
	r.auditEnd(t, r.usageOf(t), true) // an earlier holder may have been cut off before doing this and the next
	spans.RecordRead(r.Session, t, records)
	r.emitEnd(t)
	if err := r.publishReplies(ctx, t); err != nil {
		return err
	}
	if t.GivenUp {
		return &buryError{seq: it.seq, reason: "the turn was cut off too often"}
	}
	return nil
}

// foldFromLog folds a turn and returns it with its records, perhaps among records of other turns. Unlike Fold, it also
// works for a turn that is over, because it reads the turn's progress from the log.
func (r *sessionRun) foldFromLog(ctx context.Context, id string) (t *turn.Turn, records []journal.Record, err error) {
	from, over := journal.IsOver(r.Journal.Records(), id)
	if !over {
		t, err = r.Fold(id)
		return t, r.Journal.Records(), err
	}
	if records, err = journal.ReadTurn(r.Config.Store.Read(ctx, r.Key(), from), id); err != nil {
		return nil, nil, fmt.Errorf("read turn %s: %w", id, err)
	}
	t, err = turn.Fold(id, records, nil)
	return t, records, err
}

// surelyPublishedAge is the age from which on a turn's replies are not published again, unless a message still waits
// for them. The book keeps its records for longer than that, so a reply that is published twice is sent once.
const surelyPublishedAge = 20 * 24 * time.Hour

// isSurelyPublished reports whether a turn's replies must be on the bus although the log doesn't say so: the turn ended
// long ago, and its messages were settled, which happens after publishing.
func (r *sessionRun) isSurelyPublished(t *turn.Turn) bool {
	return time.Since(t.Ended) > surelyPublishedAge && !slices.ContainsFunc(r.inbox.unhandled(), func(it *item) bool {
		known, ok := r.Journal.Find(it.in.ID)
		return ok && known.Turn == t.ID
	})
}
