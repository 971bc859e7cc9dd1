package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/agent"
	"parley/agent/attached"
	"parley/agent/budget"
	"parley/agent/calls"
	"parley/agent/figures"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/model"
	"parley/agent/shortfall"
	"parley/agent/spans"
	"parley/agent/task"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
	"parley/tools/plainjson"
)

// A turnRun runs one turn, from the state in the log to its end.
type turnRun struct {
	lifecycle
	inbox *inbox
	stop  *turnStop
	calls *calls.Runner
	asker *model.Asker
}

const maxTurnTime = 30 * time.Minute

// Codes that say in the log what a notice is for.
const (
	noticeRepeated = "repeated_call"
	noticeFiles    = "files" // files that the turn's answer shows could not be sent
)

// run runs the turn's steps until it ends or waits, and publishes the reply.
func (r *turnRun) run(ctx context.Context, t *turn.Turn) error {
	// There is only one context, which /stop or the timer ends: a second one for the time limit would take
	// memory in every turn that waits. So the context has no deadline, and on PostgreSQL the turn's statements
	// get the default one: the statement timeout, 30 s unless the URL sets another.
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.stop.set(cancel)
	defer r.stop.set(nil)
	limit := time.AfterFunc(maxTurnTime, func() { cancel(errTooLong) })
	defer limit.Stop()

	return r.handleOutcome(ctx, tctx, t, r.runSteps(tctx, t.ID))
}

// handleOutcome does what is needed after the steps of a turn have ended with err: it publishes the reply,
// parks the turn until people or a model answer, or ends the turn with the error's message. tctx is the context
// under which the steps ran.
func (r *turnRun) handleOutcome(ctx, tctx context.Context, t *turn.Turn, err error) error {
	switch {
	case err == nil:
		return r.conclude(ctx, t.ID)
	case errors.Is(err, errParked):
		return r.announce(ctx, t.ID)
	}
	if away, waits := errors.AsType[*model.UnavailableError](err); waits && tctx.Err() == nil {
		return r.awaitModel(ctx, t, away)
	}
	if taken, waits := errors.AsType[*budget.SetAsideError](err); waits && tctx.Err() == nil {
		return r.awaitBudget(ctx, t, taken)
	}
	end, ends := errors.AsType[*turn.Ending](err)
	switch cause := context.Cause(tctx); {
	case errors.Is(cause, errStopped) || errors.Is(err, errStopped):
		end, ends = &turn.Ending{State: sessions.TurnCancelled}, true
	case errors.Is(cause, errTooLong):
		end, ends = turn.Failed("timeout", textTooLong, maxTurnTime), true
	case errors.Is(cause, errShutdown):
		r.suspend(ctx, t)
		return errShutdown
	}
	if (errors.Is(err, turn.ErrBusAway) || errors.Is(err, model.ErrUnreserved)) && !ends {
		r.suspend(ctx, t) // this is not the turn's fault, however often it happens
	}
	if !ends {
		return err
	}
	return r.finish(ctx, t, end)
}

// runSteps runs the steps of a turn until its end is written. Each round begins with the turn as it is in the
// log. It returns errParked if the turn waits, and errStopped after a /stop.
func (r *turnRun) runSteps(ctx context.Context, id string) error {
	prompt, err := r.prompt(ctx, id)
	if err != nil {
		return err
	}
	for {
		t, err := r.Fold(id)
		if err != nil {
			return err
		}
		spans.Record(r.Session, t)
		if t.Stopped {
			return errStopped
		}
		if t.Done != nil {
			return nil
		}
		if t.Parked {
			return errParked
		}
		if open := t.OpenCalls(); len(open) > 0 {
			err = r.runCalls(ctx, t, open)
		} else {
			err = r.askModel(ctx, t, prompt)
		}
		if err != nil {
			return err
		}
	}
}

// prompt returns the prompt of a turn, and gives the model the agent's memory. It records whether that may
// contain untrusted text.
func (r *turnRun) prompt(ctx context.Context, id string) (string, error) {
	begun, err := r.Fold(id)
	if err != nil {
		return "", err
	}
	who := agent.Asker{Session: r.Key(), Turn: id, Person: begun.Person, Private: begun.Route.IsPrivate()}
	prompt, err := r.Agent.Prompt(ctx, who)
	if err != nil {
		return "", fmt.Errorf("make the prompt: %w", err)
	}
	r.asker.Memory, r.calls.PromptUntrusted = nil, false
	if r.Agent.Memory == nil {
		r.TrustedTurn = id
		return prompt, nil
	}
	memory, untrusted, err := r.Agent.Memory(ctx, who)
	if err != nil {
		return "", fmt.Errorf("read what is remembered: %w", err)
	}
	r.asker.Memory, r.calls.PromptUntrusted = memory, untrusted
	if !untrusted {
		r.TrustedTurn = id
	}
	return prompt, nil
}

