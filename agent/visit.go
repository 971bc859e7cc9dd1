package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions"
)

// A visit is the work on one session under one lease.
type visit struct {
	w     *Worker
	lease bus.Lease
	slog  *slog.Logger
	agent Agent
	j     *journal
	in    *inbox
	purse purse // of the turn that runs

	closing <-chan struct{} // closed when the process is to end

	mu   sync.Mutex
	stop context.CancelCauseFunc // ends the turn that runs; nil while none does
}

// visit answers what is in a session's mailbox, and says how far it has come
// and what kept it from the end.
func (w *Worker) visit(ctx context.Context, closing <-chan struct{}, lease bus.Lease, log *slog.Logger) (end bus.End, err error) {
	v := &visit{w: w, lease: lease, slog: log, in: newInbox(), closing: closing}
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a session", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", p)
		}
		end.Done = v.in.done()
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)

	mail, err := lease.Mail(ctx, 0)
	if err != nil {
		return end, fmt.Errorf("fetch mail: %w", err)
	}
	for _, m := range mail {
		if foreign := read(m).foreign; foreign != nil {
			return end, foreign
		}
	}
	if err := v.open(ctx); err != nil {
		return end, &openError{err}
	}
	v.receive(ctx, mail)
	watching.Go(func() { v.watch(ctx, cancel) })
	if err := v.work(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return end, err
	}
	return end, nil
}

func (v *visit) open(ctx context.Context) error {
	claim := v.lease.Claim()
	log, err := v.w.cfg.Store.Open(ctx, claim.Key, claim.Fence)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if v.j, err = openJournal(log, v.slog); err != nil {
		return err
	}
	name := agentOf(claim.Key)
	agent, ok := v.w.cfg.Agents(name)
	if !ok {
		return fmt.Errorf("no agent is named %q in the configuration", name)
	}
	v.agent = agent
	return nil
}

// watch takes in mail while the visit lasts, and ends it when the lease is lost.
func (v *visit) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	for {
		mail, err := v.lease.Mail(ctx, v.in.last())
		if err != nil {
			if ctx.Err() == nil {
				cancel(err)
			}
			return
		}
		v.receive(ctx, mail)
	}
}

// receive adds mail to the inbox. Commands that cannot wait are carried out
// here, beside the turn.
func (v *visit) receive(ctx context.Context, mail []bus.Message) {
	for _, m := range mail {
		it := read(m)
		if it.speaks(bus.Command) && !bypasses(it.in.Text) && v.busy() {
			v.promise(ctx, it.in)
		}
		if it.speaks(bus.Command) && bypasses(it.in.Text) {
			err := v.command(ctx, it)
			it.handled = err == nil
			if err != nil && ctx.Err() == nil {
				v.slog.Warn("a command has to wait for the turn", slog.String("command", it.in.Text), slog.Any("error", err))
			}
		}
		v.in.add(it)
	}
}

// work goes on with what was cut off and then answers the mail in its order. Once
// there is mail that only a newer release knows, nothing more is begun.
func (v *visit) work(ctx context.Context) error {
	began := time.Now()
	if err := v.resume(ctx); err != nil {
		return err
	}
	for {
		it, ok := v.in.first()
		if !ok || time.Since(began) > fairShare {
			return nil // the bus gives the rest to the next visit
		}
		if err := v.in.foreign(); err != nil {
			return err
		}
		select {
		case <-v.closing:
			return errShutdown
		default:
		}
		if err := v.handle(ctx, it); err != nil {
			return err
		}
		v.in.handled(it)
	}
}

// resume ends what earlier holders have begun.
func (v *visit) resume(ctx context.Context) error {
	for _, id := range unfinished(v.j.all()) {
		t, err := fold(id, v.j.all())
		if err != nil {
			return err
		}
		if t.done == nil {
			err = v.resumeTurn(ctx, t)
		} else {
			v.emitEnd(t) // whoever was cut off may not have come to it
			err = v.publish(ctx, t)
		}
		if err != nil && !errors.Is(err, errUnsendable) { // its messages are buried when they are met
			return err
		}
	}
	return nil
}

func (v *visit) resumeTurn(ctx context.Context, t *turn) error {
	if t.resumes >= maxResumes {
		// Its message is buried when those before it are done.
		return v.finish(ctx, t, failure(codeGaveUp, "I was cut off %d times while I worked on this and have given it up. Nothing that was done is undone; ask again if it still matters.", t.resumes))
	}
	if err := v.spread(ctx, t.resumes); err != nil {
		return err
	}
	v.slog.Info("resuming a turn", slog.String("turn", t.id), slog.Int("resumes", t.resumes+1))
	if err := v.j.append(ctx, entry(t.id, sessions.KindResumed, nil)); err != nil {
		return err
	}
	release := v.w.quota.resume(t.person)
	defer release()
	v.emit(t, bus.Event{Type: bus.TurnStart, Causes: t.causes}) // who watches may have forgotten it
	return v.run(ctx, t)
}

