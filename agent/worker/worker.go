// Package worker runs the turns of leased sessions: it claims the mailbox of a session, and answers the
// messages in it.
//
// It continues where the session's log ends: with the turn that was cut off, or with the next message. The
// files, in the order in which a message goes through them:
//
//	worker.go       claims sessions, and settles their leases, also after an error
//	run.go          sessionRun: one session under one lease; which turn continues
//	inbox.go        the mail that a run holds, and which of it one turn answers
//	turn_counter.go how many turns a person has
//	command.go      commander: /new, /stop, /status, /help, and the answers to asks
//	steps.go        turnRun: the steps of one turn, from the log to the turn's end
//	answers.go      how a waiting turn continues, and messages that arrive meanwhile
//	changes.go      how people's edits and deletions of earlier messages are applied
//	lifecycle.go    how a turn begins (C1), ends (C6) and is published (C7)
//	park.go         how a turn begins to wait for people, and who is asked
//	nodewait.go     how a turn waits for a node that is away
//	publish.go      how a session publishes a message, and records what it has changed
//	turnlog.go      what operators are told about turns
//	ends.go         why a run or a turn ends early
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/agent/estimate"
	"parley/agent/journal"
	"parley/agent/model"
	"parley/agent/quota"
	"parley/agent/route"
	"parley/agent/sessioncache"
	"parley/agent/task"
	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// A Worker leases sessions and answers the messages in them.
type Worker struct {
	cfg    agent.Config
	shared sharedParts
}

// New makes a Worker, which starts with Run.
func New(cfg agent.Config) *Worker {
	if cfg.Point == nil {
		cfg.Point = func(string) {}
	}
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	if cfg.SessionCache == nil {
		cfg.SessionCache = sessioncache.New(sessioncache.Bounds{})
	}
	return &Worker{cfg: cfg, shared: sharedParts{quota: quota.New(), ratios: estimate.New(), askers: model.NewAskers()}}
}

// Run claims sessions and works on them, each in a goroutine of its own, until ctx is done. Then it stops
// claiming, and gives running turns the time Drain to end. It cuts off those that have not ended, and releases
// their sessions without counting a failure. It returns nil after ctx has ended, and an error only if the bus
// was closed before that.
func (w *Worker) Run(ctx context.Context) error {
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	kept, keep := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	keeping.Go(func() { w.shared.askers.Keeper.Run(kept, w.cfg.Log) })
	defer keeping.Wait()
	defer keep()
	wait, err := bus.ClaimEach(ctx, w.cfg.Bus, bus.InboundTopic, w.cfg.MaxInFlight, func(lease bus.Lease) {
		w.serve(work, ctx.Done(), lease)
	})
	drained := time.AfterFunc(w.cfg.Drain, func() { cut(errShutdown) })
	defer drained.Stop()
	wait()
	w.cfg.SessionCache.WriteOwed(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("claim a session: %w", err)
	}
	return nil
}

// serve works on one leased session and settles its mailbox. Once closing is closed, it begins no more turns.
func (w *Worker) serve(ctx context.Context, closing <-chan struct{}, lease bus.Lease) {
	run := newSessionRun(&w.cfg, &w.shared, closing, lease)
	err := run.run(ctx)
	if run.wasNotLastHolder(err) {
		run = newSessionRun(&w.cfg, &w.shared, closing, lease) // now it reads the log
		err = run.run(ctx)
	}
	w.settle(ctx, run, err)
}

// settle settles the mailbox of a run that ended with err.
func (w *Worker) settle(ctx context.Context, run *sessionRun, err error) {
	end := bus.End{Done: run.inbox.handledUpTo()}
	if end.Done > 0 && end.Done == run.inbox.newestSeq() {
		w.shared.announced.forgetSession(run.Key())
	}
	switch {
	case err == nil:
		run.cached.End() // before the next run can begin
	case run.cached != nil:
		run.cached.Fail()
	}
	if err != nil {
		end = w.endAfter(ctx, run.Lease, run.Log, end, err)
	}
	// The work is over; settling must not be cut off with it.
	bus.RetrySettle(context.WithoutCancel(ctx), run.Lease, end, settleTimeout, func(err error) {
		run.Log.Warn("a session cannot be settled; trying again", slog.Any("error", err))
	})
	w.cfg.Point("settled")
}