// askModel is a step that asks the model once: it records new mail (C2), sends the request, and records the
// answer (C3). An answer without calls also ends the turn (C6). One append writes both, so the log never
// contains such an answer without the end of the turn.
func (r *turnRun) askModel(ctx context.Context, t *turn.Turn, prompt string) error {
	if err := r.recordSteering(ctx, t); err != nil {
		return err
	}
	if err := r.asker.MarkMemory(ctx, t); err != nil {
		return err
	}
	t, err := r.fetchAttached(ctx, t.ID)
	if err != nil {
		return err
	}
	answer, err := r.asker.Answer(ctx, t, &llm.Request{System: prompt, Tools: r.Offered(r.calls.Tools), NoCalls: t.LastStep})
	if err != nil {
		return err
	}
	return r.recordAnswer(ctx, t, answer)
}

// recordAnswer writes the model's answer (C3) and, if it ends the turn, the end with it (C6). It is a separate
// function because most running turns are waiting for the model, and what is needed only afterwards should not
// be on their stacks.
func (r *turnRun) recordAnswer(ctx context.Context, t *turn.Turn, answer *llm.Answer) error {
	r.Config.Observer.Step()
	entries, calls := r.asker.AnswerEntries(t, *answer)
	// A call with an effect waits until the record of its start (C4), and so this entry, is on the disk.
	write := func() error { return r.asker.AppendStep(ctx, t, *answer, calls, entries) }
	if calls == 0 {
		reply, notices := r.replyWithFiles(ctx, t, r.finalReply(t, *answer))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done := sessions.TurnDone{State: sessions.TurnCompleted, Outbound: []sessions.Reply{reply}, Figures: figures.Of(&r.Agent, t, entries)}
		done.Aloud = r.isAloud(t, reply.Text)
		write = func() error {
			settled, err := r.appendEnd(ctx, t, r.asker.Reservations.Settlement(), done, append(entries, notices...))
			r.asker.Reservations.Settled(settled)
			return err
		}
		r.Point("c6:before")
	}
	r.Point("c3:before")
	if err := write(); err != nil {
		return err
	}
	r.asker.AnnounceWritten()
	r.Point("c3")
	if calls == 0 {
		r.Point("c6")
	}
	return nil
}

// recordSteering records (C2) what steeringMail returns, if the agent may be steered, edits of the turn's messages,
// reactions to them and, if a limit is reached, a notice that this is the last step. The mail counts as handled once
// it is in the log.
func (r *turnRun) recordSteering(ctx context.Context, t *turn.Turn) error {
	var entries []sessions.Entry
	var taken []*item
	if r.Agent.Steer && t.ModelCalls > 0 {
		taken = r.inbox.steeringMail(t)
	}
	unnoted, err := r.whyFilesUnrecorded(ctx, taken...)
	if err != nil {
		return err
	}
	for _, it := range taken {
		switch _, known := r.Journal.Find(it.in.ID); {
		case known:
		case it.isOperators():
			entries = append(entries, noticeEntry(&it.in))
		default:
			entries = append(entries, userEntries(t.ID, it.in, len(t.Causes)+len(taken), unnoted)...)
		}
	}
	changed := r.inbox.changesOf(t.Causes)
	for _, it := range changed {
		if it.isKind(bus.Deleted) { // a deletion is handled when the turn is over
			continue
		}
		if _, known := r.Journal.Find(it.in.ID); !known {
			if e, ok := changeEntry(t.ID, it.in, r.Journal.Records()); ok {
				entries = append(entries, e)
			}
		}
		taken = append(taken, it)
	}
	if why := r.reachedLimit(t); why != "" && !t.LastStep {
		text := textLastStep(why)
		entries = append(entries, journal.NewEntry(t.ID, sessions.KindNotice, sessions.Notice{Code: turn.NoticeLastStep, Text: text}))
	}
	if len(entries) > 0 {
		r.Point("c2:before")
		if err := r.Journal.Append(ctx, entries...); err != nil {
			return err
		}
		r.Point("c2")
		if err := r.showNewMessages(t); err != nil {
			return err
		}
	}
	showSaidByOthers(r.Session, taken...)
	r.inbox.markHandled(taken...)
	return nil
}

