package llm

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A Fault says what a failed call to a model means.
type Fault string

// The faults.
const (
	// Busy: overloaded, limited or out of reach; the same call may work later.
	Busy Fault = "busy"
	// Overflow: the request is larger than the model's window.
	Overflow Fault = "overflow"
	// Refused: the key, the account or the model's name is not accepted.
	Refused Fault = "refused"
	// Rejected: this request will never be accepted.
	Rejected Fault = "rejected"
)

// A Cause says what an operator has to look at, where that is known.
type Cause string

// The causes.
const (
	CauseKey     Cause = "key"     // the key is missing, wrong, or not allowed this
	CauseModel   Cause = "model"   // there is no model of that name
	CauseQuota   Cause = "quota"   // the account has no credit left
	CauseNetwork Cause = "network" // no connection to the server
	CauseAddress Cause = "address" // something is there, but it answers no chats
)

// An Error is why a model did not answer.
type Error struct {
	Fault      Fault
	Cause      Cause
	Status     int           // HTTP, where there was one
	Code       string        // the provider's word for it, fit for a log; "" where it gave none
	RetryAfter time.Duration // what the provider asks for
	// Window is the model's context in tokens, where an overflow said how large it is.
	Window int
	// Said is what the provider wrote about it, in one short line without the
	// key. It may repeat what people said, so it belongs to owners and to no log.
	Said  string
	Tries int // how often it was asked; 0 where that was once
	// Void is an answer that came in part: it is paid for, and not used. Nil where
	// nothing came.
	Void *Answer
	Err  error
}

// Error is the fault with its status and code, and the cause where it is not
// the provider's own word: that may repeat what was said.
func (e *Error) Error() string {
	text := "model: " + string(e.Fault)
	var known []string
	if e.Status > 0 {
		known = append(known, fmt.Sprintf("status %d", e.Status))
	}
	for _, word := range []string{e.Code, string(e.Cause)} {
		if word != "" {
			known = append(known, word)
		}
	}
	if len(known) > 0 {
		text += " (" + strings.Join(known, ", ") + ")"
	}
	if e.Said == "" && e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// LogValue is what a log may hold of it.
func (e *Error) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Explain says to whoever runs the bot what failed, in the provider's own words or
// those of the network, and what to look at.
func (e *Error) Explain() string {
	what, remedy := "The model's server did not answer as it should", ""
	switch e.Cause {
	case CauseKey:
		what, remedy = "The model's provider does not accept the key", "Look at model.api_key."
	case CauseModel:
		what, remedy = "The provider has no model of that name", "Look at model.name."
	case CauseQuota:
		what, remedy = "The account at the model's provider has no credit left", "Look at the account; the configuration is right."
	case CauseNetwork:
		what, remedy = "The model's server cannot be reached", "Look at model.base_url, and whether the server runs and the network lets this machine there."
	case CauseAddress:
		what, remedy = "There is no model server at that address", "Look at model.base_url: it usually ends in /v1."
	default:
		switch e.Fault {
		case Refused:
			what, remedy = "The model's provider refuses this bot", "Look at model.name, model.api_key and model.base_url."
		case Rejected:
			what = "The model's provider does not accept this request"
		case Overflow:
			what = "The request is longer than the model can read"
		case Busy:
			if e.Status > 0 {
				what = "The model's provider is too busy, or fails"
			}
		}
	}
	return strings.TrimSpace(what + e.why() + ". " + remedy)
}

// why is the status and the words, in brackets.
func (e *Error) why() string {
	var parts []string
	if e.Status > 0 {
		parts = append(parts, fmt.Sprintf("status %d", e.Status))
	}
	switch {
	case e.Said != "":
		parts = append(parts, "“"+e.Said+"”")
	case e.Err != nil:
		parts = append(parts, e.Err.Error())
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ": ") + ")"
}
