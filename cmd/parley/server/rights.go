package server

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"parley/agent/subagents"
	"parley/channels/heartbeat"
	"parley/channels/webhook/events"
	"parley/cmd/parley/config"
	"parley/sessions"
	"parley/tools"
	"parley/tools/sandbox"
)

// rights says what sessions' agents may do, according to the current settings. A sub-agent may do nothing that its
// parent may not do.
type rights struct {
	foundation
	subagents *subagents.Service
}

// capabilities returns what a session's agent may do: what is configured for it or, in the owner's terminal,
// everything. A sub-agent may do only what its parent may do, too, and nothing if its parent is unknown.
func (r *rights) capabilities(session string) []tools.Permission {
	if isOwnerTerminal(session) {
		return tools.Permissions()
	}
	own := r.settings.Load().Agents[sessions.AgentOf(session)].Capabilities
	if !subagents.IsSubAgent(session) {
		return own
	}
	parent := r.parentOf(session)
	if parent == "" {
		return nil // nobody knows whom it works for
	}
	above := r.capabilities(parent)
	if sessions.AgentOf(parent) == sessions.AgentOf(session) {
		own = above
	}
	return slices.DeleteFunc(slices.Clone(own), func(p tools.Permission) bool {
		return p == tools.Session || !slices.Contains(above, p) // a sub-agent has no sub-agents of its own
	})
}

// parentOf returns the session that handed out the task that a sub-agent's session works on. It returns "" for any
// other session, and if that cannot be found out now.
func (r *rights) parentOf(session string) string {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTimeout)
	defer cancel()
	parent, err := r.subagents.Parent(ctx, session)
	if err != nil {
		r.log.Warn("it is not known for whom a sub-agent works, so it may do nothing", slog.String("session", session), slog.Any("error", err))
	}
	return parent
}

// lookUpTimeout limits how long parentOf looks for a sub-agent's parent.
const lookUpTimeout = 5 * time.Second

// isUnattended reports whether there is nobody in a session who could be asked: sessions for webhooks' events and
// for heartbeats have nobody, and neither do sub-agents that work for one of these.
func (r *rights) isUnattended(session string) bool {
	if parent := r.parentOf(session); parent != "" {
		session = parent
	}
	key, err := sessions.ParseKey(session)
	return err == nil && (key.Channel == events.Name || key.Channel == heartbeat.Name)
}

// mayUseNetwork reports whether a session's agent has the capability network.
func (r *rights) mayUseNetwork(session string) bool {
	return slices.Contains(r.capabilities(session), tools.Network)
}

// reachesNetwork reports whether what a call runs can reach any of the network. It always returns false for an agent
// without the capability network. For other agents, everything that runs without a sandbox can.
func (r *rights) reachesNetwork(call tools.Call) bool {
	runs, _ := call.Touch().Outward.(tools.RunsProgram)
	settings := r.settings.Load().Sandbox
	switch allowed := settings.Network; {
	case !r.mayUseNetwork(call.Session):
		return false
	case settings.Mode == string(sandbox.None):
		return true
	case runs.Offline:
		return false // see home.CommandPlaces
	default:
		return len(allowed) > 0 && !slices.Contains(allowed, config.NoNetwork)
	}
}

// messageTargets returns the targets and addresses that a session's agent may send messages to: for a sub-agent, only
// those that the agent that handed it the task may also send to.
func (r *rights) messageTargets(session string) []string {
	agents := r.settings.Load().Agents
	own := agents[sessions.AgentOf(session)].MayMessage
	if !subagents.IsSubAgent(session) {
		return own
	}
	above := agents[sessions.AgentOf(r.parentOf(session))].MayMessage
	return slices.DeleteFunc(slices.Clone(own), func(place string) bool { return !slices.Contains(above, place) })
}
