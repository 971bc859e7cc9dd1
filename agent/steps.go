package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/news"
	"parley/agent/shortfall"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

const maxTurnTime = 30 * time.Minute

// run runs the turn's steps to its end, or until it waits, and publishes the reply.
func (r *turnRun) run(ctx context.Context, t *turn) error {
	// One context, ended by /stop or by the timer: a second one for the time takes memory in every turn
	// that waits. So it has no deadline, and on PostgreSQL each of the turn's statements has the one
	// that statements without any get: the statement timeout, 30 s unless the URL sets another.
	tctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.stop.set(cancel)
	defer r.stop.set(nil)
	limit := time.AfterFunc(maxTurnTime, func() { cancel(errTooLong) })
	defer limit.Stop()

	return r.handleOutcome(ctx, tctx, t, r.runSteps(tctx, t.id))
}

// handleOutcome does what is due when the steps of a turn are over, with that error: it publishes the
// reply, has the turn wait for people or for a model, or ends the turn with the error's message. tctx
// is the context under which the steps ran.
func (r *turnRun) handleOutcome(ctx, tctx context.Context, t *turn, err error) error {
	switch {
	case err == nil:
		return r.conclude(ctx, t.id)
	case errors.Is(err, errParked):
		return r.announce(ctx, t.id)
	}
	if away, waits := errors.AsType[*modelUnavailable](err); waits && tctx.Err() == nil {
		return r.awaitModel(ctx, t, away)
	}
	end, ends := errors.AsType[*ending](err)
	switch cause := context.Cause(tctx); {
	case errors.Is(cause, errStopped) || errors.Is(err, errStopped):
		end, ends = &ending{state: sessions.TurnCancelled}, true
	case errors.Is(cause, errTooLong):
		end, ends = failure("timeout", "I have worked on this for %s, the most a turn may take, and stopped.", maxTurnTime), true
	case errors.Is(cause, errShutdown):
		r.suspend(ctx, t)
		return errShutdown
	}
	if (errors.Is(err, errBusAway) || errors.Is(err, errUnreserved)) && !ends {
		r.suspend(ctx, t) // nothing is wrong with the turn, however often that happens
	}
	if !ends {
		return err
	}
	return r.finish(ctx, t, end)
}

// runSteps runs the steps of a turn until its end is written. Each round begins with the
// turn as it is in the log.
func (r *turnRun) runSteps(ctx context.Context, id string) error {
	prompt, err := r.prompt(ctx, id)
	if err != nil {
		return err
	}
	for {
		t, err := r.fold(id)
		if err != nil {
			return err
		}
		if t.stopped {
			return errStopped
		}
		if t.done != nil {
			return nil
		}
		if t.parked {
			return errParked
		}
		if open := t.openCalls(); len(open) > 0 {
			err = r.runCalls(ctx, t, open)
		} else {
			err = r.askModel(ctx, t, prompt)
		}
		if err != nil {
			return err
		}
	}
}

// prompt returns the prompt of a turn, and notes whether it holds what is not to be trusted.
func (r *turnRun) prompt(ctx context.Context, id string) (string, error) {
	begun, err := r.fold(id)
	if err != nil {
		return "", err
	}
	prompt, untrusted, err := r.agent.Prompt(ctx, Asker{Session: r.key(), Turn: id, Person: begun.person, Private: begun.route.IsPrivate()})
	if err != nil {
		return "", fmt.Errorf("make the prompt: %w", err)
	}
	r.calls.promptUntrusted = untrusted
	return prompt, nil
}

// askModel is a step that asks the model once: C2, the request, and C3. An answer
// without calls ends the turn and is C6 as well. Both are one append: such an answer
// never stands in the log without the end of the turn.
func (r *turnRun) askModel(ctx context.Context, t *turn, prompt string) error {
	if err := r.recordSteering(ctx, t); err != nil {
		return err
	}
	t, err := r.fetchAttached(ctx, t.id)
	if err != nil {
		return err
	}
	answer, err := r.model.answer(ctx, t, &llm.Request{System: prompt, Tools: r.calls.tools.Specs(), NoCalls: t.lastStep})
	if err != nil {
		return err
	}
	return r.recordAnswer(ctx, t, answer)
}

