package channels

import (
	"context"
	"errors"
	"sync/atomic"
)

// A Reachability remembers whether a platform was reached when it was last tried:
// what makes a channel a Connector. It begins as reached.
type Reachability struct{ lost atomic.Bool }

// Note notes how a call of the platform ended. That somebody ended it on this
// side, or that the platform asks for patience or takes offence at one message,
// says nothing against the contact.
func (c *Reachability) Note(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	lost := err != nil
	if fault, ok := errors.AsType[*SendError](err); ok {
		lost = fault.Fault != Rejected && !fault.Limited && fault.MovedTo == ""
	}
	c.lost.Store(lost)
}

// Connected tells whether the platform was reached.
func (c *Reachability) Connected() bool { return !c.lost.Load() }
