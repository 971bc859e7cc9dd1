package agent

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// A ModelFault says what a failed call to a model means.
type ModelFault string

// The faults.
const (
	// ModelBusy: overloaded, limited or out of reach; the same call may work later.
	ModelBusy ModelFault = "busy"
	// ModelOverflow: the request is larger than the model's window.
	ModelOverflow ModelFault = "overflow"
	// ModelRefused: the key, the account or the model's name is not accepted.
	ModelRefused ModelFault = "refused"
	// ModelRejected: this request will never be accepted.
	ModelRejected ModelFault = "rejected"
)

// A ModelCause says what an operator has to look at, where that is known.
type ModelCause string

// The causes.
const (
	CauseKey     ModelCause = "key"     // the key is missing, wrong, or not allowed this
	CauseModel   ModelCause = "model"   // there is no model of that name
	CauseQuota   ModelCause = "quota"   // the account has no credit left
	CauseNetwork ModelCause = "network" // no connection to the server
	CauseAddress ModelCause = "address" // something is there, but it answers no chats
)

// A ModelError is why a model did not answer.
type ModelError struct {
	Fault      ModelFault
	Cause      ModelCause
	Status     int           // HTTP, where there was one
	Code       string        // the provider's word for it, fit for a log; "" where it gave none
	RetryAfter time.Duration // what the provider asks for
	// Window is the model's context in tokens, where an overflow said how large it is.
	Window int
	// Said is what the provider wrote about it, in one short line without the
	// key. It may repeat what people said, so it belongs to owners and to no log.
	Said string
	Err  error
}

// Error is the fault with its status and code, and the cause where it is not
// the provider's own word: that may repeat what was said.
func (e *ModelError) Error() string {
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
func (e *ModelError) Unwrap() error { return e.Err }

// LogValue is what a log may hold of it.
func (e *ModelError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Told says to whoever runs the bot what failed, in the provider's own words or
// those of the network, and what to look at.
func (e *ModelError) Told() string {
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
		case ModelRefused:
			what, remedy = "The model's provider refuses this bot", "Look at model.name, model.api_key and model.base_url."
		case ModelRejected:
			what = "The model's provider does not accept this request"
		case ModelOverflow:
			what = "The request is longer than the model can read"
		case ModelBusy:
			if e.Status > 0 {
				what = "The model's provider is too busy, or fails"
			}
		}
	}
	return strings.TrimSpace(what + e.why() + ". " + remedy)
}

// why is the status and the words, in brackets.
func (e *ModelError) why() string {
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