// recordAnswer writes the model's answer (C3) and, if it ends the turn, C6 with it. It is a
// function of its own because most turns that are under way wait for the model: what is needed
// only afterwards need not be on their stacks.
func (r *turnRun) recordAnswer(ctx context.Context, t *turn, answer *llm.Answer) error {
	r.cfg.Observer.Step()
	entries, calls := r.model.answerEntries(t, *answer)
	// A call with an effect waits until its C4, and so this, is on the disk.
	write := func() error { return r.journal.AppendSoon(ctx, entries...) }
	if calls == 0 {
		reply, notices := r.replyWithFiles(ctx, t, r.finalReply(t, *answer))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		done := sessions.TurnDone{State: sessions.TurnCompleted, Outbound: []sessions.Reply{reply}}
		write = func() error { return r.model.appendLast(ctx, t, done, append(entries, notices...)) }
		r.point("c6:before")
	}
	r.point("c3:before")
	if err := write(); err != nil {
		return err
	}
	r.point("c3")
	if calls == 0 {
		r.point("c6")
	}
	return nil
}

// recordSteering writes C2: mail that the same sender has sent since, and, if a limit is
// reached, a notice that this is the last step. The mail counts as handled once it is in
// the log.
func (r *turnRun) recordSteering(ctx context.Context, t *turn) error {
	var entries []sessions.Entry
	var taken []*item
	if r.agent.Steer && t.modelCalls > 0 {
		taken = r.inbox.steeringMail(t)
	}
	unnoted, err := r.whyNotNoted(ctx, taken...)
	if err != nil {
		return err
	}
	for _, it := range taken {
		if _, known := r.journal.Find(it.in.ID); !known {
			entries = append(entries, userEntries(t.id, it.in, len(t.causes)+len(taken), unnoted)...)
		}
	}
	changed := r.inbox.newsOf(t.causes)
	for _, it := range changed {
		if it.isKind(bus.Deleted) { // a deletion is handled when the turn is over
			continue
		}
		if _, known := r.journal.Find(it.in.ID); !known {
			if e, ok := news.Entry(t.id, it.in, r.journal.Records()); ok {
				entries = append(entries, e)
			}
		}
		taken = append(taken, it)
	}
	if why := r.reachedLimit(t); why != "" && !t.lastStep {
		t.lastStep = true
		text := "This turn has reached a limit (" + why + "), so this is your last answer and tools are off: say what is done and what remains."
		entries = append(entries, journal.NewEntry(t.id, sessions.KindNotice, sessions.Notice{Code: noticeLastStep, Text: text}))
	}
	if len(entries) > 0 {
		r.point("c2:before")
		if err := r.journal.Append(ctx, entries...); err != nil {
			return err
		}
		r.point("c2")
	}
	r.inbox.markHandled(taken...)
	return nil
}

// reachedLimit returns which limit makes the next model call the turn's last; "" if none
// does.
func (r *turnRun) reachedLimit(t *turn) string {
	if t.modelCalls >= r.agent.MaxIterations-1 {
		return fmt.Sprintf("%d model calls", r.agent.MaxIterations)
	}
	if r.agent.ErrorLimit > 0 && t.countFailedSteps() >= r.agent.ErrorLimit {
		return fmt.Sprintf("%d steps in a row in which every tool call failed", r.agent.ErrorLimit)
	}
	if len(t.steps) > 0 {
		for _, c := range t.steps[len(t.steps)-1].calls {
			if t.countRepeats(c) >= repeatRefuse {
				return "the same call with the same result, again and again"
			}
		}
	}
	return ""
}

// finalReply returns a turn's reply: the text of its last answer, with notes about a
// limit that was reached, files that are missing, and what the answer lacks.
func (r *turnRun) finalReply(t *turn, answer llm.Answer) string {
	var texts []string
	for _, b := range answer.Blocks {
		if b.Kind == llm.BlockText && strings.TrimSpace(b.Text) != "" {
			texts = append(texts, r.redactor().Text(b.Text))
		}
	}
	if note := shortfall.Text(answer, len(texts) > 0); note != "" {
		texts = append(texts, note)
	}
	texts = append(texts, t.files.Notes()...)
	if t.lastStep {
		why := r.reachedLimit(t)
		if why == "" {
			why = "a limit"
		}
		texts = append(texts, "_(Stopped at "+why+". Say “go on” to continue.)_")
	}
	return strings.Join(texts, "\n\n")
}

