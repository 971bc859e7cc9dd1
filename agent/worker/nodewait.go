package worker

import (
	"context"
	"errors"
	"fmt"

	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// openNodeWait records which node a turn waits for, and tells watchers.
func openNodeWait(ctx context.Context, s *turn.Session, t *turn.Turn, a *turn.Ask) error {
	err := s.Config.NodeWaits.OpenWait(ctx, sessions.NodeWait{ID: a.ID, Node: a.Node, AnyOfNodes: a.AnyOfNodes, Session: s.Key(), Person: t.Person, Until: a.Expires})
	if err != nil && !errors.Is(err, sessions.ErrNotFound) { // nothing more can be written to the log of an erased session
		return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	s.Point("park:waiting")
	s.Emit(t, bus.Event{Type: bus.ToolProgress, Call: a.Call, Tool: a.ForCall.Use.Name, Delta: textWaitsForNode(a.Ask)})
	return nil
}

// closeNodeWait removes the record of a wait, so that the session gets no more mail about it.
func closeNodeWait(ctx context.Context, s *turn.Session, id string) error {
	if s.Config.NodeWaits == nil {
		return nil
	}
	if err := s.Config.NodeWaits.CloseWait(ctx, id); err != nil {
		return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	return nil
}
