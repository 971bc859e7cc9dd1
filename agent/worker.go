package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/sessions"
)

// A Worker leases sessions and answers what is said in them.
type Worker struct {
	cfg   Config
	quota *quota
}

// New makes a Worker; Run sets it to work.
func New(cfg Config) *Worker {
	if cfg.Point == nil {
		cfg.Point = func(string) {}
	}
	if cfg.Observer == nil {
		cfg.Observer = unobserved{}
	}
	return &Worker{cfg: cfg, quota: newQuota()}
}

// Run claims sessions and works on them until ctx is done, each in a goroutine
// of its own. Then it stops claiming, gives turns in flight Drain to end, cuts
// off those that have not, and gives their sessions back, uncounted. It returns
// nil after ctx has ended, and an error only if the bus was closed before.
func (w *Worker) Run(ctx context.Context) error {
	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	free := make(chan struct{}, w.cfg.MaxInFlight)
	var visits sync.WaitGroup
	err := w.claim(ctx, free, func(lease bus.Lease) {
		visits.Go(func() {
			defer func() { <-free }()
			w.serve(work, ctx.Done(), lease)
		})
	})
	drained := time.AfterFunc(w.cfg.Drain, func() { cut(errShutdown) })
	defer drained.Stop()
	visits.Wait()
	return err
}

func (w *Worker) claim(ctx context.Context, free chan struct{}, serve func(bus.Lease)) error {
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		lease, err := w.cfg.Bus.Claim(ctx, bus.InboundTopic)
		if err != nil {
			<-free
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("claim a session: %w", err)
		}
		serve(lease)
	}
}

// serve works on one leased session and settles it. Once closing is closed it
// begins no further turn.
func (w *Worker) serve(ctx context.Context, closing <-chan struct{}, lease bus.Lease) {
	claim := lease.Claim()
	log := w.cfg.Log.With(slog.String("session", claim.Key), slog.Int64("fence", claim.Fence))
	end, err := w.visit(ctx, closing, lease, log)
	if err != nil {
		end = w.judge(ctx, lease, log, end, err)
	}
	// The work is over, so the settling must not be cut off with it.
	settle(context.WithoutCancel(ctx), lease, log, end)
	w.cfg.Point("settled")
}

// settle ends a lease, however often that takes while it is ours: a bus that
// cannot write now would otherwise keep the session for somebody who has left.
func settle(ctx context.Context, lease bus.Lease, log *slog.Logger, end bus.End) {
	const most = 5 * time.Second
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, most) {
		err := lease.Settle(ctx, end)
		if err == nil || errors.Is(err, bus.ErrFenced) || errors.Is(err, bus.ErrClosed) {
			return
		}
		log.Warn("a session cannot be settled; trying again", slog.Any("error", err))
		select {
		case <-time.After(wait):
		case <-lease.Lost():
			return
		}
	}
}

