package worker

import (
	"context"
	"errors"
	"fmt"

	"parley/agent/turn"
	"parley/bus"
	"parley/sessions"
)

// openNodeWait records for which node a turn waits, and tells watchers.
func openNodeWait(ctx context.Context, s *turn.Session, t *turn.Turn, a *turn.Ask) error {
	err := s.Config.NodeWaits.OpenWait(ctx, sessions.NodeWait{ID: a.ID, Node: a.Node, AnyOfNodes: a.AnyOfNodes, Session: s.Key(), Person: t.Person, Until: a.Expires})
	if err != nil && !errors.Is(err, sessions.ErrNotFound) { // to the log of a session that was erased, nothing more can be written
		return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	s.Point("park:waiting")
	s.Emit(t, bus.Event{Type: bus.ToolProgress, Call: a.Call, Tool: a.Of.Use.Name, Delta: textWaitsForNode(a.Ask)})
	return nil
}

// closeNodeWait records that a session needs no mail about a wait anymore.
func closeNodeWait(ctx context.Context, s *turn.Session, id string) error {
	if s.Config.NodeWaits == nil {
		return nil
	}
	if err := s.Config.NodeWaits.CloseWait(ctx, id); err != nil {
		return fmt.Errorf("%w: %w", turn.ErrBusAway, err)
	}
	return nil
}
