// Package waits tells sessions whose turns wait for nodes that the nodes are back.
//
// A wait is a row in the store, which is written before the session is released. Whatever process then finds that the node is
// here or was removed, or that the time has come, sends the session mail under the wait's id; the bus drops a repetition. The
// row stays until the session says that it knows. So any process may die at any time.
package waits

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions"
)

// A Table stores which turns wait for nodes that are away.
type Table interface {
	// OpenWait records a wait unless it is known. It returns sessions.ErrNotFound if the session does not exist.
	OpenWait(ctx context.Context, w sessions.NodeWait) error
	// CloseWait removes a wait.
	CloseWait(ctx context.Context, id string) error
	// DueWaits returns waits that are over: their time has come, or their node is here or was removed. It leaves out those
	// whose sessions were sent mail at the time woken or later, and returns at most so many for each reason. Next is when the
	// time of another one comes; zero if there is none.
	DueWaits(ctx context.Context, now, woken time.Time, most int) (due []sessions.NodeWait, next time.Time, err error)
	// NoteWoken records that a session was sent mail about a wait.
	NoteWoken(ctx context.Context, id string, now time.Time) error
}

// Waits are the waits of a fleet as one process looks after them.
type Waits struct {
	table Table
	bus   bus.Bus
	point func(name string)
	log   *slog.Logger
	due   chan struct{} // has an element if a wait may be over
}

// New makes the Waits. Point is called at each step after which a test may kill the process; it may be nil.
func New(t Table, b bus.Bus, point func(string), log *slog.Logger) *Waits {
	if point == nil {
		point = func(string) {}
	}
	return &Waits{table: t, bus: b, point: point, log: log, due: make(chan struct{}, 1)}
}

const (
	lookEvery   = 20 * time.Second // how often it is looked for waits that are over, in case a process has died that knew of one
	wakeAgain   = time.Minute      // a session that was sent mail about a wait gets it again after that: the bus may have lost it
	atOnce      = 200              // how many waits are looked for at once
	lookAtLeast = 10 * time.Millisecond
	storeAgain  = time.Second // wait after the store or the bus has failed
)

// OpenWait records that a turn waits for a node. Then it looks whether the node has come back meanwhile.
func (w *Waits) OpenWait(ctx context.Context, wait sessions.NodeWait) error {
	if err := w.table.OpenWait(ctx, wait); err != nil {
		return err
	}
	w.Look()
	return nil
}

// CloseWait records that a turn waits no more.
func (w *Waits) CloseWait(ctx context.Context, id string) error { return w.table.CloseWait(ctx, id) }

// Look has Run look for waits that are over: a node is here, or was removed.
func (w *Waits) Look() {
	select {
	case w.due <- struct{}{}:
	default:
	}
}

// Run tells sessions that their waits are over, until ctx is done. Any number of processes may do so at the same time.
func (w *Waits) Run(ctx context.Context) error {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
		case <-w.due:
		}
		in, err := w.wake(ctx)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("sessions that wait for nodes cannot be told now; trying again", slog.Any("error", err))
			in = storeAgain
		}
		next.Reset(in)
	}
}

// wake tells the sessions whose waits are over. It returns after how long to look again.
func (w *Waits) wake(ctx context.Context) (time.Duration, error) {
	now := time.Now()
	due, next, err := w.table.DueWaits(ctx, now, now.Add(-wakeAgain), atOnce)
	if err != nil {
		return 0, err
	}
	for _, one := range due {
		told := bus.Inbound{ID: one.ID, Kind: bus.Decided, SentAt: now, Decision: &bus.Decision{State: bus.AskAnswered}}
		switch err := bus.PublishNotice(ctx, w.bus, one.Session, told); {
		case errors.Is(err, bus.ErrInvalid): // the session can never be told
			if err := w.table.CloseWait(ctx, one.ID); err != nil {
				return 0, err
			}
			continue
		case err != nil:
			return 0, err
		}
		w.point("node:woken")
		if err := w.table.NoteWoken(ctx, one.ID, now); err != nil {
			return 0, err
		}
		w.log.Info("a session that waits for a node is told", slog.String("node", one.Node), slog.String("session", one.Session))
	}
	in := lookEvery
	if len(due) >= atOnce {
		in = 0
	} else if !next.IsZero() {
		in = min(in, time.Until(next))
	}
	return max(in, lookAtLeast), nil
}
