package channels

import (
	"context"
	"errors"
	"sync/atomic"
)

// A Reachability remembers whether the last call reached the platform. An adapter that embeds one is a Connector.
// Before the first call, the platform counts as reached.
type Reachability struct{ lost atomic.Bool }

// Note records how a call to the platform ended. If this side canceled the call, Note records nothing. The platform
// counts as reached if it answered with a rate limit or the chat's new id, or refused just that message.
func (c *Reachability) Note(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	lost := err != nil
	if fault, ok := errors.AsType[*SendError](err); ok {
		lost = fault.Fault != Rejected && !fault.RateLimited && fault.MovedTo == ""
	}
	c.lost.Store(lost)
}

// Connected reports whether the last call reached the platform.
func (c *Reachability) Connected() bool { return !c.lost.Load() }
