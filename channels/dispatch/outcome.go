package dispatch

import (
	"time"

	"parley/bus"
)

// A deliveryError says why a delivery ended before its message was finished, and what to do with the message. If no
// field is set, the message goes back to the bus immediately, and the delivery counts as an attempt.
type deliveryError struct {
	discarded bool          // remove the message: nothing more is to be sent, and it is no dead letter
	bury      string        // make the message a dead letter for this reason; "" means don't
	after     time.Duration // give the message back to the bus, and let nobody claim it again until this time has passed
	uncounted bool          // giving it back does not count as an attempt, because it was not the message's fault
	leaseLost bool          // do nothing with the message: another process holds its mailbox
	refused   error         // the platform refuses the account; no delivery can succeed
}

// Error says why the delivery ended or, if there is no reason, when the message is tried again.
func (e *deliveryError) Error() string {
	switch {
	case e.discarded:
		return "not worth sending"
	case e.bury != "":
		return "given up: " + e.bury
	case e.leaseLost:
		return "the lease is lost"
	case e.refused != nil:
		return "the platform rejected the account: " + e.refused.Error()
	}
	return "to be tried again after " + e.after.String()
}

// Unwrap returns the platform's refusal of the account, or nil.
func (e *deliveryError) Unwrap() error { return e.refused }

// giveBackFor returns an error that gives a message back for a while, for a reason that is not the message's fault.
func giveBackFor(after time.Duration) *deliveryError {
	return &deliveryError{after: after, uncounted: true}
}

// applyTo records in end what to do with the message m when its mailbox is settled.
func (e *deliveryError) applyTo(end *bus.End, m bus.Message) {
	if e.bury != "" {
		end.Dead, end.Reason = m.Seq, e.bury
		return
	}
	end.After, end.Uncounted = e.after, e.uncounted
}
