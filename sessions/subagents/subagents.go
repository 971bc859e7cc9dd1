// Package subagents stores the tasks that agents have handed to sub-agents.
//
// A task's id is derived from the call that hands it out, so the same call hands out only one task. Its
// row is written before anybody hears of the task, and contains everything that is needed to hand it out
// and to report how it ended. So whatever a process leaves undone, another can do.
package subagents

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/sessions"
)

// The states of a task. All but the first two are final.
const (
	Prepared  = "prepared" // recorded, and not handed out yet
	Running   = "running"
	Done      = "done"      // the sub-agent has answered, and the report is its last answer
	Failed    = "failed"    // the sub-agent has failed, and the report says why
	Cancelled = "cancelled" // somebody stopped it
	Lost      = "lost"      // the sub-agent's session was erased
)

// A Task is something that an agent has handed to a sub-agent, which works on it in a
// session of its own.
type Task struct {
	ID      string
	Parent  string // the key of the session in which it was handed out
	Session string // the key of the sub-agent's session
	Agent   string // the sub-agent's name
	Person  string // the person on whose behalf it is done
	Turn    string // the turn of the parent that has handed it out
	Call    string // the tool call of that turn
	// Title is the beginning of the task's text.
	Title string
	// Awaited says that the turn waits for the task. Otherwise the report comes as a message.
	Awaited bool
	// Mail is the message that hands out the task, as its sender encoded it. It is emptied when the task
	// ends.
	Mail json.RawMessage
	// Route is where the report goes, as the sender encoded it.
	Route   json.RawMessage
	Started time.Time

	State string
	Stop  string // what asked the task to end; "" if nothing has
	// Report is the text that the parent gets.
	Report string
	// Untrusted says that the sub-agent had read something that strangers may have written.
	Untrusted bool
	Ended     time.Time // zero while it is open
	// Told says that the report is on its way to the parent, or that nobody wants it.
	Told bool
}

// IsOpen reports whether the task has not ended.
func (t Task) IsOpen() bool { return t.State == Prepared || t.State == Running }

// Errors of a Table.
var (
	// ErrKnown says that there is a task of that id.
	ErrKnown = errors.New("the task is known")
	// ErrNone says that there is no such task.
	ErrNone = errors.New("there is no such task")
)

// A LimitError says that a session has already handed out the maximum number of tasks that may be open at
// once.
type LimitError struct{ Limit int }

// Error returns a message that names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%d sub-agents work for this conversation, which is the most that may at once", e.Limit)
}

// Key returns the key of the session of a sub-agent: AGENT:agent:PARENT:ID, where PARENT
// is a hash of the parent's key.
func Key(agent, parent, id string) (string, error) {
	return sessions.Key(agent, Channel, hash(parent), id)
}

// MailID returns the id of the message that hands out a task. The turn that it begins has the same id.
func MailID(id string) string { return "tasked:" + id }

// Channel takes the place of a channel's name in the key of a sub-agent's session.
const Channel = "agent"