// reachedLimit returns the limit that makes the next model call the turn's last, or "" if none does.
func (r *turnRun) reachedLimit(t *turn.Turn) string {
	if t.ModelCalls >= r.Agent.MaxIterations-1 {
		return fmt.Sprintf("after %d model calls", r.Agent.MaxIterations)
	}
	if r.Agent.ErrorLimit > 0 && t.CountFailedSteps() >= r.Agent.ErrorLimit {
		return fmt.Sprintf("after %d steps in a row in which every tool call failed", r.Agent.ErrorLimit)
	}
	if len(t.Steps) > 0 {
		for _, c := range t.Steps[len(t.Steps)-1].Calls {
			if t.CountRepeats(c) >= calls.RepeatRefuse {
				return "because the same call kept giving the same result"
			}
		}
	}
	return ""
}

// finalReply returns a turn's reply: the text of its last answer, with notes about a limit that was reached,
// files that are missing, and anything missing from the answer.
func (r *turnRun) finalReply(t *turn.Turn, answer llm.Answer) string {
	var texts []string
	for _, b := range answer.Blocks {
		if b.Kind == llm.BlockText && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, r.Redactor().Text(b.Text))
		}
	}
	if note := shortfall.Text(answer, len(texts) > 0); note != "" {
		texts = append(texts, note)
	}
	texts = append(texts, t.Files.Notes()...)
	if t.LastStep {
		why := r.reachedLimit(t)
		if why == "" {
			why = "at a limit"
		}
		texts = append(texts, "_(Stopped "+why+". Say “go on” to continue.)_")
	}
	return strings.Join(texts, "\n\n")
}

// runCalls runs the calls of a step that have no result. If all of them are pure and none depends on another,
// they run in parallel. Otherwise they run in order and, if the agent may be steered, only as long as their sender says
// nothing new.
func (r *turnRun) runCalls(ctx context.Context, t *turn.Turn, open []*turn.Call) error {
	prepared := make([]*calls.Prepared, len(open))
	untrusted := r.calls.Untrusted(ctx, t, open[0]) // the same for all calls of one answer
	pure, share := true, calls.ShareOf(r.Session, t)
	for i, c := range open {
		prepared[i] = r.calls.Prepare(t, c, untrusted)
		prepared[i].Share = share
		pure = pure && (prepared[i].Effect == tools.Pure || !prepared[i].Granted) // a call that is not granted only gets an error
	}
	sorted, dependent := calls.Sort(t, prepared)
	if pure && !dependent && len(open) > 1 {
		return r.runInParallel(ctx, t, sorted)
	}
	return r.runInOrder(ctx, t, sorted)
}

// runInParallel runs calls in parallel, at most MaxParallelTools at a time.
func (r *turnRun) runInParallel(ctx context.Context, t *turn.Turn, calls []*calls.Prepared) error {
	began := time.Now()
	free := make(chan struct{}, max(1, r.Agent.MaxParallelTools))
	errs := make([]error, len(calls))
	asks := make([]*sessions.Ask, len(calls))
	took := make([]time.Duration, len(calls))
	var running sync.WaitGroup
	for i, p := range calls {
		running.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			start := time.Now()
			asks[i], errs[i] = r.calls.Run(ctx, t, p)
			took[i] = time.Since(start)
		})
	}
	running.Wait()
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	r.Config.Observer.Batch(min(len(calls), cap(free)), max(0, sum-time.Since(began)))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.endStep(ctx, t, calls, asks)
}

// runInOrder runs calls one after the other. A call that depends on one that waits for people waits, too.
func (r *turnRun) runInOrder(ctx context.Context, t *turn.Turn, calls []*calls.Prepared) error {
	var asks []*sessions.Ask
	for i, p := range calls {
		if i > 0 && p.Attempts == 0 && !p.Ask.IsApproved() && r.Agent.Steer && r.inbox.hasSteering(t) {
			if err := r.skipCalls(ctx, t, calls[i:], tools.Errorf(tools.Cancelled, "Not run: a new message came first. Call again if it is still wanted.")); err != nil {
				return err
			}
			break
		}
		ask, err := r.runReady(ctx, t, p)
		if err != nil {
			return err
		}
		asks = append(asks, ask)
	}
	return r.endStep(ctx, t, calls, asks)
}

