package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"parley/agent/delegation"
	"parley/agent/journal"
	"parley/agent/quota"
	"parley/agent/route"
	"parley/agent/stream"
	"parley/agent/tally"
	"parley/agent/warm"
	"parley/bus"
	"parley/sessions"
)

// A Worker leases sessions and answers the messages in them.
type Worker struct {
	cfg   Config
	quota *quota.Quota
}

// New makes a Worker, which starts with Run.
func New(cfg Config) *Worker {
	if cfg.Point == nil {
		cfg.Point = func(string) {}
	}
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	if cfg.Warm == nil {
		cfg.Warm = warm.New(warm.Bounds{})
	}
	cfg.tally, cfg.streams = tally.New(), new(stream.Counter)
	return &Worker{cfg: cfg, quota: quota.New()}
}

// Run claims sessions and works on them until ctx is done, each in a goroutine of its
// own. Then it stops claiming, and gives running turns the time Drain to end. It cuts
// off those that have not ended, and releases their sessions without counting a failure.
// It returns nil after ctx has ended, and an error only if the bus was closed before.
func (w *Worker) Run(ctx context.Context) error {
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	wait, err := bus.ClaimEach(ctx, w.cfg.Bus, bus.InboundTopic, w.cfg.MaxInFlight, func(lease bus.Lease) {
		w.serve(work, ctx.Done(), lease)
	})
	drained := time.AfterFunc(w.cfg.Drain, func() { cut(errShutdown) })
	defer drained.Stop()
	wait()
	w.cfg.Warm.PayAll(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("claim a session: %w", err)
	}
	return nil
}

// serve works on one leased session and settles its mailbox. Once closing is closed, it
// begins no further turn.
func (w *Worker) serve(ctx context.Context, closing <-chan struct{}, lease bus.Lease) {
	run := newSessionRun(&w.cfg, w.quota, closing, lease)
	err := run.run(ctx)
	if run.assumedWrongly(err) {
		run = newSessionRun(&w.cfg, w.quota, closing, lease) // which reads the log
		err = run.run(ctx)
	}
	w.settle(ctx, run, err)
}

// settle settles the mailbox of a run that has ended, with this error.
func (w *Worker) settle(ctx context.Context, run *sessionRun, err error) {
	end := bus.End{Done: run.inbox.handledUpTo()}
	switch {
	case err == nil:
		run.warm.End() // before the next run can begin
	case run.warm != nil:
		run.warm.Fail()
	}
	if err != nil {
		end = w.endAfter(ctx, run.lease, run.slog, end, err)
	}
	// The work is over; settling must not be cut off with it.
	bus.RetrySettle(context.WithoutCancel(ctx), run.lease, end, settleTry, func(err error) {
		run.slog.Warn("a session cannot be settled; trying again", slog.Any("error", err))
	})
	w.cfg.Point("settled")
}

// loggerFor returns a logger that names a session.
func loggerFor(log *slog.Logger, claim bus.Claim) *slog.Logger {
	return log.With(slog.String("session", claim.Key), slog.Int64("fence", claim.Fence))
}

// assumedWrongly reports whether a run has ended with err because this process had not worked on
// the session last, contrary to what it assumed. Nothing was done then.
func (r *sessionRun) assumedWrongly(err error) bool {
	return errors.Is(err, sessions.ErrConflict) && r.journal != nil && r.journal.IsAssumed()
}

// endAfter returns how a session is settled whose run ended early with an error.
func (w *Worker) endAfter(ctx context.Context, lease bus.Lease, log *slog.Logger, end bus.End, err error) bus.End {
	claim := lease.Claim()
	var bury *buryError
	var unknown *journal.UnknownKindError
	var away *modelUnavailable
	switch {
	case errors.As(err, &unknown):
		end.Uncounted, end.After = true, newerReleaseRetry
		log.Warn("session is left to a newer release", slog.String("what", unknown.What), slog.String("id", unknown.ID), slog.String("kind", unknown.ShortKind()))
	case errors.As(err, &bury):
		end.Dead, end.Reason = bury.seq, bury.reason
		log.Warn("message given up", slog.Int64("seq", bury.seq), slog.String("reason", bury.reason))
	case errors.Is(err, errShutdown), errors.Is(err, bus.ErrFenced), errors.Is(err, bus.ErrClosed):
		end.Uncounted = true
	case errors.As(err, &away):
		end.Uncounted, end.After = true, away.after
		log.Warn("session waits until a model answers again", slog.Duration("after", away.after), slog.Time("until", away.until))
	case errors.Is(err, errLater):
		end.Uncounted, end.After = true, time.Second
	case errors.Is(err, bus.ErrFull):
		end.Uncounted, end.After = true, outboundRetry
	case errors.Is(err, sessions.ErrFenced):
		end.Uncounted, end.After = true, time.Second
		log.Warn("the store refuses the fence; trying again")
	case errors.Is(err, errBusAway):
		end.Uncounted, end.After = true, outage
		log.Warn("session waits until the bus is back", slog.Any("error", err))
	case errors.Is(err, errUnreserved): // by a budget that is away like a store
		end.Uncounted, end.After = true, outage
		log.Warn("session waits until a model's call can be paid for", slog.Any("error", err))
	case w.isStoreAway(ctx):
		end.Uncounted, end.After = true, outage
		log.Warn("session waits until its store is back", slog.Any("error", err))
	case errors.Is(err, sessions.ErrInvalidKey): // the key will never be valid
		end = w.giveUp(ctx, lease, log, end, err)
	case claim.Attempts >= maxAttempts && w.opensOnRetry(ctx, lease, err):
		end.After = time.Second
	case claim.Attempts >= maxAttempts:
		end = w.giveUp(ctx, lease, log, end, err)
	default:
		end.After = min(time.Second<<min(claim.Attempts, 6), time.Minute)
		log.Error("session failed; trying again", slog.Any("error", err), slog.Int("attempts", claim.Attempts))
	}
	return end
}