// endAfter returns how to settle a session whose run ended early with err.
func (w *Worker) endAfter(ctx context.Context, lease bus.Lease, log *slog.Logger, end bus.End, err error) bus.End {
	claim := lease.Claim()
	var bury *buryError
	var unknown *journal.UnknownKindError
	var away *model.UnavailableError
	var taken *budget.SetAsideError
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
		end.Uncounted, end.After = true, away.RetryAfter
		log.Warn("session waits until a model answers again", slog.Duration("after", away.RetryAfter), slog.Time("until", away.GiveUpAt))
	case errors.As(err, &taken):
		end.Uncounted, end.After = true, taken.RetryAfter
		log.Info("session waits until a budget has something left", slog.Duration("after", taken.RetryAfter), slog.Time("until", taken.GiveUpAt))
	case errors.Is(err, errTooManyTurns):
		end.Uncounted, end.After = true, time.Second
	case errors.Is(err, bus.ErrFull):
		end.Uncounted, end.After = true, outboundRetry
	case errors.Is(err, sessions.ErrFenced):
		end.Uncounted, end.After = true, time.Second
		log.Warn("the store refuses the fence; trying again")
	case errors.Is(err, turn.ErrBusAway):
		end.Uncounted, end.After = true, outageRetry
		log.Warn("session waits until the bus is back", slog.Any("error", err))
	case errors.Is(err, model.ErrUnreserved): // a budget is unavailable, like a store that is away
		end.Uncounted, end.After = true, outageRetry
		log.Warn("session waits until a model's call can be paid for", slog.Any("error", err))
	case w.isStoreDown(ctx):
		end.Uncounted, end.After = true, outageRetry
		log.Warn("session waits until its store is back", slog.Any("error", err))
	case errors.Is(err, sessions.ErrInvalidKey): // the key will never be valid
		end = w.giveUp(ctx, lease, log, end, err)
	case claim.Attempts >= maxAttempts && w.retryOpening(ctx, lease, err):
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
	maxAttempts   = 10              // claims of a session whose runs keep failing with an error that isn't an outage
	outboundRetry = 5 * time.Second // for a session whose reply found its mailbox full
	// newerReleaseRetry is the delay for a session that contains something that only a newer release
	// understands.
	newerReleaseRetry = 5 * time.Second
	outageRetry       = 2 * time.Second // how long a session waits while the bus or its store is unavailable
	healthTimeout     = 5 * time.Second
	settleTimeout     = 30 * time.Second // limits one try to settle a session
)

// isStoreDown reports whether something that sessions need is unavailable now.
func (w *Worker) isStoreDown(ctx context.Context) bool {
	if w.cfg.Healthy == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return w.cfg.Healthy(ctx) != nil
}

// retryOpening tries once more to open a log before a message is given up, and reports whether it succeeded.
// The earlier claims may have failed together with their processes and not because of the log.
func (w *Worker) retryOpening(ctx context.Context, lease bus.Lease, err error) bool {
	if _, failed := errors.AsType[*openError](err); !failed {
		return false
	}
	return newSessionRun(&w.cfg, &w.shared, nil, lease).open(ctx, false) == nil
}

// giveUp turns the first message of a session that can't be worked on into a dead letter, and tells the sender. If the
// mail can't be read, or the sender can't be told, both are tried again later.
func (w *Worker) giveUp(ctx context.Context, lease bus.Lease, log *slog.Logger, end bus.End, cause error) bus.End {
	log.Error("session cannot be worked on; giving its first message up", slog.Any("error", cause))
	mail, err := lease.Mail(ctx, end.Done)
	if err != nil || len(mail) == 0 {
		end.After = time.Minute
		return end
	}
	end.Dead, end.Reason = mail[0].Seq, "the session can't be opened"
	if in, err := bus.DecodeInbound(mail[0].Body); err == nil && in.Kind == bus.Tasked && in.Task != nil && w.cfg.SubAgents != nil {
		r := task.Report{ID: in.Task.ID, State: sessions.TurnFailed, Text: textSubAgentBroken}
		if err := w.cfg.SubAgents.Report(ctx, r); err != nil {
			end.Dead, end.Reason, end.After = 0, "", outboundRetry
		}
	} else if err == nil && in.Kind != bus.Notice { // nobody expects an answer to a notice
		reply := bus.Outbound{
			ID: bus.DerivedID(in.ID, "#failed"), To: in.At, ReplyTo: route.Of(in).ReplyTo, At: time.Now(),
			Text: failedText(cause),
		}
		if err := publish(ctx, w.cfg.Bus, reply); err != nil && !errors.Is(err, bus.ErrInvalid) {
			end.Dead, end.Reason, end.After = 0, "", outboundRetry
		}
	}
	return end
}

// failedText tells a sender why their message was given up with its session.
func failedText(cause error) string {
	if errors.Is(cause, sessions.ErrInvalidKey) {
		return textBadName
	}
	if _, failed := errors.AsType[*openError](cause); failed {
		return textNoHistory
	}
	return textKeptFailing
}

// noObserver is an Observer that does nothing.
type noObserver struct{}

func (noObserver) Turn(agent.EndedTurn)               {}
func (noObserver) Step()                              {}
func (noObserver) Tool(string, string, time.Duration) {}
func (noObserver) Batch(int, time.Duration)           {}
func (noObserver) AuditLost()                         {}
func (noObserver) Judged(string)                      {}
func (noObserver) ReadAloud(string)                   {}
func (noObserver) SessionOpened(bool)                 {}
func (noObserver) Compaction(string)                  {}
