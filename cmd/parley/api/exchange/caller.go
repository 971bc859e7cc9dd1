package exchange

import (
	"slices"
	"strings"
)

// These scopes say what a token allows its holder to do.
const (
	scopeSend    = "send"  // send to any target or address
	scopeSendTo  = "send:" // followed by a target: send to that target only
	scopeAgent   = "agent"
	scopeOwn     = "own"
	scopeRead    = "read"
	scopeMetrics = "metrics"
	scopeApprove = "approve"
	scopeAdmin   = "admin"
)

// A Caller is the sender of a request.
type Caller struct {
	Name   string
	Owner  bool
	Local  bool // whether the request came through the home's socket
	Scopes []string
	SignIn string // the id of the sign-in of the browser that sent the request; "" for a token
}

// hasScope reports whether the caller has one of these scopes; the owner and admins have all.
func (c Caller) hasScope(scopes ...string) bool {
	return c.Owner || slices.ContainsFunc(c.Scopes, func(s string) bool { return s == scopeAdmin || slices.Contains(scopes, s) })
}

// IsAnybody returns true: it is the May of routes that every caller with a known token may use.
func (c Caller) IsAnybody() bool { return true }

// IsAdmin reports whether the caller may do everything.
func (c Caller) IsAdmin() bool { return c.hasScope() }

// MayReadAll reports whether the caller may read all sessions and the state of the server.
func (c Caller) MayReadAll() bool { return c.hasScope(scopeRead) }

// MayApprove reports whether the caller may answer approvals.
func (c Caller) MayApprove() bool { return c.hasScope(scopeApprove) }

// MayReadMetrics reports whether the caller may read the metrics.
func (c Caller) MayReadMetrics() bool { return c.hasScope(scopeMetrics) }

// MayTalkToAgent reports whether the caller may talk to agents, in sessions of its own.
func (c Caller) MayTalkToAgent() bool { return c.hasScope(scopeAgent) }

// MayReadOwn reports whether the caller may read what belongs to its person: the sessions that it began, and the
// private ones of the accounts that are linked with it.
func (c Caller) MayReadOwn() bool { return c.hasScope(scopeOwn) }

// MayWatch reports whether the caller may watch any sessions at all.
func (c Caller) MayWatch() bool { return c.MayReadAll() || c.MayTalkToAgent() || c.MayReadOwn() }

// MaySendSomewhere reports whether the caller may send to anybody at all.
func (c Caller) MaySendSomewhere() bool {
	return c.hasScope(scopeSend, scopeAgent) || slices.ContainsFunc(c.Scopes, func(s string) bool { return strings.HasPrefix(s, scopeSendTo) })
}

// MaySendTo reports whether the caller may send to this target or address.
func (c Caller) MaySendTo(to string) bool { return c.hasScope(scopeSend, scopeSendTo+to) }