// judge decides what becomes of a session whose visit ended early.
func (w *Worker) judge(ctx context.Context, lease bus.Lease, log *slog.Logger, end bus.End, err error) bus.End {
	claim := lease.Claim()
	var bury *buryError
	var foreign *foreignError
	switch {
	case errors.As(err, &foreign):
		end.Uncounted, end.After = true, foreignRetry
		log.Warn("session is left to a newer release", slog.String("what", foreign.what), slog.String("id", foreign.id), slog.String("kind", foreign.brief()))
	case errors.As(err, &bury):
		end.Dead, end.Reason = bury.seq, bury.reason
		log.Warn("message given up", slog.Int64("seq", bury.seq), slog.String("reason", bury.reason))
	case errors.Is(err, errShutdown), errors.Is(err, bus.ErrFenced), errors.Is(err, bus.ErrClosed):
		end.Uncounted = true
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
	case w.unwell(ctx):
		end.Uncounted, end.After = true, outage
		log.Warn("session waits until its store is back", slog.Any("error", err))
	case errors.Is(err, sessions.ErrInvalidKey): // nor will it ever be valid
		end = w.giveUp(ctx, lease, log, end, err)
	case claim.Attempts >= maxAttempts && w.opensNow(ctx, lease, log, err):
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
	outage        = 2 * time.Second // how long a session waits while the bus or its store is away
	healthTimeout = 5 * time.Second
)

func (w *Worker) unwell(ctx context.Context) bool {
	if w.cfg.Healthy == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return w.cfg.Healthy(ctx) != nil
}

// opensNow tells of a log that could not be opened that it can be now: most of
// the claims before may have ended with their process, and not for the log's sake.
func (w *Worker) opensNow(ctx context.Context, lease bus.Lease, log *slog.Logger, err error) bool {
	if _, failed := errors.AsType[*openError](err); !failed {
		return false
	}
	v := &visit{w: w, lease: lease, slog: log}
	return v.open(ctx) == nil
}

// giveUp buries the first message of a session that cannot be worked on, and
// tells its sender.
func (w *Worker) giveUp(ctx context.Context, lease bus.Lease, log *slog.Logger, end bus.End, cause error) bus.End {
	log.Error("session cannot be worked on; giving its first message up", slog.Any("error", cause))
	mail, err := lease.Mail(ctx, end.Done)
	if err != nil || len(mail) == 0 {
		end.After = time.Minute
		return end
	}
	end.Dead, end.Reason = mail[0].Seq, "the session cannot be worked on"
	if in, err := bus.DecodeInbound(mail[0].Body); err == nil {
		reply := bus.Outbound{
			ID: in.ID + "#failed", To: in.At, ReplyTo: routeOf(in).ReplyTo, At: time.Now(),
			Text: "I could not work on your message: this conversation's record cannot be used. The server's log says why.",
		}
		if errors.Is(cause, sessions.ErrInvalidKey) {
			reply.Text = "I could not take your message: no conversation can be kept under this name."
		}
		if err := w.publish(ctx, reply); err != nil && !errors.Is(err, bus.ErrInvalid) {
			end.Dead, end.Reason, end.After = 0, "", outboundRetry
		}
	}
	return end
}

// publish puts an outbound message on the bus.
func (w *Worker) publish(ctx context.Context, out bus.Outbound) error {
	body, err := out.Encode()
	if err != nil {
		return fmt.Errorf("encode outbound message: %w", err)
	}
	err = w.cfg.Bus.Publish(ctx, bus.OutboundTopic(out.To.Channel), bus.Message{ID: out.ID, Key: out.To.String(), Body: body})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bus.ErrFull), errors.Is(err, bus.ErrInvalid), errors.Is(err, bus.ErrClosed):
		return fmt.Errorf("publish outbound message %s: %w", out.ID, err)
	}
	return fmt.Errorf("publish outbound message %s: %w: %w", out.ID, errBusAway, err)
}

// Why a visit ends before its mail is through.
var (
	errShutdown = errors.New("shutting down")
	errLater    = errors.New("the person has enough turns at once")
	errStopped  = errors.New("stopped by /stop")
	errTooLong  = errors.New("the turn took too long")
	errBusAway  = errors.New("the bus is away")
	// errUnsendable says of a turn that it is over, and that what it says is
	// nothing that a bus takes.
	errUnsendable = errors.New("the answer can never be sent")
)

// openError says that a session's log cannot be opened or understood.
type openError struct{ err error }

// Error is the reason.
func (e *openError) Error() string { return e.err.Error() }

// Unwrap gives the reason.
func (e *openError) Unwrap() error { return e.err }

// foreignError says that a session holds something of a kind that this release
// does not know: a newer one does, so the session is left to it.
type foreignError struct{ what, id, kind string }

// Error names it and its kind.
func (e *foreignError) Error() string {
	return fmt.Sprintf("%s %s is of the unknown kind %q", e.what, e.id, e.brief())
}

// brief is the kind as a log shows it.
func (e *foreignError) brief() string {
	const most = 64 // bytes
	return strings.ToValidUTF8(e.kind[:min(len(e.kind), most)], "")
}

// buryError says that a message is to become a dead letter.
type buryError struct {
	seq    int64
	reason string
}

// Error is the reason.
func (e *buryError) Error() string { return e.reason }

type unobserved struct{}

func (unobserved) Turn(string, time.Duration)                    {}
func (unobserved) Step()                                         {}
func (unobserved) Tool(string, string, time.Duration)            {}
func (unobserved) Batch(int, time.Duration)                      {}
func (unobserved) Model(string, string, TokenUse, time.Duration) {}
