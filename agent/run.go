package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"parley/agent/audit"
	"parley/agent/journal"
	"parley/agent/quota"
	"parley/agent/tally"
	"parley/agent/warm"
	"parley/bus"
	"parley/sessions"
)

const (
	maxResumes = 3                // without a new block in between
	fairShare  = 30 * time.Second // after that, the bus gives the session's further mail to the next run
)

// A sessionRun is the work on one session under one lease.
type sessionRun struct {
	*session
	quota    *quota.Quota
	inbox    *inbox
	stop     *turnStop
	commands *commander
	closing  <-chan struct{} // closed when the process is to end
	warm     *warm.Run

	agentFrom time.Time // when session.agent was looked up
}

// newSessionRun makes a run of the leased session.
func newSessionRun(cfg *Config, q *quota.Quota, closing <-chan struct{}, lease bus.Lease) *sessionRun {
	s := &session{cfg: cfg, lease: lease, slog: loggerFor(cfg.Log, lease.Claim()), count: tally.Count{Tally: cfg.tally}}
	s.trail = audit.New(s.writeAudit)
	r := &sessionRun{session: s, quota: q, inbox: &inbox{}, stop: &turnStop{}, closing: closing}
	r.commands = &commander{session: s, inbox: r.inbox, stop: r.stop}
	return r
}

