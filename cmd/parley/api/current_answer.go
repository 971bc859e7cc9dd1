package api

import (
	"context"
	"fmt"
	"strings"

	"parley/bus"
)

// sendAll sends a snapshot of the session, followed by those events of the current answers that the bus still holds.
// It reads these events before the snapshot: so the snapshot contains the answers that have ended in the meantime,
// and the subscription, which began before both, delivers the rest of the others.
func (v *viewer) sendAll(ctx context.Context) error {
	held, err := v.heldEvents(ctx)
	if err != nil {
		return err
	}
	if err := v.sendSnapshot(ctx); err != nil {
		return err
	}
	v.caughtUp, v.caughtUpTo = map[string]bool{}, 0
	for turn := range v.holes {
		if err := v.sendCurrent(turn, held); err != nil {
			return err
		}
	}
	if len(held) > 0 {
		v.caughtUpTo = held[len(held)-1].ID
	}
	return nil
}

// heldEvents returns the session's events that the bus still holds; none if no turn is running, or if this bus doesn't
// hold events.
func (v *viewer) heldEvents(ctx context.Context) ([]bus.Event, error) {
	history, ok := v.events.(bus.History)
	if !ok {
		return nil, nil
	}
	told, err := v.snapshots.Get(ctx, v.key)
	if err != nil {
		return nil, fmt.Errorf("read session %s for its running turns: %w", v.key, err)
	}
	if len(told.RunningTurns) == 0 {
		return nil, nil
	}
	held, err := history.HeldEvents(ctx, bus.SessionFeed(v.key))
	if err != nil {
		return nil, fmt.Errorf("read the events of session %s: %w", v.key, err)
	}
	return held, nil
}

// sendCurrent sends the beginning of the answer that the model is giving in a turn, if the events that the bus
// holds contain it. Then the watcher misses nothing of the turn.
func (v *viewer) sendCurrent(turn string, held []bus.Event) error {
	next := v.sentBlocks[turn].Next
	var begun []*begunBlock
	for _, e := range held {
		if e.Turn != turn || e.Block < next && e.Type != bus.BlockReset {
			continue
		}
		switch e.Type {
		case bus.BlockReset:
			begun = begun[:min(len(begun), max(0, e.Block-next))]
		case bus.BlockStart:
			if e.Block == next+len(begun) {
				begun = append(begun, &begunBlock{start: e})
			}
		case bus.BlockDelta:
			if n := len(begun); n > 0 && begun[n-1].start.Block == e.Block {
				begun[n-1].text.WriteString(e.Delta)
			}
		}
	}
	if len(begun) == 0 {
		return nil
	}
	for _, b := range begun {
		if err := v.out.send("", bus.BlockStart, eventData(b.start, v.caller)); err != nil {
			return err
		}
		piece := bus.Event{Type: bus.BlockDelta, Turn: turn, Block: b.start.Block, Kind: b.start.Kind, Delta: b.text.String()}
		if piece.Delta == "" {
			continue
		}
		if err := v.out.send("", piece.Type, eventData(piece, v.caller)); err != nil {
			return err
		}
	}
	delete(v.holes, turn)
	v.caughtUp[turn] = true
	return nil
}

// A begunBlock is a block that isn't in the log yet.
type begunBlock struct {
	start bus.Event
	text  strings.Builder
}
