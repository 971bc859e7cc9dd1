package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/api/snapshot"
	"parley/sessions"
)

// A viewer sends a session's events to one watcher.
//
// A watcher that was cut off names the last event that it has. If the bus no longer holds the events since then, or
// the watcher is new, the viewer sends a snapshot of the session's newest turns first. It subscribes before it reads
// the log, so it misses nothing between the two; it drops events whose block is in the snapshot. The log doesn't
// contain the answer that the model is giving at that moment. If the watcher missed the beginning of that answer,
// the turn has a hole: while there is one, events are sent without an id, so that a stream that is cut off begins
// with a snapshot again. The hole ends when the answer starts over, or is in the log; then a second snapshot
// contains all of it. Usually there is no hole, because the bus still holds the beginning; see sendAll.
type viewer struct {
	key       string
	caller    exchange.Caller
	events    bus.Events
	snapshots *snapshot.Cache
	out       *stream

	sentBlocks   map[string]snapshot.TurnBlocks // by turn: the blocks in the last snapshot; nil before one was needed
	holes        map[string]bool                // the turns for which the watcher missed the beginning of the current answer
	doubtful     map[string]bool                // the turns in which an answer began with the number of a block that is in the snapshot
	sentEnds     []string                       // the newest turns whose end was sent
	sentMessages []string                       // the ids of the newest messages besides turns that were sent, such as those of operators
	resent       blockRef                       // the block that is being sent again although the snapshot contains it
	// For the current answers of these turns, the watcher was sent what the bus held, up to the event with the id
	// caughtUpTo.
	caughtUp   map[string]bool
	caughtUpTo uint64
}

// A blockRef identifies a block.
type blockRef struct {
	turn  string
	block int
}

// maxKnownEnds is how many of the newest turns that ended a viewer remembers.
const maxKnownEnds = 64

// endedBefore reports whether an event says that a turn has ended, and the watcher already knows that: a worker
// that takes over a session says it again if the log doesn't show that the answer was published. It remembers that the
// watcher knows it from now on.
func (v *viewer) endedBefore(e bus.Event) bool {
	if e.Type != bus.TurnComplete && e.Type != bus.TurnError {
		return false
	}
	if slices.Contains(v.sentEnds, e.Turn) {
		return true
	}
	v.sentEnds = append(v.sentEnds[max(0, len(v.sentEnds)+1-maxKnownEnds):], e.Turn)
	return false
}

// heardBefore reports whether an event contains a message of an operator, or on somebody's behalf, that the watcher
// already knows: it is sent again if the worker is cut off after the message is in the log. It remembers that the
// watcher knows it from now on.
func (v *viewer) heardBefore(e bus.Event) bool {
	if e.Type != bus.Spoken || e.Kind != bus.KindOperator && e.Kind != bus.KindTold {
		return false
	}
	if slices.Contains(v.sentMessages, e.Call) {
		return true
	}
	v.sentMessages = append(v.sentMessages[max(0, len(v.sentMessages)+1-snapshot.MaxMessages):], e.Call)
	return false
}

// begin subscribes to the session's events after the one with lastID. If some of them are no longer held, or if lastID
// isn't an event's id, it sends a snapshot, and subscribes to those from now on.
func (v *viewer) begin(ctx context.Context, lastID string) (iter.Seq2[bus.Event, error], error) {
	feed := bus.SessionFeed(v.key)
	if after, err := strconv.ParseUint(lastID, 10, 64); err == nil && after > 0 {
		news, err := v.events.Subscribe(ctx, feed, after)
		if !errors.Is(err, bus.ErrGone) {
			if err != nil {
				return nil, fmt.Errorf("follow session %s: %w", v.key, err)
			}
			return news, v.out.open()
		}
	}
	news, err := v.events.Subscribe(ctx, feed, 0)
	if err != nil {
		return nil, fmt.Errorf("follow session %s: %w", v.key, err)
	}
	return news, v.sendAll(ctx)
}

// sendSnapshot sends a snapshot of the session, and records that the beginning of the current answer is missing in
// each running turn.
func (v *viewer) sendSnapshot(ctx context.Context) error {
	told, err := v.snapshots.Get(ctx, v.key)
	if err != nil {
		return fmt.Errorf("read session %s for a snapshot: %w", v.key, err)
	}
	v.sentBlocks, v.holes, v.doubtful = told.Blocks, map[string]bool{}, map[string]bool{}
	v.sentMessages = slices.Clone(told.Said)
	for _, turn := range told.RunningTurns {
		v.holes[turn] = true
	}
	return v.out.write(told.Frame)
}

