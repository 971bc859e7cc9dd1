package tools

import "encoding/json"

// A Decision says what happens to a call.
type Decision string

// The decisions.
const (
	Allow Decision = "allow" // the call runs; "" means the same
	Deny  Decision = "deny"  // the call does not run
	Ask   Decision = "ask"   // the call runs once a person has approved it
)

// A Verdict is a guard's decision on a call.
type Verdict struct {
	Decision Decision
	// Reason is for the model if the call is denied, and for the person who is asked.
	Reason string
	// Args replace the arguments of the call; nil leaves them as they are.
	Args json.RawMessage
}

// A Review is a guard's decision on a call's result, before the model or anybody else sees it.
type Review struct {
	// Rejected says that the result is withheld; the model is told Reason instead.
	Rejected bool
	Reason   string
	// Content replaces the content of the result; nil leaves it as it is.
	Content json.RawMessage
}