// runReady runs a call, unless one that it depends on has failed or waits for people. If people have to be asked
// about it first, it returns the ask.
func (r *turnRun) runReady(ctx context.Context, t *turn.Turn, p *calls.Prepared) (*sessions.Ask, error) {
	if p.IsDependent() {
		now, err := r.Fold(t.ID)
		if err != nil {
			return nil, err
		}
		ready, failed := p.Readiness(now)
		if failed != nil {
			return nil, r.skipCalls(ctx, t, []*calls.Prepared{p}, failed)
		}
		if !ready {
			return nil, nil
		}
	}
	return r.calls.Run(ctx, t, p)
}

// endStep ends a step whose calls have run. If some of them wait for people or sub-agents, it parks the turn.
func (r *turnRun) endStep(ctx context.Context, t *turn.Turn, calls []*calls.Prepared, asks []*sessions.Ask) error {
	r.calls.RenewHashes(ctx, calls, asks)
	var open []sessions.Ask
	for _, a := range asks {
		if a != nil {
			open = append(open, *a)
		}
	}
	if len(open) > 0 {
		return r.park(ctx, t, open)
	}
	return r.warnOfRepeats(ctx, t, calls)
}

// skipCalls gives a result to calls that don't run; e tells the model why.
func (r *turnRun) skipCalls(ctx context.Context, t *turn.Turn, calls []*calls.Prepared, e *tools.Error) error {
	var entries []sessions.Entry
	for _, p := range calls {
		entries = append(entries, turn.ResultEntry(t, p.Call, e.Result().Content, &turn.Outcome{Failed: e}))
	}
	if err := r.Journal.Append(ctx, entries...); err != nil {
		return err
	}
	for _, p := range calls {
		r.ShowResult(t, p.Call, e.Result().Content, &turn.Outcome{Failed: e})
		r.Audit(t, p.Call, sessions.AuditRecord{Result: string(e.Code)})
	}
	return nil
}

// warnOfRepeats warns the model about a call that it repeats without a new result, when that has happened RepeatWarn
// times.
func (r *turnRun) warnOfRepeats(ctx context.Context, t *turn.Turn, ran []*calls.Prepared) error {
	t, err := r.Fold(t.ID)
	if err != nil {
		return err
	}
	for _, p := range ran {
		if t.CountRepeats(p.Call) == calls.RepeatWarn {
			text := fmt.Sprintf(textRepeats, p.Use.Name, calls.RepeatWarn)
			return r.Journal.Append(ctx, journal.NewEntry(t.ID, sessions.KindNotice, sessions.Notice{Code: noticeRepeated, Text: text}))
		}
	}
	return nil
}

// replyWithFiles returns a turn's reply with the files that its text shows. If some can't be sent, the reply
// tells the person so, and notices tell the model in its next turn.
func (r *turnRun) replyWithFiles(ctx context.Context, t *turn.Turn, text string) (reply sessions.Reply, notices []sessions.Entry) {
	reply = sessions.Reply{ID: bus.ReplyID(t.ID), Text: text}
	if r.Agent.CopyFiles == nil {
		return reply, nil
	}
	files := r.Agent.CopyFiles(ctx, r.Key(), agent.AnswerWithFiles{ID: reply.ID, At: t.Route.At, Text: text, Enclosed: t.Enclosed()})
	if len(files.Files) > 0 {
		raw, err := plainjson.Marshal(files.Files)
		if err != nil { // texts and numbers always marshal
			panic(err)
		}
		reply.Files = raw
	}
	if len(files.Refused) > 0 {
		why := strings.Join(files.Refused, " ")
		reply.Text = strings.TrimSpace(text + "\n\n(" + why + ")")
		notices = append(notices, journal.NewEntry(t.ID, sessions.KindNotice, sessions.Notice{Code: noticeFiles, Text: textFileMissing + why}))
	}
	return reply, notices
}

// fetchAttached fetches the files that came with the turn's messages, and returns the turn as it is afterwards.
// A file that was fetched but is not in the log is fetched again, to the same place.
func (r *turnRun) fetchAttached(ctx context.Context, id string) (*turn.Turn, error) {
	t, err := r.Fold(id)
	if err != nil || !t.Files.HasUnfetched() {
		return t, err
	}
	r.recordChanges(ctx, id) // the files that people sent don't count as the turn's changes
	if err := t.Files.EachUnfetched(func(f attached.File) error { return r.fetch(ctx, t, f) }); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return r.Fold(id)
}

