package subagents

import (
	"context"

	"parley/bus"
	"parley/sessions"
)

// IsSubAgent reports whether a session, given by its key, is one in which a sub-agent works.
func IsSubAgent(session string) bool {
	key, err := sessions.ParseKey(session)
	return err == nil && key.Channel == bus.SubAgents
}

// maxParents is how many sessions are held in memory with the session that each works for.
const maxParents = 10_000

// Parent returns the session that has handed out the task on which a sub-agent's session works;
// "" if the session is not a sub-agent's. It returns ErrNone of sessions/subagents for a sub-agent's session that
// nobody knows.
func (d *Service) Parent(ctx context.Context, session string) (string, error) {
	if !IsSubAgent(session) {
		return "", nil
	}
	if parent, ok := d.parents.Load(session); ok {
		return parent.(string), nil
	}
	t, err := d.cfg.Table.Newest(ctx, session)
	if err != nil {
		return "", err
	}
	if d.known.Add(1)%maxParents == 0 {
		d.parents.Clear()
	}
	d.parents.Store(session, t.Parent) // it never changes
	return t.Parent, nil
}

// SessionsFor returns the sessions of sub-agents that belong to one of these sessions (parents)
// or, if person is not "", to that person.
func (d *Service) SessionsFor(ctx context.Context, person string, parents ...string) ([]string, error) {
	return d.cfg.Table.SessionsFor(ctx, person, parents...)
}
