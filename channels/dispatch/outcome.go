package dispatch

import (
	"time"

	"parley/bus"
)

// A deliveryError says why a delivery ended before its message was finished, and what to do with the message. If no
// field is set, the message goes back to the bus immediately, and the delivery counts as an attempt.
type deliveryError struct {
	discarded        bool          // remove the message: nothing more is to be sent, and it is no dead letter
	deadLetterReason string        // make the message a dead letter for this reason; "" means don't
	retryAfter       time.Duration // give the message back to the bus, and let nobody claim it again until this time has passed
	isUncounted      bool          // giving it back does not count as an attempt, because it was not the message's fault
	leaseLost        bool          // do nothing with the message: another process holds its mailbox
	refusal          error         // the platform refuses the account; no delivery can succeed
}

// Error says why the delivery ended or, if there is no reason, when the message is tried again.
func (e *deliveryError) Error() string {
	switch {
	case e.discarded:
		return "not worth sending"
	case e.deadLetterReason != "":
		return "given up: " + e.deadLetterReason
	case e.leaseLost:
		return "the lease is lost"
	case e.refusal != nil:
		return "the platform rejected the account: " + e.refusal.Error()
	}
	return "to be tried again after " + e.retryAfter.String()
}

// Unwrap returns the platform's refusal of the account, or nil.
func (e *deliveryError) Unwrap() error { return e.refusal }

// giveBackFor returns an error that gives a message back for a while, for a reason that is not the message's fault.
func giveBackFor(after time.Duration) *deliveryError {
	return &deliveryError{retryAfter: after, isUncounted: true}
}

// applyTo records in end what to do with the message m when its mailbox is settled.
func (e *deliveryError) applyTo(end *bus.End, m bus.Message) {
	if e.deadLetterReason != "" {
		end.Dead, end.Reason = m.Seq, e.deadLetterReason
		return
	}
	end.After, end.Uncounted = e.retryAfter, e.isUncounted
}
