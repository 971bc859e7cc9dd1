package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"parley/agent"
	"parley/agent/asks"
	"parley/agent/calls"
	"parley/agent/estimate"
	"parley/agent/journal"
	"parley/agent/model"
	"parley/agent/quota"
	"parley/agent/sessioncache"
	"parley/agent/spans"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

const (
	maxResumes    = 3                // resumes of a turn without a new answer or result in between
	fairShareTime = 30 * time.Second // after this time, the bus gives the session's remaining mail to the next run
	// secondResumeDelay is the longest delay before a turn's second resume; the delay before the third is up to four
	// times as long.
	secondResumeDelay = 3 * time.Second
)

// A sessionRun is the work on one session under one lease.
type sessionRun struct {
	lifecycle
	turns    turnCounter
	shared   *sharedParts
	inbox    *inbox
	stop     *turnStop
	commands *commander
	closing  <-chan struct{} // closed when the process should end
	cached   *sessioncache.Run

	agentLookedUpAt time.Time             // when session.agent was looked up
	untitled        *untitledConversation // nil if no model should make a title
	// proposeAfter is the newest handled message after which a model may propose facts to remember; nil for none.
	proposeAfter *bus.Inbound
}

// newSessionRun makes a run of the leased session.
func newSessionRun(cfg *agent.Config, with *sharedParts, closing <-chan struct{}, lease bus.Lease) *sessionRun {
	s := turn.NewSession(cfg, lease, with.ratios)
	r := &sessionRun{lifecycle: lifecycle{s}, turns: turnCounter{s, with.quota}, shared: with, inbox: &inbox{}, stop: &turnStop{}, closing: closing}
	r.commands = &commander{lifecycle: r.lifecycle, askers: with.askers, inbox: r.inbox, stop: r.stop}
	return r
}

// run answers the session's mail. It returns why it stopped, nil if there is nothing left to do or if the rest is for
// the next run; the inbox says how far it got.
func (r *sessionRun) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.Log.Error("panic in a session", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer r.Audits.Wait()
	defer cancel(nil)

	if err := r.begin(ctx); err != nil {
		return err
	}
	stop := r.Lease.OnMail(func() { r.receiveMore(ctx, cancel) })
	defer stop()
	defer cancel(nil) // runs before the other deferred calls, because mail that is still arriving isn't needed anymore
	if err = r.work(ctx); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// begin opens the log, and receives the mail that came with the lease. It doesn't open the log if only a newer
// release knows the mail. It returns an *openError if the log can't be opened.
func (r *sessionRun) begin(ctx context.Context) error {
	mail, err := r.Lease.Mail(ctx, 0)
	if err != nil {
		return fmt.Errorf("fetch mail: %w", err)
	}
	soon := r.Lease.Claim().Attempts <= 1 // if there are only people's messages, the first write begins a turn
	items := readItems(mail)
	for _, it := range items {
		if it.unknownKind != nil {
			return it.unknownKind
		}
		soon = soon && it.isKind(bus.Said)
	}
	if err := r.open(ctx, soon); err != nil {
		return &openError{err}
	}
	r.announceReceived(items, true)
	r.receive(ctx, items)
	return nil
}

// open reads the session's log and looks up its agent. If soon is true, the run begins with an append.
func (r *sessionRun) open(ctx context.Context, soon bool) error {
	claim := r.Lease.Claim()
	run, err := r.Config.SessionCache.Begin(ctx, r.Config.Store, claim.Key, claim.Fence, soon, r.Log)
	if err != nil {
		return err
	}
	r.cached, r.Journal = run, run.Journal
	r.Config.Observer.SessionOpened(run.FromMemory)
	agent, err := r.Config.Agents(ctx, claim.Key)
	if err != nil {
		return err
	}
	r.Agent, r.agentLookedUpAt, r.MessageRoom = agent, time.Now(), agent.ContextTokens
	return nil
}

// receiveMore receives the mail that arrives later. It cancels the run if the lease is lost.
func (r *sessionRun) receiveMore(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		mail, err := r.Lease.Mail(ctx, r.inbox.newestSeq())
		if err != nil && ctx.Err() == nil {
			cancel(err)
		}
		if err != nil || len(mail) == 0 {
			return
		}
		items := readItems(mail)
		r.announceReceived(items, false)
		r.receive(ctx, items)
	}
}

