// Package nodes gives calls to nodes, over the links that they have to this process or to another one of the fleet.
//
// A call is a row in the store (sessions/nodes). The process that works on the session records the call, and publishes
// an event on the bus. The process that has the node's link hears that event, records that it is about to send the
// call, and sends it. The outcome is recorded before the node may forget it, and then another event wakes the waiters.
// So any of these processes may die: the row says what has to be done next, and the node runs no call twice.
package nodes

import (
	"context"
	"encoding/json"
	"time"

	"parley/sessions/nodes"
)

// A Registry stores the nodes.
type Registry interface {
	// Invite records a join code by its hash. The code can be used once, until the given time.
	Invite(ctx context.Context, hash string, until time.Time) error
	// Join records a node that knows a code, in the state Waiting. Its errors are nodes.ErrCode and nodes.ErrTaken. If
	// the same node joins again with the same code and key, nothing changes.
	Join(ctx context.Context, hash string, n nodes.Node) error
	// Node returns a node, or nodes.ErrUnknown. Nodes returns all of them, sorted by name.
	Node(ctx context.Context, name string) (nodes.Node, error)
	Nodes(ctx context.Context) ([]nodes.Node, error)
	// Accept records what an owner accepts, for a node with exactly this offer; it returns nodes.ErrChanged if the
	// offer has changed. A revoked node must join again first.
	Accept(ctx context.Context, name string, offer, accepted json.RawMessage) error
	// Revoke revokes a node. Its calls that were not sent end with the outcome.
	Revoke(ctx context.Context, name string, outcome json.RawMessage, now time.Time) error
}

// Links stores which process has a node's link.
type Links interface {
	// Link records that a process has a node's link now, in place of any other, and what the node offers. It returns
	// the node.
	Link(ctx context.Context, name, process string, offer json.RawMessage, now time.Time) (nodes.Node, error)
	// Unlink records that a process has lost a link. It changes nothing if another process has the link.
	Unlink(ctx context.Context, name, process string, now time.Time) error
	// Hold records, in one statement, that a process still has its links. Nodes whose process has not done so for nodes.LinkLifetime
	// are away.
	Hold(ctx context.Context, process string, now time.Time) error
}

// Calls stores the calls that are given to nodes.
type Calls interface {
	// GiveHere records a call unless its ID is known, and returns the recorded one. If process is not "" and has the
	// node's link, GiveHere also does what Send does, and sends is true. It returns sessions.ErrNotFound if the session
	// does not exist.
	GiveHere(ctx context.Context, c nodes.Call, process string) (recorded nodes.Call, sends bool, err error)
	// Call returns a call, or nodes.ErrUnknown.
	Call(ctx context.Context, id string) (nodes.Call, error)
	// Open returns a node's calls that have not ended, in the order in which they were made.
	Open(ctx context.Context, node string) ([]nodes.Call, error)
	// Send records that a process is about to send a call, and returns it. It returns nodes.ErrOther unless that process
	// has the node's link. A call that has ended is returned as it is.
	Send(ctx context.Context, id, process string, now time.Time) (nodes.Call, error)
	// Cancel ends a call that was never sent with the given outcome, and records that one that was sent is canceled. It
	// returns the call.
	Cancel(ctx context.Context, id string, outcome json.RawMessage, now time.Time) (nodes.Call, error)
	// Withdraw removes a call that was never sent and has not ended, as if it had not been given. It returns false if
	// there is no such call.
	Withdraw(ctx context.Context, id string) (bool, error)
	// End records how a call has ended, unless that is recorded, and returns the recorded call. It returns
	// nodes.ErrUnknown if the call was erased.
	End(ctx context.Context, id string, outcome json.RawMessage, now time.Time) (nodes.Call, error)
}