// follow sends the events until ctx is done or the watcher is gone.
func (v *viewer) follow(ctx context.Context, news iter.Seq2[bus.Event, error]) error {
	for e, err := range news {
		switch {
		case errors.Is(err, bus.ErrGone): // the watcher was too slow
			err = v.sendAll(ctx)
		case err == nil:
			err = v.sendEvent(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sendEvent sends an event, unless the watcher already has its content, for example in the last snapshot.
func (v *viewer) sendEvent(ctx context.Context, e bus.Event) error {
	if v.endedBefore(e) || v.heardBefore(e) {
		return nil
	}
	if v.caughtUp[e.Turn] && e.ID <= v.caughtUpTo && strings.HasPrefix(e.Type, "block_") {
		return nil
	}
	if v.sentBlocks != nil {
		old, err := v.inSnapshot(ctx, &e)
		if old || err != nil {
			return err
		}
	}
	id := ""
	// With an id, a watcher could continue after this event: it must not miss the beginning of an answer then, or get
	// what sendCurrent sent a second time.
	if len(v.holes) == 0 && e.ID > v.caughtUpTo {
		id = strconv.FormatUint(e.ID, 10)
	}
	return v.out.send(id, e.Type, eventData(e, v.caller))
}

// inSnapshot reports whether the content of an event is already in the last snapshot. If the event ends a hole,
// inSnapshot sends a new snapshot, which contains the whole answer. It changes an event that voids blocks so that it
// voids none that are in the log.
func (v *viewer) inSnapshot(ctx context.Context, e *bus.Event) (old bool, err error) {
	told, this := v.sentBlocks[e.Turn], blockRef{e.Turn, e.Block}
	if e.Type == bus.BlockStart && e.Kind == string(sessions.KindUser) {
		v.resent = this // somebody may have deleted the message: then its block is sent again, without the text
	}
	switch e.Type {
	case bus.BlockDelta:
		return told.Has[e.Block] && v.resent != this, nil
	case bus.BlockStart:
		// A new answer begins, or a call has run, so no answer is being given.
		if e.Block == told.Next || e.Kind == string(sessions.KindToolResult) {
			delete(v.holes, e.Turn)
		}
		old = told.Has[e.Block] && v.resent != this
		// The block is sent again, or a worker of an older release numbers blocks differently.
		if old && e.Kind != string(sessions.KindToolResult) {
			v.doubtful[e.Turn] = true
		}
		return old, nil
	case bus.BlockReset:
		if e.Block <= told.Next { // the answer will start over
			delete(v.holes, e.Turn)
			e.Block = told.Next
		}
	case bus.BlockStop:
		return v.endHole(ctx, e)
	case bus.ToolStart, bus.ToolEnd, bus.TurnParked, bus.TurnComplete, bus.TurnError:
		// Earlier events are in the log, and later ones will reach this viewer.
		if v.holes[e.Turn] || v.doubtful[e.Turn] {
			err = v.sendSnapshot(ctx)
			delete(v.holes, e.Turn)
		}
	}
	return false, err
}

// endHole does the work of inSnapshot for an event that says that the log contains a block. With the first such
// block, the log contains the whole answer.
func (v *viewer) endHole(ctx context.Context, e *bus.Event) (old bool, err error) {
	old = v.sentBlocks[e.Turn].Has[e.Block]
	switch this := (blockRef{e.Turn, e.Block}); sessions.Kind(e.Kind) {
	case sessions.KindUser:
		old, v.resent = old && v.resent != this, blockRef{}
		return old, nil
	case sessions.KindToolResult:
		return old, nil
	}
	if v.holes[e.Turn] && !old {
		if err := v.sendSnapshot(ctx); err != nil {
			return false, err
		}
		old = v.sentBlocks[e.Turn].Has[e.Block] // a worker of an older release may send this event before the log has the block
	}
	if old {
		delete(v.holes, e.Turn)
	}
	return old, nil
}

// eventData returns what a watcher is sent of an event; it includes a block's number only if the event is about a
// block.
func eventData(e bus.Event, c exchange.Caller) any {
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
			return askOf(*e.Ask, c)
		}
		return resolvedAskOf(*e.Ask, e.Turn)
	}
	return struct {
		bus.Event
		Block int `json:"block,omitempty"`
	}{Event: e}
}