// receive adds mail to the inbox, while a turn may be running. It carries out the commands that don't wait for the
// turn's end, and tells the senders of the others that they have to wait. A command that fails has to wait, too.
func (r *sessionRun) receive(ctx context.Context, items []*item) {
	r.inbox.intakeMu.Lock()
	defer r.inbox.intakeMu.Unlock()
	for _, it := range items {
		switch {
		case !it.isKind(bus.Command):
		case !runsAtOnce(it.in.Text):
			r.commands.announceWait(ctx, it.in)
		default:
			err := r.Journal.Confirm(ctx)
			if err == nil {
				err = r.commands.run(ctx, it)
			}
			it.handled = err == nil
			if err != nil && ctx.Err() == nil {
				r.Log.Warn("a command has to wait for the turn", slog.String("command", it.in.Text), slog.Any("error", err))
			}
		}
		r.inbox.add(it)
	}
}

// work resumes what was cut off, and then answers the mail in order. Once there is mail that only a newer
// release knows, work begins nothing more.
func (r *sessionRun) work(ctx context.Context) error {
	began := time.Now()
	if err := r.resume(ctx); err != nil {
		return err
	}
	for {
		if err := r.endStopped(ctx); err != nil { // a /stop is carried out when it arrives, and may be the only mail
			return err
		}
		it, ok := r.inbox.next()
		if ok && time.Since(began) > fairShareTime {
			return nil // the bus gives the rest to the next run
		}
		if !ok {
			if r.untitled == nil && r.proposeAfter == nil {
				return nil
			}
			if err := r.title(ctx); err != nil {
				return err
			}
			if err := r.propose(ctx); err != nil {
				return err
			}
			continue // more mail may have arrived in the meantime
		}
		if err := r.inbox.unknownKind(); err != nil {
			return err
		}
		select {
		case <-r.closing:
			return errShutdown
		default:
		}
		if err := r.handle(ctx, it); err != nil {
			return err
		}
		r.inbox.markHandled(it)
		r.noteProposable(it)
	}
}

// resume continues the turns of earlier holders until they end or wait.
func (r *sessionRun) resume(ctx context.Context) error {
	for _, id := range journal.Unfinished(r.Journal.Current()) {
		t, err := r.Fold(id)
		if err != nil {
			return err
		}
		switch {
		case t.Parked:
			err = r.resumeParked(ctx, t)
		case t.Done == nil:
			err = r.resumeTurn(ctx, t)
		case r.isSurelyPublished(t):
			r.auditEnd(t, r.usageOf(t), true)
			spans.Record(r.Session, t)
			err = r.recordPublished(ctx, t, true)
		default: // an earlier holder may have been cut off before doing this and the next
			r.recordChanges(ctx, t.ID)
			r.auditEnd(t, r.usageOf(t), true)
			spans.Record(r.Session, t)
			r.showNewestStepAgain(t)
			r.emitEnd(t)
			if err = r.publishTurn(ctx, t, true); err == nil {
				err = narratorOf(r).read(ctx, t.ID, true)
			}
			if err == nil {
				r.Log.Info("published the answer of a turn that had ended", slog.String("turn", t.ID))
			}
		}
		if err != nil && !errors.Is(err, errUnsendable) { // the turn's messages become dead letters when they are handled
			return err
		}
	}
	return nil
}

// resumeTurn resumes a turn that was cut off, or ends it if that has happened too often.
func (r *sessionRun) resumeTurn(ctx context.Context, t *turn.Turn) error {
	asker := r.shared.askers.New(r.Session)
	if t.Resumes >= maxResumes {
		if err := asker.TakeOver(ctx, t); err != nil {
			return err
		}
		asker.Reservations.Settle(ctx)
		r.showNewestStepAgain(t)
		// Its message becomes a dead letter when the messages before it are done.
		return r.finish(ctx, t, turn.Failed(turn.CodeGaveUp, textCutOff, t.Resumes))
	}
	if err := delayResume(ctx, r.closing, t.Resumes); err != nil {
		return err
	}
	release, err := r.turns.countResumed(ctx, t)
	if err != nil { // before the entry, so that an unreachable bus doesn't count as a cut-off
		return err
	}
	defer release()
	if !t.Suspended { // a suspended turn's holder has settled its reservations
		if err := asker.TakeOver(ctx, t); err != nil {
			return err
		}
	}
	r.Log.Info("resuming a turn", slog.String("turn", t.ID), slog.Int("resumes", t.Resumes+1))
	if err := r.Journal.Append(ctx, journal.NewEntry(t.ID, sessions.KindResumed, nil)); err != nil {
		return err
	}
	r.Emit(t, bus.Event{Type: bus.TurnStart, Causes: t.Causes}) // watchers may no longer know about the turn
	r.showNewestStepAgain(t)
	return r.runTurn(ctx, t, asker)
}

