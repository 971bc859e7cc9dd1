// Package device is the node's end: it keeps a link to the server, and runs the calls that the server sends, each at most
// once.
//
// Calls go on while the link is away, and while the server restarts; their outcomes are sent at each link until the server
// acknowledges them. A journal says which calls were begun. A call that comes again after this process has died in the
// middle of it is not run again, unless it changes nothing: its outcome is nodes.Unknown.
//
// The files: device.go keeps the link; calls.go runs calls, jobs.go those that are jobs; outbox.go holds what is to be sent; journal.go records what
// was begun; offer.go describes the tools.
package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"parley/tools"
	"parley/tools/nodes/wire"
)

// Timing is how long a node waits. Zero means the usual time.
type Timing struct {
	Least    time.Duration // before the first attempt to open a link again; 1 s
	Most     time.Duration // before any attempt; 30 s
	Refused  time.Duration // before the next attempt once the server has refused this node; 5 min
	Stop     time.Duration // for the running calls to end when the node is stopped; 15 s
	Progress time.Duration // between two reports of a call's progress; 500 ms
}

func (t Timing) orUsual() Timing {
	for _, d := range []struct {
		set   *time.Duration
		usual time.Duration
	}{{&t.Least, time.Second}, {&t.Most, 30 * time.Second}, {&t.Refused, 5 * time.Minute}, {&t.Stop, 15 * time.Second}, {&t.Progress, 500 * time.Millisecond}} {
		if *d.set <= 0 {
			*d.set = d.usual
		}
	}
	return t
}

// A Node runs the calls of one server on this device.
type Node struct {
	Link  wire.Node // with its offer: see OfferOf
	Tools *tools.Set
	// Job is nodes.JobTool, which runs commands in the background; nil if this node runs none.
	Job tools.Tool
	// Decide decides about each call before it runs; nil allows all. Nobody can be asked here, so a call that would need
	// that is denied, too.
	Decide func(ctx context.Context, call tools.Call) tools.Verdict
	// Asks decides which calls run only if the server says that a person has approved them: those for which it doesn't allow it
	// by itself; nil means none. The offer has the same rules, so that the server knows.
	Asks func(ctx context.Context, call tools.Call) tools.Verdict
	// Journal is the folder of the journal. No other process may use it at the same time.
	Journal string
	Log     *slog.Logger
	Timing  Timing
	// Point, if set, is called at each step after which a test may kill the process.
	Point func(name string)
}

// minLasting is how long a link must have lasted for the next one to be opened without much delay.
const minLasting = time.Minute

// ErrStuck means that calls did not end in time when the node was stopped. When they come again, their outcome is unknown.
var ErrStuck = errors.New("some calls did not end in time")

// Run serves the server until ctx ends. It opens the link again and again, and returns an error before ctx ends only if
// that is of no use: the journal cannot be used, or the server's address is wrong. When ctx ends, the running calls are
// ended, and their outcomes recorded.
func (n Node) Run(ctx context.Context) (err error) {
	n.Timing = n.Timing.orUsual()
	if n.Point == nil {
		n.Point = func(string) {}
	}
	j, err := openJournal(n.Journal, time.Now)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r := newRunner(n, j)
	err = n.keepLinked(ctx, r)
	stop()
	if !r.wait(n.Timing.Stop) {
		err = errors.Join(err, ErrStuck)
	}
	return err
}

// keepLinked opens links, one after the other, and serves each until it ends.
func (n Node) keepLinked(ctx context.Context, r *runner) error {
	wait, away := n.Timing.Least, false
	for ctx.Err() == nil {
		began := time.Now()
		conn, err := n.Link.Dial(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, wire.ErrAddress), errors.Is(err, wire.ErrPlain):
			return fmt.Errorf("link to %s: %w", n.Link.Server, err)
		case err == nil:
			n.Log.Info("linked to the server", slog.String("server", n.Link.Server), slog.String("node", n.Link.Name))
			err = r.serve(ctx, conn)
			if ctx.Err() != nil {
				return nil
			}
			n.Log.Warn("the link to the server is lost", slog.Any("error", err))
			if away = true; time.Since(began) >= minLasting {
				wait = n.Timing.Least
			}
		case isRefused(err):
			if isRemoved(err) {
				r.endJobs()
			}
			n.Log.Error("the server does not accept this node", slog.String("server", n.Link.Server), slog.Any("error", err), slog.String("remedy", remedyFor(err)), slog.Duration("next", n.Timing.Refused))
			pause(ctx, n.Timing.Refused)
			continue
		default:
			level := slog.LevelWarn
			if away { // it has been said
				level = slog.LevelDebug
			}
			n.Log.Log(ctx, level, "the server cannot be reached; trying again and again", slog.String("server", n.Link.Server), slog.Any("error", err))
			away = true
		}
		pause(ctx, wait)
		wait = min(2*wait, n.Timing.Most)
	}
	return nil
}

// isRefused reports whether trying again soon would give the same answer.
func isRefused(err error) bool {
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok {
		return refusal.Reason != wire.ReasonBusy
	}
	return errors.Is(err, wire.ErrServer)
}

// isRemoved reports whether an owner has removed this node, so that nobody asks for its jobs anymore.
func isRemoved(err error) bool {
	refusal, ok := errors.AsType[*wire.Refusal](err)
	return ok && (refusal.Reason == wire.ReasonRevoked || refusal.Reason == wire.ReasonUnknown)
}

// remedyFor says what somebody can do about a refusal.
func remedyFor(err error) string {
	refusal, _ := errors.AsType[*wire.Refusal](err)
	switch {
	case refusal == nil:
		return textOtherServer
	case refusal.Reason == wire.ReasonRevoked, refusal.Reason == wire.ReasonUnknown:
		return textJoinAgain
	case refusal.Reason == wire.ReasonOffer:
		return textOfferLess
	}
	return textOtherKey
}

// pause waits for about that long, so that nodes that have lost their links together do not come back together.
func pause(ctx context.Context, about time.Duration) {
	timer := time.NewTimer(about/2 + rand.N(about))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// serve serves one link until it ends, and returns why it has ended.
func (r *runner) serve(ctx context.Context, conn *wire.Conn) error {
	r.outbox.fill()
	r.reportJobs()
	sending, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer conn.Close()
	defer stop()
	beside.Go(func() {
		defer conn.Close() // ends the reader
		if err := r.outbox.send(sending, conn, r.node.Timing.Progress); err != nil {
			r.node.Log.Debug("nothing more can be sent over the link", slog.Any("error", err))
		}
	})
	for {
		f, err := conn.Read(ctx)
		if err != nil {
			return err //nolint:wrapcheck // it says what it did
		}
		r.handle(ctx, f)
	}
}