// run answers the session's mail. It returns why it stopped; the inbox says how far it came.
func (r *sessionRun) run(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.slog.Error("panic in a session", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer r.trail.Wait()
	defer cancel(nil)

	if err := r.begin(ctx); err != nil {
		return err
	}
	stop := r.lease.OnMail(func() { r.receiveMore(ctx, cancel) })
	defer stop()
	defer cancel(nil) // first: what is being received is of no use any more
	if err = r.work(ctx); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// begin opens the log, and receives the mail that came with the lease. It opens nothing if only
// a newer release knows the mail.
func (r *sessionRun) begin(ctx context.Context) error {
	mail, err := r.lease.Mail(ctx, 0)
	if err != nil {
		return fmt.Errorf("fetch mail: %w", err)
	}
	soon := r.lease.Claim().Attempts <= 1 // for nothing but what people say, a turn's beginning is written first
	items := readItems(mail)
	for _, it := range items {
		if it.unknown != nil {
			return it.unknown
		}
		soon = soon && it.isKind(bus.Said)
	}
	if err := r.open(ctx, soon); err != nil {
		return &openError{err}
	}
	r.receive(ctx, items)
	return nil
}

// open reads the session's log and finds its agent. If soon is true, the run begins with
// an append.
func (r *sessionRun) open(ctx context.Context, soon bool) error {
	claim := r.lease.Claim()
	run, err := r.cfg.Warm.Begin(ctx, r.cfg.Store, claim.Key, claim.Fence, soon, r.slog)
	if err != nil {
		return err
	}
	r.warm, r.journal = run, run.Journal
	agent, err := r.cfg.Agents(ctx, claim.Key)
	if err != nil {
		return err
	}
	r.agent, r.agentFrom, r.room = agent, time.Now(), agent.ContextTokens
	return nil
}

// receiveMore receives the mail that has come since. It cancels the run if the lease is lost.
func (r *sessionRun) receiveMore(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		mail, err := r.lease.Mail(ctx, r.inbox.newestSeq())
		if err != nil && ctx.Err() == nil {
			cancel(err)
		}
		if err != nil || len(mail) == 0 {
			return
		}
		r.receive(ctx, readItems(mail))
	}
}

// receive adds mail to the inbox. Commands that must not wait are carried out here,
// while a turn runs.
func (r *sessionRun) receive(ctx context.Context, items []*item) {
	r.inbox.taking.Lock()
	defer r.inbox.taking.Unlock()
	for _, it := range items {
		switch {
		case !it.isKind(bus.Command):
		case !runsAtOnce(it.in.Text):
			r.commands.announceWait(ctx, it.in)
		default:
			err := r.journal.Confirm(ctx)
			if err == nil {
				err = r.commands.run(ctx, it)
			}
			it.handled = err == nil
			if err != nil && ctx.Err() == nil {
				r.slog.Warn("a command has to wait for the turn", slog.String("command", it.in.Text), slog.Any("error", err))
			}
		}
		r.inbox.add(it)
	}
}

// work resumes what was cut off, and then answers the mail in order. Once there is mail
// that only a newer release knows, work begins nothing more.
func (r *sessionRun) work(ctx context.Context) error {
	began := time.Now()
	if err := r.resume(ctx); err != nil {
		return err
	}
	for {
		if err := r.endStopped(ctx); err != nil { // a /stop is carried out as it comes, and may be the only mail
			return err
		}
		it, ok := r.inbox.next()
		if !ok || time.Since(began) > fairShare {
			return nil // the bus gives the rest to the next run
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
	}
}

// resume brings the turns of earlier holders to their end, or to their waiting.
func (r *sessionRun) resume(ctx context.Context) error {
	for _, id := range journal.Unfinished(r.journal.Records()) {
		t, err := r.fold(id)
		if err != nil {
			return err
		}
		switch {
		case t.parked:
			err = r.resumeParked(ctx, t)
		case t.done == nil:
			err = r.resumeTurn(ctx, t)
		case r.isSurelyPublished(t):
			err = r.recordPublished(ctx, t, true)
		default:
			r.recordChanges(ctx, t.id)
			r.emitEnd(t) // the holder that was cut off may not have done it
			err = r.publishTurn(ctx, t, true)
		}
		if err != nil && !errors.Is(err, errUnsendable) { // the turn's messages become dead letters when their turn comes
			return err
		}
	}
	return nil
}

// resumeTurn resumes a turn that was cut off, or ends it if that happened too often.
func (r *sessionRun) resumeTurn(ctx context.Context, t *turn) error {
	if t.resumes >= maxResumes {
		// Its message becomes a dead letter when those before it are done.
		return r.finish(ctx, t, failure(codeGaveUp, "I was cut off %d times while I worked on this and have given it up. Nothing that was done is undone; ask again if it still matters.", t.resumes))
	}
	if err := delayResume(ctx, r.closing, t.resumes); err != nil {
		return err
	}
	release, err := r.resumeCount(ctx, t)
	if err != nil { // before the entry: a bus that is away cuts nobody off
		return err
	}
	defer release()
	r.slog.Info("resuming a turn", slog.String("turn", t.id), slog.Int("resumes", t.resumes+1))
	if err := r.journal.Append(ctx, journal.NewEntry(t.id, sessions.KindResumed, nil)); err != nil {
		return err
	}
	r.emit(t, bus.Event{Type: bus.TurnStart, Causes: t.causes}) // watchers may have forgotten the turn
	return r.runTurn(ctx, t, newAsker(r.session))
}

// resumeParked continues with a turn that waits, without running it: if its asks were
// not announced before its holder was cut off, it announces them, and if the turn was
// stopped, it ends it.
func (r *sessionRun) resumeParked(ctx context.Context, t *turn) error {
	switch {
	case t.stopped:
		return r.finish(ctx, t, &ending{state: sessions.TurnCancelled})
	case t.announced:
		return nil
	}
	return r.announce(ctx, t.id)
}

// endStopped ends the waiting turns that were stopped.
func (r *sessionRun) endStopped(ctx context.Context) error {
	parked, err := r.parkedTurns()
	if err != nil {
		return err
	}
	for _, t := range parked {
		if !t.stopped {
			continue
		}
		if err := r.finish(ctx, t, &ending{state: sessions.TurnCancelled}); err != nil && !errors.Is(err, errUnsendable) {
			return err
		}
	}
	return nil
}

// runTurn runs a turn with the tools that the agent has as it begins.
func (r *sessionRun) runTurn(ctx context.Context, t *turn, model *asker) error {
	defer r.journal.HideResults()
	defer model.purse.Settle(ctx)
	run, err := r.newTurnRun(ctx, model)
	if err != nil {
		return err
	}
	return run.run(ctx, t)
}

// handle handles one message. If it returns nil, the result is in the log. If no bus
// will ever accept the answer, it returns a *buryError, because trying again would be in
// vain.
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

// dispatch handles a message by its kind. It returns false if the message begins a turn: that
// is for its caller, because what dispatch needs would stay on the stack as long as the turn
// lasts.
func (r *sessionRun) dispatch(ctx context.Context, it *item) (handled bool, err error) {
	if it.err != nil {
		return true, &buryError{seq: it.seq, reason: "it cannot be read"}
	}
	known, isKnown := r.journal.Find(it.in.ID)
	if isKnown || !it.isKind(bus.Said) { // else the turn's beginning comes first
		if err := r.journal.Confirm(ctx); err != nil {
			return true, err
		}
	}
	switch it.in.Kind {
	case bus.Command:
		return true, r.commands.run(ctx, it)
	case bus.Decided:
		return true, r.handleDecision(ctx, &it.in)
	case bus.TaskEnded:
		if it.in.Task.Awaited {
			return true, r.handleReport(ctx, &it.in)
		}
	case bus.Edited, bus.Deleted, bus.Reacted:
		return true, r.recordNews(ctx, &it.in)
	}
	if isKnown {
		return true, r.republish(ctx, known.Turn, it)
	}
	if it.in.Kind == bus.Notice {
		err := r.journal.Append(ctx, noticeEntry(&it.in))
		if _, seen := errors.AsType[*sessions.SeenError](err); seen {
			return true, nil
		}
		return true, err
	}
	if t, err := r.currentParked(); t != nil || err != nil {
		if err != nil {
			return true, err
		}
		return true, r.handleMeanwhile(ctx, t, &it.in)
	}
	return false, nil
}

// answerMail runs a new turn for the first message that waits, together with what the
// same person has said directly after it.
func (r *sessionRun) answerMail(ctx context.Context) error {
	b, err := r.gatherMail(ctx)
	if err != nil || len(b.items) == 0 {
		return err
	}
	release, refusal, err := r.countTurn(ctx, &b.items[0].in)
	if err != nil {
		return err
	}
	defer release()
	model := newAsker(r.session)
	if refusal != nil {
		model = nil
	}
	if b, err = r.beginTurn(ctx, b, model); err != nil || len(b.items) == 0 {
		return err
	}
	t, err := r.announceBegun(ctx, b, model, refusal)
	if err == nil && t != nil {
		err = r.runTurn(ctx, t, model)
	}
	if err != nil {
		return err
	}
	r.inbox.markHandled(b.items...)
	return nil
}

// gatherMail returns the messages that the next turn answers. There are none if those that wait
// were deleted or cancelled.
func (r *sessionRun) gatherMail(ctx context.Context) (batch, error) {
	b, err := r.inbox.gather(ctx, r.closing, func(id string) bool { _, known := r.journal.Find(id); return known })
	if err != nil {
		return b, err
	}
	if b, err = r.applyNews(ctx, b); err != nil || len(b.items) == 0 {
		return b, err
	}
	if !r.inbox.isCancelled(b.last().seq) || b.items[0].in.Kind == bus.Tasked { // a task gets its report
		return b, nil
	}
	b, err = r.beginTurn(ctx, b, nil, journal.NewEntry(b.items[0].in.ID, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCancelled}))
	if err == nil {
		r.inbox.markHandled(b.items...)
	}
	return batch{}, err
}

// announceBegun tells watchers that a turn has begun, and returns it. If the turn is refused,
// and model nil, or if it is cancelled, announceBegun ends it and returns nil.
func (r *sessionRun) announceBegun(ctx context.Context, b batch, model *asker, refusal *ending) (*turn, error) {
	t, err := r.fold(b.items[0].in.ID)
	if err != nil {
		return nil, err
	}
	r.emit(t, bus.Event{Type: bus.TurnStart, Causes: t.causes})
	switch {
	case r.inbox.isCancelled(b.last().seq): // a /stop came while the beginning was written
		if model != nil {
			model.purse.Settle(ctx)
		}
		return nil, r.finish(ctx, t, &ending{state: sessions.TurnCancelled})
	case refusal != nil:
		return nil, r.finish(ctx, t, refusal)
	}
	return t, nil
}
