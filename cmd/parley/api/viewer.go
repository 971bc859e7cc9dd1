package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"parley/bus"
)

// A viewer sends a session's events to one watcher.
//
// A watcher that was cut off names the last event that it has. If the events since then are not
// held any more, the viewer sends a snapshot of the session's newest turns in their place. It
// subscribes first and reads the log then, so nothing is missed between the two; what both have
// is dropped by the number of its block. The log does not have the answer that the model is
// giving at that moment. If the beginning of that answer was missed, the turn has a hole: its
// events go out without an id, so that a stream that is cut off begins with a snapshot again. The
// hole ends when the answer begins anew, or is over; then a second snapshot has all of it.
type viewer struct {
	key       string
	snapshots *snapshotCache
	out       *stream

	snapshotBlocks map[string]int  // how many blocks of each turn the last snapshot had; nil before one was needed
	holes          map[string]bool // the turns of whose current answer the watcher missed the beginning
	ended          []string        // the newest turns whose end was sent
}

// knownEnds is how many of the newest turns that ended a viewer knows.
const knownEnds = 64

// endedBefore reports whether an event says of a turn that it has ended, which the watcher knows: who
// takes a session over says it again if the log does not tell that the answer is published.
func (v *viewer) endedBefore(e bus.Event) bool {
	if e.Type != bus.TurnComplete && e.Type != bus.TurnError {
		return false
	}
	if slices.Contains(v.ended, e.Turn) {
		return true
	}
	v.ended = append(v.ended[max(0, len(v.ended)+1-knownEnds):], e.Turn)
	return false
}

// begin subscribes to the session's events after the one with lastID, and sends a snapshot if
// some of them are not held any more.
func (v *viewer) begin(ctx context.Context, events bus.Events, lastID string) (iter.Seq2[bus.Event, error], error) {
	feed := bus.SessionFeed(v.key)
	if after, err := strconv.ParseUint(lastID, 10, 64); err == nil && after > 0 {
		news, err := events.Subscribe(ctx, feed, after)
		if !errors.Is(err, bus.ErrGone) {
			if err != nil {
				return nil, fmt.Errorf("follow session %s: %w", v.key, err)
			}
			return news, v.out.open()
		}
	}
	news, err := events.Subscribe(ctx, feed, 0)
	if err != nil {
		return nil, fmt.Errorf("follow session %s: %w", v.key, err)
	}
	return news, v.sendSnapshot(ctx)
}

// sendSnapshot sends a snapshot of the session, and notes that of each turn that runs the current
// answer's beginning is missing.
func (v *viewer) sendSnapshot(ctx context.Context) error {
	told, err := v.snapshots.get(ctx, v.key)
	if err != nil {
		return fmt.Errorf("read session %s for a snapshot: %w", v.key, err)
	}
	v.snapshotBlocks, v.holes = told.blockCounts, map[string]bool{}
	for _, turn := range told.runningTurns {
		v.holes[turn] = true
	}
	return v.out.write(told.frame)
}

// follow sends the events until ctx is done or the watcher is gone.
func (v *viewer) follow(ctx context.Context, news iter.Seq2[bus.Event, error]) error {
	for e, err := range news {
		switch {
		case errors.Is(err, bus.ErrGone): // it was too slow
			err = v.sendSnapshot(ctx)
		case err == nil:
			err = v.sendEvent(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendEvent sends an event, unless the last snapshot has it already, or it ends a turn again.
func (v *viewer) sendEvent(ctx context.Context, e bus.Event) error {
	if v.endedBefore(e) {
		return nil
	}
	if v.snapshotBlocks != nil {
		old, err := v.inSnapshot(ctx, e)
		if old || err != nil {
			return err
		}
	}
	id := ""
	if len(v.holes) == 0 {
		id = strconv.FormatUint(e.ID, 10)
	}
	return v.out.send(id, e.Type, eventData(e))
}

// inSnapshot reports whether the last snapshot already has what an event says. If the event ends
// a hole, inSnapshot sends a new snapshot, which has the whole answer.
func (v *viewer) inSnapshot(ctx context.Context, e bus.Event) (old bool, err error) {
	next := v.snapshotBlocks[e.Turn]
	switch e.Type {
	case bus.BlockDelta, bus.BlockStop:
		return e.Block < next, nil
	case bus.BlockStart, bus.BlockReset:
		if e.Block == next { // an answer begins, or will begin anew
			delete(v.holes, e.Turn)
		}
		return e.Block < next, nil
	case bus.ToolStart, bus.ToolEnd, bus.TurnParked, bus.TurnComplete, bus.TurnError:
		// What was said before these is in the log, and what comes after them
		// comes to us.
		if v.holes[e.Turn] {
			err = v.sendSnapshot(ctx)
			delete(v.holes, e.Turn)
		}
	}
	return false, err
}

// eventData returns what is sent to watchers of an event; it has a block's number only if the
// event is about a block.
func eventData(e bus.Event) any {
	switch e.Type {
	case bus.BlockStart, bus.BlockDelta, bus.BlockStop, bus.BlockReset:
		return e
	case bus.Retried:
		if e.Retry == nil {
			break
		}
		return struct {
			Turn string `json:"turn"`
			*bus.Retry
		}{e.Turn, e.Retry}
	case bus.Compacted:
		if e.Compaction == nil {
			break
		}
		return struct {
			Turn string `json:"turn"`
			*bus.Compaction
		}{e.Turn, e.Compaction}
	case bus.Used:
		if e.Usage == nil {
			break
		}
		return struct {
			Turn string `json:"turn"`
			*bus.Usage
		}{e.Turn, e.Usage}
	case bus.Asked, bus.AskResolved:
		if e.Ask == nil {
			break
		}
		if e.Type == bus.Asked {
			return askOf(*e.Ask)
		}
		return resolvedAskOf(*e.Ask, e.Turn)
	}
	return struct {
		bus.Event
		Block int `json:"block,omitempty"`
	}{Event: e}
}
