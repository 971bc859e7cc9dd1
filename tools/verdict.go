package tools

import "encoding/json"

// A Decision is what becomes of a call.
type Decision string

// The decisions.
const (
	Allow Decision = "allow" // it runs; "" is the same
	Deny  Decision = "deny"  // it does not
	Ask   Decision = "ask"   // it runs once a person has approved it
)

// A Verdict is what a guard says of a call.
type Verdict struct {
	Decision Decision
	// Reason is for the model that is denied, and for the person who is asked.
	Reason string
	// Args are the arguments to run the call with instead of its own; nil leaves
	// them as they are.
	Args json.RawMessage
}

// A Review is what is said of a result before anybody sees it.
type Review struct {
	// Rejected withholds the result; the model is told Reason.
	Rejected bool
	Reason   string
	// Content stands in the place of the result's own; nil leaves it.
	Content json.RawMessage
}