const (
	maxAttempts   = 10              // claims of a session whose log cannot be opened
	outboundRetry = 5 * time.Second // of a session whose reply finds its mailbox full
	// newerReleaseRetry is the delay for a session that holds something that only a newer
	// release knows.
	newerReleaseRetry = 5 * time.Second
	outage            = 2 * time.Second // how long a session waits while the bus or its store is away
	healthTimeout     = 5 * time.Second
	settleTry         = 30 * time.Second // bounds one try to settle a session
	// resumeDelay is the longest delay before a turn's second resume; the third waits up to four
	// times as long.
	resumeDelay = 3 * time.Second
)

// isStoreAway reports whether something that sessions need is unavailable now.
func (w *Worker) isStoreAway(ctx context.Context) bool {
	if w.cfg.Healthy == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return w.cfg.Healthy(ctx) != nil
}

// opensOnRetry tries once more to open a log, before a message is given up, and reports
// whether that worked. The earlier claims may have failed with their processes and not
// because of the log.
func (w *Worker) opensOnRetry(ctx context.Context, lease bus.Lease, err error) bool {
	if _, failed := errors.AsType[*openError](err); !failed {
		return false
	}
	return newSessionRun(&w.cfg, w.quota, nil, lease).open(ctx, false) == nil
}

// giveUp makes a dead letter of the first message of a session that cannot be worked on,
// and tells its sender.
func (w *Worker) giveUp(ctx context.Context, lease bus.Lease, log *slog.Logger, end bus.End, cause error) bus.End {
	log.Error("session cannot be worked on; giving its first message up", slog.Any("error", cause))
	mail, err := lease.Mail(ctx, end.Done)
	if err != nil || len(mail) == 0 {
		end.After = time.Minute
		return end
	}
	end.Dead, end.Reason = mail[0].Seq, "the session cannot be worked on"
	if in, err := bus.DecodeInbound(mail[0].Body); err == nil && in.Kind == bus.Tasked && in.Task != nil && w.cfg.Tasks != nil {
		r := delegation.Report{ID: in.Task.ID, State: sessions.TurnFailed, Text: "The sub-agent's session cannot be worked on. The server's log says why."}
		if err := w.cfg.Tasks.Report(ctx, r); err != nil {
			end.Dead, end.Reason, end.After = 0, "", outboundRetry
		}
	} else if err == nil {
		reply := bus.Outbound{
			ID: bus.DerivedID(in.ID, "#failed"), To: in.At, ReplyTo: route.Of(in).ReplyTo, At: time.Now(),
			Text: "I could not work on your message: this conversation's record cannot be used. The server's log says why.",
		}
		if errors.Is(cause, sessions.ErrInvalidKey) {
			reply.Text = "I could not take your message: no conversation can be kept under this name."
		}
		if err := publish(ctx, w.cfg.Bus, reply); err != nil && !errors.Is(err, bus.ErrInvalid) {
			end.Dead, end.Reason, end.After = 0, "", outboundRetry
		}
	}
	return end
}

// noObserver is an Observer that does nothing.
type noObserver struct{}

func (noObserver) Turn(string, time.Duration)         {}
func (noObserver) Step()                              {}
func (noObserver) Tool(string, string, time.Duration) {}
func (noObserver) Batch(int, time.Duration)           {}
func (noObserver) AuditLost()                         {}
func (noObserver) Compaction(string)                  {}

