package subagents

import (
	"context"

	"parley/bus"
	"parley/sessions"
)

// IsSubAgent reports whether the session with this key is one that a sub-agent works in.
func IsSubAgent(session string) bool {
	key, err := sessions.ParseKey(session)
	return err == nil && key.Channel == bus.SubAgents
}

// maxParents is how many sub-agents' sessions are kept in memory along with their parents.
const maxParents = 10_000

// Parent returns the session that handed out the task that a sub-agent's session works on, or "" if the session
// is not a sub-agent's. It returns ErrNone of sessions/subagents for an unknown sub-agent's session.
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
	if d.parentCount.Add(1)%maxParents == 0 {
		d.parents.Clear()
	}
	d.parents.Store(session, t.Parent) // it never changes
	return t.Parent, nil
}

// SessionsFor returns the sub-agents' sessions that belong to one of these parents or, if person is not "", to
// that person.
func (d *Service) SessionsFor(ctx context.Context, person string, parents ...string) ([]string, error) {
	return d.cfg.Table.SessionsFor(ctx, person, parents...)
}
