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
	// Reason is for the model if the call is denied, and for the person who approves it.
	Reason string
	// Args replace the arguments of the call; nil leaves them as they are.
	Args json.RawMessage
	// Spends is what the call uses up of a limited allowance, if it runs without approval. It is
	// recorded when the call starts, and later calls see it through Call.Spent.
	Spends []string
}

// A Spending is what the calls of a conversation have used up of their allowances.
type Spending struct {
	Turn, All []string // what the calls of this turn, and all calls, have used up
	// PendingCalls are the calls that the model asked for in the same answer, before this one, and that have not begun;
	// they have a name, arguments, and what they touch.
	PendingCalls []Call
}

// UntrustedTask is in Call.Spent once for each task in a conversation whose text was written by a
// model that had read something untrusted.
const UntrustedTask = "task"

// A Sighting is the place where a model has seen an address.
type Sighting struct {
	Found bool
	// Source is the id of the call whose result contained the address, or of the message that
	// quoted it; "" if a person wrote it.
	Source string
	// AskedInThisTurn says that a person wrote it in the current turn.
	AskedInThisTurn bool
}

// A ResultReview is a guard's decision on a call's result, made before the model or anybody else
// sees it.
type ResultReview struct {
	// Rejected says that the result is withheld; the model is told Reason instead.
	Rejected bool
	Reason   string
	// Content replaces the content of the result; nil leaves it as it is.
	Content json.RawMessage
}
