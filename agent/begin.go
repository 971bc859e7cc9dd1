package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/bus"
	"parley/sessions"
)

// How long a turn waits for pieces that its message announces.
const (
	pieceQuiet = 500 * time.Millisecond // without a further one
	pieceMost  = 2 * time.Second        // in all
)

// answer runs a new turn for what waits: the first message, and with it all that
// the same person has said in a row behind it.
func (v *visit) answer(ctx context.Context) error {
	r, err := v.gather(ctx)
	if err != nil {
		return err
	}
	if v.in.stoppedBefore(r.last().seq) {
		r, err = v.begin(ctx, r, entry(r.items[0].in.ID, sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCancelled}))
		if err == nil {
			v.in.handled(r.items...)
		}
		return err
	}
	release, refusal, err := v.w.quota.begin(r.items[0].in.From, v.w.cfg.Limits())
	if err != nil {
		return err
	}
	defer release()
	if r, err = v.begin(ctx, r); err != nil || len(r.items) == 0 {
		return err
	}
	if err := v.turn(ctx, r, refusal); err != nil {
		return err
	}
	v.in.handled(r.items...)
	return nil
}

// turn goes through a turn that has just begun.
func (v *visit) turn(ctx context.Context, r run, refusal *ending) error {
	t, err := fold(r.items[0].in.ID, v.j.all())
	if err != nil {
		return err
	}
	v.emit(t, bus.Event{Type: bus.TurnStart, Causes: t.causes})
	switch {
	case v.in.stoppedBefore(r.last().seq): // while it was being written
		return v.finish(ctx, t, &ending{state: sessions.TurnCancelled})
	case refusal != nil:
		return v.finish(ctx, t, refusal)
	}
	return v.run(ctx, t)
}

// gather waits for the pieces that are still to come, where the newest message
// announces some, and returns what the turn is to answer. What it waits for is on
// the bus, as what it has is: who dies here loses nothing, and the next waits anew.
func (v *visit) gather(ctx context.Context) (run, error) {
	began := time.Now()
	grown, size := began, 0
	for {
		r, changed := v.in.run(func(id string) bool { _, known := v.j.knows(id); return known })
		if len(r.items) > size {
			grown, size = time.Now(), len(r.items)
		}
		wait := min(time.Until(grown.Add(pieceQuiet)), time.Until(began.Add(pieceMost)))
		if r.ended || !r.last().in.More || wait <= 0 || v.in.stoppedBefore(r.last().seq) {
			return r, v.in.foreign()
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-v.closing:
			return r, errShutdown
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// begin is C1: the turn and what was said, and with more entries its end at once.
// It returns what the turn answers, nothing if the first message was answered long
// ago; what the store knows to be answered ends the run.
func (v *visit) begin(ctx context.Context, r run, more ...sessions.Entry) (run, error) {
	v.w.cfg.Point("c1:before")
	id := r.items[0].in.ID
	for len(r.items) > 0 {
		started := entry(id, sessions.KindTurnStarted, sessions.TurnStarted{Route: routeOf(r.last().in).encode(), Agent: v.agent.Name})
		started.Person = r.items[0].in.From.ID
		entries := []sessions.Entry{started}
		for _, it := range r.items {
			entries = append(entries, said(id, it.in))
		}
		err := v.j.append(ctx, append(entries, more...)...)
		if seen, ok := errors.AsType[*sessions.SeenError](err); ok {
			at := max(0, slices.Index(r.causes(), seen.Cause))
			r = run{items: r.items[:at], ended: true}
			continue
		}
		if err == nil {
			v.w.cfg.Point("c1")
		}
		return r, err
	}
	return r, nil
}