// fetch fetches one file and writes the result to the log.
func (r *turnRun) fetch(ctx context.Context, t *turn.Turn, f attached.File) error {
	r.Point("fetch:before")
	got := sessions.Fetched{Problem: textNoFetch}
	if r.Agent.Fetch != nil {
		var err error
		if got, err = r.Agent.Fetch(ctx, agent.FileToFetch{Session: r.Key(), Turn: t.ID, At: t.Route.At, File: f, CheckLease: r.Lease.Held}); err != nil {
			return fmt.Errorf("fetch a file that came with a message: %w", err)
		}
	}
	got.Attached, got.Message = f.N, f.Message
	r.Point("fetch")
	e := journal.NewEntry(t.ID, sessions.KindFetched, got)
	e.Person = f.Person
	if err := r.Journal.Append(ctx, e); err != nil {
		return err
	}
	r.Point("fetched")
	r.Log.Info("a file came with a message", slog.String("turn", t.ID), slog.Int64("entry", f.N),
		slog.String("kind", f.Kind), slog.Int64("bytes", got.Size), slog.Bool("fetched", got.Path != ""))
	return nil
}

// suspend records that a turn stops in an orderly way, because the process ends, no model answers, or something
// that the turn needs is unavailable. The turn's next resume then doesn't count as one after a crash.
func (r *turnRun) suspend(ctx context.Context, t *turn.Turn) {
	spans.Record(r.Session, t)
	noteSuspended(ctx, r.Session, t)
}

// awaitModel makes a turn wait until a model may answer again, and tells the person once. It returns an error
// that postpones the session's mail. No worker is occupied meanwhile.
func (r *turnRun) awaitModel(ctx context.Context, t *turn.Turn, away *model.UnavailableError) error {
	r.suspend(ctx, t) // first, so that the wait doesn't count as a crash even if nobody can be told now
	err := r.publish(ctx, bus.Outbound{
		ID: bus.DerivedID(t.ID, "#away"), To: t.Route.At, ReplyTo: t.Route.ReplyTo, // the same each time, so it arrives once
		Text: shortfall.WaitText(away.ProviderWait, away.RetryAfter, away.GiveUpAt, r.CommandPrefix(t.Route.At)),
	})
	if err != nil && !errors.Is(err, bus.ErrInvalid) {
		return err
	}
	return away
}

// awaitBudget makes a turn wait until a budget has something left, and tells the person once, unless that takes
// only a moment. It returns an error that postpones the session's mail. No worker is occupied meanwhile.
func (r *turnRun) awaitBudget(ctx context.Context, t *turn.Turn, taken *budget.SetAsideError) error {
	r.suspend(ctx, t)
	if !taken.IsAnnounced() {
		return taken
	}
	err := r.publish(ctx, bus.Outbound{
		ID: bus.DerivedID(t.ID, "#budget"), To: t.Route.At, ReplyTo: t.Route.ReplyTo, // the same each time, so it arrives once
		Text: taken.Over.WaitWords(taken.GiveUpAt, r.CommandPrefix(t.Route.At)+turn.CommandStop),
	})
	if err != nil && !errors.Is(err, bus.ErrInvalid) {
		return err
	}
	return taken
}

// park records that a turn begins to wait, and for which asks, before anybody is asked. It returns errParked. A
// question counts as begun with that entry (C4); a call that needs approval begins when it has been approved
// and runs.
func (r *turnRun) park(ctx context.Context, t *turn.Turn, asks []sessions.Ask) error {
	var entries []sessions.Entry
	for _, a := range asks {
		if a.Kind == task.Kind {
			e := journal.NewEntry(t.ID, sessions.KindDelegated, r.calls.HandedOut[a.Call])
			e.Call = a.Call
			entries = append(entries, e)
		}
		if a.Kind != bus.AskQuestion {
			continue
		}
		e := journal.NewEntry(t.ID, sessions.KindToolStarted, sessions.ToolStarted{Attempt: 1})
		e.Call = a.Call
		entries = append(entries, e)
	}
	entries = append(entries, journal.NewEntry(t.ID, sessions.KindTurnParked, sessions.TurnParked{Asks: asks}))
	r.Point("park:before")
	if err := r.Journal.Append(ctx, entries...); err != nil {
		return err
	}
	r.Point("park")
	return errParked
}