// runCalls runs the calls of a step that have no result. If all of them are pure, they
// run in parallel. Otherwise they run in order, and only as long as their sender says
// nothing new.
func (r *turnRun) runCalls(ctx context.Context, t *turn, calls []*call) error {
	prepared := make([]*preparedCall, len(calls))
	untrusted := r.calls.untrusted(ctx, t, calls[0]) // all calls are from one answer, before which the model had read the same
	pure := true
	for i, c := range calls {
		prepared[i] = r.calls.prepare(t, c, untrusted)
		pure = pure && (prepared[i].effect == tools.Pure || !prepared[i].granted) // a call that is not granted only gets an error
	}
	if pure && len(calls) > 1 {
		return r.runSideBySide(ctx, t, prepared)
	}
	return r.runInOrder(ctx, t, prepared)
}

// runSideBySide runs calls in parallel.
func (r *turnRun) runSideBySide(ctx context.Context, t *turn, calls []*preparedCall) error {
	began := time.Now()
	free := make(chan struct{}, max(1, r.agent.MaxParallelTools))
	errs := make([]error, len(calls))
	asks := make([]*sessions.Ask, len(calls))
	took := make([]time.Duration, len(calls))
	var running sync.WaitGroup
	for i, p := range calls {
		running.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			start := time.Now()
			asks[i], errs[i] = r.calls.run(ctx, t, p)
			took[i] = time.Since(start)
		})
	}
	running.Wait()
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	r.cfg.Observer.Batch(min(len(calls), cap(free)), max(0, sum-time.Since(began)))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.endStep(ctx, t, calls, asks)
}

// runInOrder runs calls one after the other.
func (r *turnRun) runInOrder(ctx context.Context, t *turn, calls []*preparedCall) error {
	var asks []*sessions.Ask
	for i, p := range calls {
		if i > 0 && p.attempts == 0 && !p.ask.isApproved() && r.agent.Steer && r.inbox.hasSteering(t) {
			if err := r.skipCalls(ctx, t, calls[i:]); err != nil {
				return err
			}
			break
		}
		ask, err := r.calls.run(ctx, t, p)
		if err != nil {
			return err
		}
		asks = append(asks, ask)
	}
	return r.endStep(ctx, t, calls, asks)
}

// endStep ends a step whose calls have run. If people have to be asked about some of
// them, the turn is parked.
func (r *turnRun) endStep(ctx context.Context, t *turn, calls []*preparedCall, asks []*sessions.Ask) error {
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

// skipCalls gives calls that have not begun a result, because there is news that the
// model must see first.
func (r *turnRun) skipCalls(ctx context.Context, t *turn, calls []*preparedCall) error {
	var entries []sessions.Entry
	for _, p := range calls {
		e := tools.Errorf(tools.Cancelled, "Not run: a new message came first. Call again if it is still wanted.")
		entries = append(entries, resultEntry(t, p.call, e.Result().Content, &outcome{failed: e}))
	}
	if err := r.journal.Append(ctx, entries...); err != nil {
		return err
	}
	for _, p := range calls {
		r.audit(t, p.call, sessions.AuditRecord{Result: string(tools.Cancelled)})
	}
	return nil
}

// warnOfRepeats warns the model of calls that it repeats without a new result.
func (r *turnRun) warnOfRepeats(ctx context.Context, t *turn, calls []*preparedCall) error {
	t, err := r.fold(t.id)
	if err != nil {
		return err
	}
	for _, p := range calls {
		if t.countRepeats(p.call) == repeatWarn {
			text := fmt.Sprintf("You have called %s %d times with the same arguments and the same result. Try something else.", p.use.Name, repeatWarn)
			return r.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindNotice, sessions.Notice{Code: noticeRepeated, Text: text}))
		}
	}
	return nil
}

// replyWithFiles returns a turn's reply with the files that its text shows. If some
// cannot go, the reply says it to the person, and notices say it to the model in its
// next turn.
func (r *turnRun) replyWithFiles(ctx context.Context, t *turn, text string) (reply sessions.Reply, notices []sessions.Entry) {
	reply = sessions.Reply{ID: bus.ReplyID(t.id), Text: text}
	if r.agent.Enclose == nil {
		return reply, nil
	}
	files := r.agent.Enclose(ctx, r.key(), reply.ID, t.route.At, text)
	if len(files.Files) > 0 {
		raw, err := json.Marshal(files.Files)
		if err != nil { // texts and numbers always marshal
			panic(err)
		}
		reply.Files = raw
	}
	if len(files.Refused) > 0 {
		why := strings.Join(files.Refused, " ")
		reply.Text = strings.TrimSpace(text + "\n\n(" + why + ")")
		notices = append(notices, journal.NewEntry(t.id, sessions.KindNotice, sessions.Notice{Code: noticeFiles, Text: "Your answer went without a file that it shows. " + why}))
	}
	return reply, notices
}