// countTurn counts a turn of a person as running until release is called. It returns
// errLater if the person has enough turns running, and a refusal, which ends the turn,
// if the person has begun enough turns in this hour or Admit refuses the message. These
// limits do not bind owners.
func (r *sessionRun) countTurn(ctx context.Context, in *bus.Inbound) (release func(), refusal *ending, err error) {
	account := in.From.Account // as the gate has just read it
	if account == "" && !in.From.Owner {
		if account, err = r.accountOf(ctx, in.From.ID); err != nil {
			return nil, nil, err
		}
	}
	r.payer = payer{in.From.ID, account}
	if in.Kind == bus.Tasked {
		return r.countTask(ctx, in)
	}
	if in.From.Owner {
		release, err = r.leaveCount(ctx)
		return release, nil, err
	}
	group, most := r.cfg.Limits().turnsOf(account, r.agent)
	release, again, err := r.quota.Begin(ctx, r.lease, group, in.ID, most)
	if err != nil {
		return nil, nil, countError(err)
	}
	if !again.IsZero() {
		refusal = failure("too_many_turns", "You have asked me %d times within the hour, which is the most that I may answer. Ask again from %s UTC on.",
			most.Hour, again.UTC().Format("15:04"))
	}
	if refusal != nil || r.cfg.Admit == nil {
		return release, refusal, nil
	}
	refused, err := r.cfg.Admit(ctx, *in)
	if err != nil {
		release()
		return nil, nil, fmt.Errorf("%w: %w", errBusAway, err)
	}
	if refused != nil {
		refusal = &ending{state: sessions.TurnFailed, code: refused.Code, text: refused.Text}
	}
	return release, refusal, nil
}

// countTask does for a task what countTurn does for other messages. It is no turn of the
// person for whom the sub-agent works: how many tasks there are is bounded where they are
// handed out.
func (r *sessionRun) countTask(ctx context.Context, in *bus.Inbound) (release func(), refusal *ending, err error) {
	wanted, err := r.cfg.Tasks.Begin(ctx, in.Task.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errBusAway, err)
	}
	if !wanted {
		refusal = &ending{state: sessions.TurnCancelled}
	}
	release, err = r.leaveCount(ctx)
	return release, refusal, err
}

// leaveCount counts nothing until another turn is counted. Turns of owners are not counted,
// nor are those of sub-agents, so that a person who waits for their reports is answered.
func (r *sessionRun) leaveCount(ctx context.Context) (release func(), err error) {
	return func() {}, countError(r.quota.Leave(ctx, r.lease))
}

// resumeCount counts a turn as running until release is called, whatever the limits say,
// unless it is one of those that are not counted. It looks up who pays for each turn, so that
// nothing else has to once the turn is resumed.
func (r *sessionRun) resumeCount(ctx context.Context, t *turn) (release func(), err error) {
	account, err := r.accountOf(ctx, t.person)
	if err != nil {
		return nil, err
	}
	r.payer = payer{t.person, account}
	if t.route.Owner || t.parent() != "" {
		return r.leaveCount(ctx)
	}
	group, _ := r.cfg.Limits().turnsOf(account, r.agent)
	release, err = r.quota.Resume(ctx, r.lease, group)
	return release, countError(err)
}

// delayResume waits before a turn is resumed that was cut off before. A turn may crash
// every process that resumes it, together with everything else that runs there.
// Therefore it is resumed after a random delay that grows with each interruption, which
// keeps such turns apart. Dying during the delay is not counted. When closing is closed,
// delayResume returns errShutdown.
func delayResume(ctx context.Context, closing <-chan struct{}, resumes int) error {
	if resumes == 0 {
		return nil
	}
	timer := time.NewTimer(rand.N(time.Duration(resumes*resumes) * resumeDelay))
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

// countError returns the error with which a run ends if a turn could not be counted.
func countError(err error) error {
	switch {
	case errors.Is(err, quota.ErrBusy):
		return errLater
	case err == nil, errors.Is(err, bus.ErrFenced):
		return err
	}
	return fmt.Errorf("%w: %w", errBusAway, err)
}

// agentFresh is how long an agent that was looked up counts as that of now.
const agentFresh = 100 * time.Millisecond

// newTurnRun makes the run of a turn. The turn keeps the set of tools that it begins
// with; the session's next turn may have another. A turn that begins right after the log was opened
// has that of the agent with which it was.
func (r *sessionRun) newTurnRun(ctx context.Context, model *asker) (*turnRun, error) {
	granted := r.agent.Tools
	if time.Since(r.agentFrom) > agentFresh {
		agent, err := r.cfg.Agents(ctx, r.key())
		if err != nil {
			return nil, err
		}
		granted = agent.Tools
	}
	return &turnRun{session: r.session, inbox: r.inbox, stop: r.stop, calls: newCallRunner(r.session, granted), model: model}, nil
}