// resumeParked restores a turn that waits, without running it: if the turn's asks were not announced before its
// holder was cut off, it announces them, and if the turn was stopped, it ends the turn.
func (r *sessionRun) resumeParked(ctx context.Context, t *turn.Turn) error {
	switch {
	case t.Stopped:
		return r.finish(ctx, t, &turn.Ending{State: sessions.TurnCancelled})
	case t.Announced:
		return nil
	}
	r.showNewestStepAgain(t)
	return r.announce(ctx, t.ID)
}

// endStopped ends the waiting turns that were stopped.
func (r *sessionRun) endStopped(ctx context.Context) error {
	parked, err := r.parkedTurns()
	if err != nil {
		return err
	}
	for _, t := range parked {
		if !t.Stopped {
			continue
		}
		if err := r.finish(ctx, t, &turn.Ending{State: sessions.TurnCancelled}); err != nil && !errors.Is(err, errUnsendable) {
			return err
		}
	}
	return nil
}

// runTurn runs a turn with the tools that the agent has at this time, and has its answer read aloud if that is wanted.
func (r *sessionRun) runTurn(ctx context.Context, t *turn.Turn, asker *model.Asker) error {
	defer r.Journal.HideResults()
	defer asker.Reservations.Settle(ctx)
	run, err := r.newTurnRun(ctx, asker)
	if err != nil {
		return err
	}
	if err := run.run(ctx, t); err != nil {
		return err
	}
	r.noteFirstAnswer(t.ID)
	return narratorOf(r).read(ctx, t.ID, false)
}

// handle handles one message. If it returns nil, the result is in the log. If no bus will ever accept the
// answer, it returns a *buryError, because trying again would be pointless.
func (r *sessionRun) handle(ctx context.Context, it *item) error {
	handled, err := r.dispatch(ctx, it)
	if !handled && err == nil {
		err = r.answerMail(ctx)
	}
	if errors.Is(err, errUnsendable) || errors.Is(err, bus.ErrInvalid) {
		return &buryError{seq: it.seq, reason: "its answer can never be sent"}
	}
	return err
}

// dispatch handles a message according to its kind. It returns false if the message begins a turn. The caller
// has to do that, because otherwise dispatch's variables would stay on the stack as long as the turn lasts.
func (r *sessionRun) dispatch(ctx context.Context, it *item) (handled bool, err error) {
	if it.err != nil {
		return true, &buryError{seq: it.seq, reason: "it can't be read"}
	}
	known, isKnown := r.Journal.Find(it.in.ID)
	if isKnown || !it.isKind(bus.Said) { // otherwise the first write is the turn's beginning
		if err := r.Journal.Confirm(ctx); err != nil {
			return true, err
		}
	}
	switch it.in.Kind {
	case bus.Command:
		return true, r.commands.run(ctx, it)
	case bus.Decided:
		if asks.IsNodeWait(it.in.ID) {
			return true, r.handleNodeBack(ctx, &it.in)
		}
		return true, r.handleDecision(ctx, &it.in)
	case bus.TaskEnded:
		if it.in.Task.Awaited {
			return true, r.handleReport(ctx, &it.in)
		}
	case bus.Edited, bus.Deleted, bus.Reacted:
		return true, r.recordChange(ctx, &it.in)
	}
	if isKnown {
		showSaidByOthers(r.Session, it) // an earlier holder may have been cut off before doing this
		return true, r.republish(ctx, known.Turn, it)
	}
	if it.in.Kind == bus.Notice {
		return true, r.recordNotice(ctx, it)
	}
	if t, err := r.currentParked(); t != nil || err != nil {
		if err != nil {
			return true, err
		}
		return true, r.handleWhileWaiting(ctx, t, &it.in)
	}
	return false, nil
}

// recordNotice writes to the log what the system tells the session.
func (r *sessionRun) recordNotice(ctx context.Context, it *item) error {
	r.Point("notice:before")
	err := r.Journal.Append(ctx, noticeEntry(&it.in))
	if _, seen := errors.AsType[*sessions.SeenError](err); err != nil && !seen {
		return err
	}
	r.Point("notice")
	showSaidByOthers(r.Session, it)
	return nil
}

