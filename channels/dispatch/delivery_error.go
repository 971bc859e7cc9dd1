package dispatch

import (
	"time"

	"parley/bus"
)

// A deliveryError is why a delivery ended before its message was through, and what
// is to become of the message. Without more it is given back to the bus at once, and
// that counts as an attempt.
type deliveryError struct {
	discarded bool          // nothing: it is through without being sent, and nobody misses it
	bury      string        // it is put with the dead letters, for this reason; "" does not
	after     time.Duration // it is given back, and not given out before then
	uncounted bool          // giving it back is no attempt: it is not the message's fault
	leaseLost bool          // another process has it, so nothing may be done any more
	refused   error         // the platform refuses the account; no delivery can succeed
}

// Error says what is to become of the message.
func (e *deliveryError) Error() string {
	switch {
	case e.discarded:
		return "not worth sending"
	case e.bury != "":
		return "given up: " + e.bury
	case e.leaseLost:
		return "the lease is lost"
	case e.refused != nil:
		return "the platform refuses the account: " + e.refused.Error()
	}
	return "to be tried again after " + e.after.String()
}

// Unwrap is the platform's refusal, if it is one.
func (e *deliveryError) Unwrap() error { return e.refused }

// later gives a message back because of something that is not its fault.
func later(after time.Duration) *deliveryError {
	return &deliveryError{after: after, uncounted: true}
}

// settles says by end what is to become of the message m.
func (e *deliveryError) settles(end *bus.End, m bus.Message) {
	if e.bury != "" {
		end.Dead, end.Reason = m.Seq, e.bury
		return
	}
	end.After, end.Uncounted = e.after, e.uncounted
}
