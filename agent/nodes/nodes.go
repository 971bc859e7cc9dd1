// Package nodes gives calls to nodes, over the links that they have to this process or to another one of the fleet.
//
// A call is a row in the store (sessions/nodes). The process that works on the session records it, and rings on the bus;
// the process that has the node's link hears that, records that it is about to send the call, and sends it. The outcome
// is recorded before the node may forget it, and then the bell rings for whoever waits. So any of them may die: the row
// says what is to be done next, and the node runs no call twice.
package nodes

import (
	"context"
	"encoding/json"
	"time"

	"parley/sessions/nodes"
)

// A Registry stores which nodes there are.
type Registry interface {
	// Invite records a join code by its hash; it can be used once, until then.
	Invite(ctx context.Context, hash string, until time.Time) error
	// Join records a node that knows a code, in the state Waiting. It returns nodes.ErrCode and nodes.ErrTaken; the same
	// node with the same code and key may come again, and nothing is changed.
	Join(ctx context.Context, hash string, n nodes.Node) error
	// Node returns a node, or nodes.ErrUnknown, and Nodes all of them, by name.
	Node(ctx context.Context, name string) (nodes.Node, error)
	Nodes(ctx context.Context) ([]nodes.Node, error)
	// Accept records what an owner accepts of a node that offers exactly that; if it offers something else now, it
	// returns nodes.ErrChanged. A revoked node must join again first.
	Accept(ctx context.Context, name string, offer, accepted json.RawMessage) error
	// Revoke revokes a node; its calls that were not sent end as the outcome says.
	Revoke(ctx context.Context, name string, outcome json.RawMessage, now time.Time) error
}

// Links stores which process has which node's link.
type Links interface {
	// Link records that this process has the link of a node now, in place of any other, and what the node offers. It
	// returns the node.
	Link(ctx context.Context, name, process string, offer json.RawMessage, now time.Time) (nodes.Node, error)
	// Unlink records that a process has lost a link. It changes nothing if another process has it.
	Unlink(ctx context.Context, name, process string, now time.Time) error
	// Hold records, in one statement, that a process still has its links. Nodes whose process has not done so for nodes.LinkLifetime
	// are away.
	Hold(ctx context.Context, process string, now time.Time) error
}

// Calls stores the calls that nodes are given.
type Calls interface {
	// GiveHere records a call unless its ID is known, and returns what is recorded. If a process is named that has the node's
	// link, GiveHere also does what Send does, and sends is true. It returns sessions.ErrNotFound if the session does not exist.
	GiveHere(ctx context.Context, c nodes.Call, process string) (recorded nodes.Call, sends bool, err error)
	// Call returns a call, or nodes.ErrUnknown.
	Call(ctx context.Context, id string) (nodes.Call, error)
	// Open returns a node's calls that have not ended, in the order in which they were made.
	Open(ctx context.Context, node string) ([]nodes.Call, error)
	// Send records that a process is about to send a call, and returns it. It returns nodes.ErrOther unless that process
	// has the node's link. A call that has ended is returned as it is.
	Send(ctx context.Context, id, process string, now time.Time) (nodes.Call, error)
	// Cancel ends a call that was never sent with that outcome; of one that was sent, it records that it is canceled. It
	// returns the call.
	Cancel(ctx context.Context, id string, outcome json.RawMessage, now time.Time) (nodes.Call, error)
	// Withdraw removes a call that was never sent and has not ended, as if it had not been given. It returns false if there
	// is no such call.
	Withdraw(ctx context.Context, id string) (bool, error)
	// End records how a call has ended, unless it has, and returns what is recorded. nodes.ErrUnknown means that the
	// call was erased.
	End(ctx context.Context, id string, outcome json.RawMessage, now time.Time) (nodes.Call, error)
}
