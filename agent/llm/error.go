package llm

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A Fault classifies the failure of a model call.
type Fault string

// The faults.
const (
	// Busy: overloaded, rate-limited or unreachable; the same call may work later.
	Busy Fault = "busy"
	// Overflow: the request is larger than the model's window.
	Overflow Fault = "overflow"
	// Refused: the key, the account or the model's name is not accepted.
	Refused Fault = "refused"
	// Rejected: this request will never be accepted.
	Rejected Fault = "rejected"
)

// A Cause says what an operator has to fix; "" if it is unknown.
type Cause string

// The causes.
const (
	CauseKey     Cause = "key"     // the key is missing, wrong, or lacks a permission
	CauseModel   Cause = "model"   // there is no model of that name
	CauseQuota   Cause = "quota"   // the account has no credit left
	CauseNetwork Cause = "network" // no connection to the server
	CausePlace   Cause = "place"   // the provider doesn't serve this machine's country or network
	CauseAddress Cause = "address" // a server answers there, but offers no chat completions
)

// An Error says why a model did not answer.
type Error struct {
	Fault      Fault
	Cause      Cause
	Status     int           // the HTTP status; 0 if there was none
	Code       string        // the provider's word for the error, suitable for a log; "" if it gave none
	RetryAfter time.Duration // how long the provider asks to wait; 0 if it does not say
	// Window is the size of the model's window in tokens, if an overflow error stated it; 0 otherwise.
	Window int
	// Said is the provider's message, shortened to one line, without the key. It may repeat what people said, so
	// owners may see it but it must not be logged.
	Said string
	// Explained says that the provider named a cause other than the request's length: its content, or a
	// parameter.
	Explained bool
	Tries     int // how often a chain has asked its models; 0 if the error is a single model's
	// Void is a partial answer; nil if nothing arrived. It costs money but is not used.
	Void *Answer
	Err  error
}

// Error returns the fault with its status, code and cause. It leaves out the underlying error if the provider
// sent a message, because that error may repeat what people said.
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

// MayBeLength reports whether the provider rejected the request with a status that may mean the request is too
// long. Many servers, and the proxies in front of them, report that in words of their own.
func (e *Error) MayBeLength() bool {
	return e.Fault == Rejected && slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, e.Status)
}

// TooLong reports whether the provider has rejected the request because it is too long, or may have.
func (e *Error) TooLong() bool { return e.Fault == Overflow || e.MayBeLength() }

// Unwrap returns the underlying error.
func (e *Error) Unwrap() error { return e.Err }

// LogValue returns the text that may be logged, which is the same as Error's.
func (e *Error) LogValue() slog.Value { return slog.StringValue(e.Error()) }

// Explain describes the failure for the people who run the bot, in the provider's or the
// network's own words, and says what to check: which of the settings of [model].
func (e *Error) Explain() string {
	_, remedy := e.inWords()
	return strings.TrimSpace(e.What() + ". " + remedy)
}

// What describes the failure as Explain does, but does not say what to check. It names no
// setting, and has no period at its end.
func (e *Error) What() string {
	what, _ := e.inWords()
	return what + e.reasonText()
}

// reasonText returns, in brackets, the HTTP status of a failure and the provider's message or, if there is
// none, the network's; "" if there is neither.
func (e *Error) reasonText() string {
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
