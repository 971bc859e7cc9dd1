// Package nodes is the contract of nodes, the devices that run calls for agents, and provides the tools that reach them.
//
// A node is a program, parley node, on a device. It keeps a link to the server, and offers tools: some of an agent's
// own, which then work in the device's folder and sandbox, and programs that its operator has put there. An agent calls
// such a tool as NODE__TOOL. Package device is the node's end, package wire the protocol in between, and agent/nodes the
// server's end.
package nodes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"parley/tools"
)

// A Tool is a tool that a node offers.
type Tool struct {
	Name        string          `json:"name"` // at most 64 of A-Za-z0-9_-
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // of the arguments: a JSON Schema of an object
	// Pure says that calls change nothing. A node that falsely claims this harms only itself: a call that was cut off
	// is given to it again.
	Pure    bool  `json:"pure,omitempty"`
	Timeout int64 `json:"timeout_ms,omitempty"` // how long a call may take; 0 means DefaultTimeout
}

// Limit returns how long a call of the tool may take.
func (t Tool) Limit() time.Duration {
	if t.Timeout <= 0 {
		return DefaultTimeout
	}
	return min(time.Duration(min(t.Timeout, MaxTimeout.Milliseconds()))*time.Millisecond, MaxTimeout)
}

// Digest returns a short text that changes whenever what an owner accepts changes: the name, the description, the
// arguments, or whether calls are pure.
func (t Tool) Digest() string {
	var schema bytes.Buffer
	if json.Compact(&schema, t.Schema) != nil { // an offer with such a schema is refused
		schema.Write(t.Schema)
	}
	sum := sha256.New()
	for _, part := range []string{t.Name, t.Description, schema.String(), strconv.FormatBool(t.Pure)} {
		fmt.Fprintf(sum, "%d %s", len(part), part)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// An Offer describes what a node can do.
type Offer struct {
	Tools []Tool `json:"tools"`
	// Capabilities are words for what the device has, such as camera: an agent asks for any:camera.
	Capabilities []string `json:"capabilities,omitempty"`
	Release      string   `json:"release"`  // of the node's program
	Platform     string   `json:"platform"` // such as linux/arm64
	// Ask are rules, in the form of package guard, for calls that the node runs only if a person has approved them.
	// They apply without an owner's consent, because they can only make the node run less.
	Ask []string `json:"ask,omitempty"`
}

// A Status says how a call has ended at a node.
type Status string

// The statuses.
const (
	Done    Status = "ok"      // Content is the result
	Failed  Status = "error"   // Error says why
	Unknown Status = "unknown" // the call was cut off, and its effect is unknown
	NotRun  Status = "not_run" // the call certainly never began: Error says why
)

// An Outcome is how a call has ended.
type Outcome struct {
	Status  Status          `json:"status"`
	Content json.RawMessage `json:"content,omitempty"`
	Error   *tools.Error    `json:"error,omitempty"`
	// Milliseconds is how long the call took at the node.
	Milliseconds int64 `json:"elapsed_ms,omitempty"`

	// Node is the node that was given the call. Trusted says that the outcome comes from the server itself, or that the
	// operator trusts the node's results. The Backend sets both.
	Node    string `json:"-"`
	Trusted bool   `json:"-"`
}

// A NodeStatus is a node as agents see it.
type NodeStatus struct {
	Name string
	// IsHere says that some process has a link to it now; Since is when the link was opened or lost.
	IsHere bool
	Since  time.Time
	// Tools are the tools that an owner has accepted.
	Tools        []Tool
	Capabilities []string
	Platform     string
	// Trusted says that the operator trusts what the node returns.
	Trusted bool
	// Running is the number of its calls that have not ended.
	Running int
}

// A Backend gives calls to nodes. Its errors are for the model.
type Backend interface {
	// Nodes returns the accepted nodes that the caller's agent may use, sorted by name.
	Nodes(ctx context.Context, call tools.Call) ([]NodeStatus, error)
	// Call gives a call with these arguments to a tool of a node, and returns how it ended. node is a node's name, or
	// AnyPrefix and a capability: then it is the least busy node that is here and has the capability. A call with the
	// same Session and Key is given once, whichever process asks: the next attempt gets the outcome of the first.
	//
	// If the outcome isn't wanted anymore (see tools.ErrUnwanted), or it takes too long, the node is told to end the
	// call. If ctx ends for another reason, the call continues, the next attempt waits for it, and the error is ctx's.
	Call(ctx context.Context, node, tool string, args json.RawMessage, call tools.Call) (Outcome, error)
}

// Limits of what a node may send.
const (
	MaxTools       = 128
	MaxDescription = 2000      // bytes of a tool's description
	MaxSchema      = 16 << 10  // bytes
	MaxOffer       = 256 << 10 // bytes of an offer in JSON
	MaxResult      = 1 << 20   // bytes of an outcome in JSON
)

// AnyPrefix stands, before a capability, for any node that has the capability.
const AnyPrefix = "any:"

// DefaultTimeout is how long a call may take if its tool does not say.
const DefaultTimeout = time.Minute

// MaxTimeout is the longest that a call may take, whatever its tool says, because a turn takes no longer.
const MaxTimeout = 25 * time.Minute
