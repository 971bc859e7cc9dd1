// Package device is the node's end of a link: it keeps a link to the server, and runs the calls that the server sends,
// each at most once.
//
// Calls continue while there is no link, and while the server restarts; at each link, their outcomes are sent until the
// server acknowledges them. A journal records which calls have begun. If this process dies in the middle of a call and
// the call comes again, it is not run again, unless it changes nothing: its outcome is nodes.Unknown.
//
// The files: device.go keeps the link; calls.go runs calls, and jobs.go runs jobs; outbox.go holds frames to be sent;
// journal.go records which calls have begun; offer.go describes the tools.
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

// Timing has the times that a node waits. Zero fields have defaults.
type Timing struct {
	MinDelay     time.Duration // before the first attempt to open a link again; 1 s
	MaxDelay     time.Duration // before any attempt; 30 s
	AfterRefusal time.Duration // before the next attempt once the server has refused this node; 5 min
	StopGrace    time.Duration // for the running calls to end when the node is stopped; 15 s
	Progress     time.Duration // between two reports of a call's progress; 500 ms
}

func (t Timing) withDefaults() Timing {
	for _, d := range []struct {
		set   *time.Duration
		usual time.Duration
	}{{&t.MinDelay, time.Second}, {&t.MaxDelay, 30 * time.Second}, {&t.AfterRefusal, 5 * time.Minute}, {&t.StopGrace, 15 * time.Second}, {&t.Progress, 500 * time.Millisecond}} {
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
	// Decide decides about each call before it runs; nil allows all. Nobody can be asked here, so a call that needs
	// approval is denied, too.
	Decide func(ctx context.Context, call tools.Call) tools.Verdict
	// NeedsApproval decides which calls run only if the server says that a person has approved them: those that it
	// doesn't allow by itself. If it is nil, no call needs that. The offer has the same rules, so that the server knows
	// them.
	NeedsApproval func(ctx context.Context, call tools.Call) tools.Verdict
	// Journal is the folder of the journal. No other process may use it at the same time.
	Journal string
	Log     *slog.Logger
	Timing  Timing
	// Point, if set, is called at each step after which a test may kill the process.
	Point func(name string)
}

// minLinkTime is how long a link must have lasted for the next one to be opened without much delay.
const minLinkTime = time.Minute

// ErrStuck is returned if calls did not end in time when the node was stopped. When they come again, their outcome is
// unknown.
var ErrStuck = errors.New("some calls did not end in time")

// Run serves the server until ctx ends. It opens a new link whenever there is none. It returns an error before ctx ends
// only if retrying is useless: if the journal cannot be used, or the server's address is wrong. When ctx ends, the
// running calls are ended, and their outcomes recorded.
func (n Node) Run(ctx context.Context) (err error) {
	n.Timing = n.Timing.withDefaults()
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
	if !r.wait(n.Timing.StopGrace) {
		err = errors.Join(err, ErrStuck)
	}
	return err
}

// keepLinked opens links, one after the other, and serves each until it ends.
func (n Node) keepLinked(ctx context.Context, r *runner) error {
	wait, away := n.Timing.MinDelay, false
	for ctx.Err() == nil {
		began := time.Now()
		conn, err := n.Link.Dial(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, wire.ErrAddress), errors.Is(err, wire.ErrNotHTTPS):
			return fmt.Errorf("link to %s: %w", n.Link.Server, err)
		case err == nil:
			n.Log.Info("linked to the server", slog.String("server", n.Link.Server), slog.String("node", n.Link.Name))
			err = r.serve(ctx, conn)
			if ctx.Err() != nil {
				return nil
			}
			n.Log.Warn("the link to the server is lost", slog.Any("error", err))
			if away = true; time.Since(began) >= minLinkTime {
				wait = n.Timing.MinDelay
			}
		case isRefused(err):
			if isRemoved(err) {
				r.endJobs()
			}
			n.Log.Error("the server does not accept this node", slog.String("server", n.Link.Server), slog.Any("error", err), slog.String("remedy", remedyFor(err)), slog.Duration("next", n.Timing.AfterRefusal))
			pause(ctx, n.Timing.AfterRefusal)
			continue
		default:
			level := slog.LevelWarn
			if away { // this has been logged
				level = slog.LevelDebug
			}
			n.Log.Log(ctx, level, "the server cannot be reached; trying again and again", slog.String("server", n.Link.Server), slog.Any("error", err))
			away = true
		}
		pause(ctx, wait)
		wait = min(2*wait, n.Timing.MaxDelay)
	}
	return nil
}

// isRefused reports whether the server would give the same answer if the node tried again soon.
func isRefused(err error) bool {
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok {
		return refusal.Reason != wire.ReasonBusy
	}
	return errors.Is(err, wire.ErrOtherServer)
}

// isRemoved reports whether an owner has removed this node, so that its jobs are no longer needed.
func isRemoved(err error) bool {
	refusal, ok := errors.AsType[*wire.Refusal](err)
	return ok && (refusal.Reason == wire.ReasonRevoked || refusal.Reason == wire.ReasonUnknown)
}

// remedyFor returns what people can do about a refusal.
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

// pause waits for about that long, with a random part, so that nodes that lose their links together do not come back
// together.
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
	r.outbox.queueUnacknowledged()
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
