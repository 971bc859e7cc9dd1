// Package nodes stores the records of nodes, the devices that run calls for agents, and of the calls that they are given.
package nodes

import (
	"encoding/json"
	"errors"
	"time"
)

// Errors that tell callers what to do next.
var (
	// ErrUnknown says that there is no node or call by that name or id.
	ErrUnknown = errors.New("there is no such node")
	// ErrCode says that a join code is wrong, used or too old.
	ErrCode = errors.New("the code is wrong, used or too old")
	// ErrTaken says that another device has joined under that name.
	ErrTaken = errors.New("the name is taken")
	// ErrChanged says that a node offers something else than what was looked at.
	ErrChanged = errors.New("the node offers something else now")
	// ErrRevoked says that the node was revoked: it must join again first.
	ErrRevoked = errors.New("the node is revoked")
	// ErrOther says that another process has the node's link.
	ErrOther = errors.New("another process has the link")
)

// LinkLifetime is how long a link counts as open after its process has last said so, by Link or Hold. A process that is killed
// says nothing anymore, and its nodes are away then.
const LinkLifetime = time.Minute

// A State says whether a node may be given calls.
type State string

// The states of a node.
const (
	Waiting  State = "waiting"  // it has joined, and no owner has accepted it yet
	Accepted State = "accepted" // an owner has accepted it
	Revoked  State = "revoked"  // an owner has revoked it: its key opens no link anymore
)

// A Node is a device that has joined.
type Node struct {
	Name string
	// Key is the device's public key (Ed25519). The device proves with it, at each link, that it is the one that joined.
	Key   []byte
	State State
	// Offer is what the device has said at its last link that it can do, as JSON (tools/nodes.Offer).
	Offer json.RawMessage
	// Accepted is what an owner has accepted: by the name of a tool, the digest of its description, as JSON.
	Accepted json.RawMessage
	JoinedAt time.Time
	// Process is the id of the process that has the device's link; "" while the device is away.
	Process string
	// LinkChanged is when the link was opened or lost; zero if there has been none.
	LinkChanged time.Time
}

// A Call is a call that a node is given. It is recorded before the node hears of it, and its outcome is recorded before
// the node may forget it.
type Call struct {
	// ID is made from the session and the key of the tool call: the same for every attempt, and different for every other
	// call.
	ID      string
	Node    string
	Tool    string // the name that the node gives its tool
	Session string // the session's key
	Person  string // CHANNEL:USER
	Agent   string
	Turn    string
	Args    json.RawMessage
	Timeout time.Duration // how long the node may take
	// Approved says that a person has approved the call.
	Approved bool
	MadeAt   time.Time
	// SentAt is when a process first was about to send the call over a link; zero if none has been.
	SentAt time.Time
	// Cancelled says that nobody waits for the outcome anymore, and that the node should end the call.
	Cancelled bool
	// Outcome is how the call ended, as JSON (tools/nodes.Outcome); nil as long as it is open. It never changes.
	Outcome json.RawMessage
	Ended   time.Time // zero as long as the call is open
}