// answerMail runs a new turn for the first waiting message, together with what the same person has said
// directly after it.
func (r *sessionRun) answerMail(ctx context.Context) error {
	b, err := r.gatherMail(ctx)
	if err != nil || len(b.items) == 0 {
		return err
	}
	release, refusal, err := r.turns.countTurn(ctx, &b.items[0].in)
	if err != nil {
		return err
	}
	defer release()
	asker := r.shared.askers.New(r.Session)
	if refusal != nil {
		asker = nil
	}
	if b, err = r.beginTurn(ctx, b, asker); err != nil || len(b.items) == 0 {
		return err
	}
	t, err := r.announceBegun(ctx, b, asker, refusal)
	if err == nil && t != nil {
		err = r.runTurn(ctx, t, asker)
	}
	if err != nil {
		return err
	}
	r.inbox.markHandled(b.items...)
	return nil
}

// gatherMail returns the messages that the next turn answers. There are none if those that were waiting have
// been deleted or canceled.
func (r *sessionRun) gatherMail(ctx context.Context) (batch, error) {
	b, err := r.inbox.gather(ctx, r.closing, func(id string) bool { _, known := r.Journal.Find(id); return known })
	if err != nil {
		return b, err
	}
	if b, err = r.applyEdits(ctx, b); err != nil || len(b.items) == 0 {
		return b, err
	}
	if !r.inbox.isCancelled(b.last().seq) || b.items[0].in.Kind == bus.Tasked { // a task gets its report
		return b, nil
	}
	b, err = r.beginTurn(ctx, b, nil, journal.NewEntry(b.items[0].in.ID, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCancelled}))
	if err != nil || len(b.items) == 0 {
		return batch{}, err
	}
	r.inbox.markHandled(b.items...)
	t, err := r.Fold(b.items[0].in.ID)
	if err == nil {
		r.reportEnd(t)
	}
	return batch{}, err
}

// announceBegun tells watchers that a turn has begun, and returns the turn. If the turn is refused (then asker
// is nil) or canceled, announceBegun ends it and returns nil.
func (r *sessionRun) announceBegun(ctx context.Context, b batch, asker *model.Asker, refusal *turn.Ending) (*turn.Turn, error) {
	t, err := r.Fold(b.items[0].in.ID)
	if err != nil {
		return nil, err
	}
	if refusal == nil {
		r.logBeginning(t)
	}
	r.Emit(t, bus.Event{Type: bus.TurnStart, Causes: t.Causes})
	r.ShowFrom(t, 0)
	switch {
	case r.inbox.isCancelled(b.last().seq): // a /stop arrived while the beginning was written
		if asker != nil {
			asker.Reservations.Settle(ctx)
		}
		return nil, r.finish(ctx, t, &turn.Ending{State: sessions.TurnCancelled})
	case refusal != nil:
		return nil, r.finish(ctx, t, refusal)
	}
	return t, nil
}

// wasNotLastHolder reports whether a run ended with err because this process was not the last to work on the
// session, as it had assumed. Then nothing was done.
func (r *sessionRun) wasNotLastHolder(err error) bool {
	return errors.Is(err, sessions.ErrConflict) && r.Journal != nil && r.Journal.IsUnconfirmed()
}

// agentFreshFor is how long the result of an agent's look-up counts as current.
const agentFreshFor = 100 * time.Millisecond

// newTurnRun makes the run of a turn. The turn keeps the set of tools that it begins with; the session's next
// turn may have a different set. If the agent was looked up a moment ago, when the log was opened, its set is
// used.
func (r *sessionRun) newTurnRun(ctx context.Context, asker *model.Asker) (*turnRun, error) {
	granted := r.Agent.Tools
	if time.Since(r.agentLookedUpAt) > agentFreshFor {
		agent, err := r.Config.Agents(ctx, r.Key())
		if err != nil {
			return nil, err
		}
		granted = agent.Tools
	}
	runner := calls.NewRunner(r.Session, granted, r.showStaleApproval, r.shared.askers.Judging(r.Session))
	return &turnRun{lifecycle: r.lifecycle, inbox: r.inbox, stop: r.stop, calls: runner, asker: asker}, nil
}

// delayResume waits before a turn that was cut off before is resumed. A turn may crash every process that resumes it,
// along with everything else that runs there. So each resume but the first is delayed by a random time that grows with
// each interruption, which keeps such turns apart. A crash during the delay is not counted. When closing is closed,
// delayResume returns errShutdown.
func delayResume(ctx context.Context, closing <-chan struct{}, resumes int) error {
	if resumes == 0 {
		return nil
	}
	timer := time.NewTimer(rand.N(time.Duration(resumes*resumes) * secondResumeDelay))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-closing:
		return errShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sharedParts holds what all sessions of a process share.
type sharedParts struct {
	quota     *quota.Quota
	ratios    *estimate.Ratios
	askers    *model.Askers
	announced announcedMail
}