// spread waits before a turn is resumed that was cut off before. One turn may be
// what ends each process that works on it, and with it whatever else that works
// on; so they go on one by one, at random, the later the more often they were cut
// off. Who ends with the process while it waits is not counted.
func (v *visit) spread(ctx context.Context, resumes int) error {
	if resumes == 0 {
		return nil
	}
	timer := time.NewTimer(rand.N(time.Duration(resumes*resumes) * resumeSpread))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-v.closing:
		return errShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// handle does what one message asks for. Nil means that the log knows of it. One
// whose answer no bus will ever take is buried: to try again would be in vain.
func (v *visit) handle(ctx context.Context, it item) error {
	err := v.take(ctx, it)
	if errors.Is(err, errUnsendable) || errors.Is(err, bus.ErrInvalid) {
		return &buryError{seq: it.seq, reason: "its answer can never be sent"}
	}
	return err
}

func (v *visit) take(ctx context.Context, it item) error {
	if it.err != nil {
		return &buryError{seq: it.seq, reason: "it cannot be read"}
	}
	if it.in.Kind == bus.Command {
		return v.command(ctx, it)
	}
	if known, ok := v.j.knows(it.in.ID); ok {
		return v.repeat(ctx, known.Turn, it)
	}
	if it.in.Kind == bus.Notice {
		err := v.j.append(ctx, noticed(it.in))
		if _, seen := errors.AsType[*sessions.SeenError](err); seen {
			return nil
		}
		return err
	}
	return v.answer(ctx)
}

// repeat publishes once more what a turn has said whose message came again: the
// bus may have lost what it was given (a restored backup, another bus). The ids
// are the same, so what has arrived arrives once. The messages of a turn that was
// given up are buried.
func (v *visit) repeat(ctx context.Context, id string, it item) error {
	t, err := fold(id, v.j.all())
	if err != nil {
		return err
	}
	if t.done == nil {
		return nil
	}
	if t.unsent {
		return errUnsendable
	}
	if err := v.say(ctx, t); err != nil {
		return err
	}
	if t.givenUp {
		return &buryError{seq: it.seq, reason: "the turn was cut off too often"}
	}
	return nil
}

// said is the user block of a message.
func said(turn string, in bus.Inbound) sessions.Entry {
	e := entry(turn, sessions.KindUser, sessions.User{Name: in.From.Name, Text: in.Text, Sent: in.SentAt, Quotes: quotes(in)})
	e.Cause, e.Person = in.ID, in.From.ID
	return e
}

// noticed is the entry of a notice, which belongs to no turn.
func noticed(in bus.Inbound) sessions.Entry {
	n := sessions.Notice{Code: noticeDelivery, Text: in.Text, Quotes: quotes(in)}
	told := len(in.Quotes) > 0 && in.Quotes[0].Kind == bus.Told
	if told {
		n.Code = noticeTold
	}
	e := entry(in.ID, sessions.KindNotice, n)
	e.Cause = in.ID
	if told {
		e.Person = in.Quotes[0].From.ID // whose words they are, so that they are forgotten with them
	}
	return e
}

// quotes is what a message carries of words that its sender did not write in it.
func quotes(in bus.Inbound) []sessions.Quote {
	var all []sessions.Quote
	for _, q := range in.Quotes {
		all = append(all, sessions.Quote{Kind: q.Kind, Person: q.From.ID, Name: q.From.Name, Chat: q.Chat, At: q.At, Text: q.Text})
	}
	return all
}

// run goes through a turn's steps to its end, and publishes what it says.
func (v *visit) run(ctx context.Context, t *turn) error {
	tctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	v.setStop(stop)
	defer v.setStop(nil)
	tctx, cancel := context.WithTimeoutCause(tctx, maxTurnTime, errTooLong)
	defer cancel()
	v.purse = purse{}
	defer func() { v.purse.settle(ctx, v) }()

	err := v.loop(tctx, t.id)
	if err == nil {
		t, err = fold(t.id, v.j.all())
		if err != nil {
			return err
		}
		v.ended(t)
		return v.publish(ctx, t)
	}
	end, ends := errors.AsType[*ending](err)
	switch cause := context.Cause(tctx); {
	case errors.Is(cause, errStopped) || errors.Is(err, errStopped):
		end, ends = &ending{state: sessions.TurnCancelled}, true
	case errors.Is(cause, errTooLong):
		end, ends = failure("timeout", "I have worked on this for %s, the most a turn may take, and stopped.", maxTurnTime), true
	case errors.Is(cause, errShutdown):
		// Written so that a restart in good order is not counted as a crash.
		note, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := v.j.append(note, entry(t.id, sessions.KindSuspended, nil)); err != nil {
			v.slog.Warn("noting the suspension failed", slog.Any("error", err))
		}
		return errShutdown
	}
	if !ends {
		return err
	}
	return v.finish(ctx, t, end)
}

func (v *visit) setStop(stop context.CancelCauseFunc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stop = stop
}

// stopTurn ends the turn that runs, and tells whether one did.
func (v *visit) stopTurn() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stop == nil {
		return false
	}
	v.stop(errStopped)
	return true
}
