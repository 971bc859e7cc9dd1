package agent

import (
	"context"
	"encoding/json"

	"parley/bus"
)

// A Voice reads answers aloud.
type Voice interface {
	// Reaches reports whether people at an address can get a recording.
	Reaches(at bus.Address) bool
	// AnswersSpeech reports whether the answer to a voice message at an address is read aloud, too.
	AnswersSpeech(at bus.Address) bool
	// Mark reports whether a call of a tool asks that the turn's answer be read aloud, and what is read in its place: a
	// Markdown text, or "" for the answer itself.
	Mark(tool string, args json.RawMessage) (text string, marks bool)
	// Words returns the words that are read aloud for a Markdown text, and whether they are all of it; "" if nothing
	// can be read.
	Words(text string) (words string, whole bool)
	// Price returns the name of the model that speaks, and what it costs to have it read these words, in micro-dollars.
	// known is false if nobody knows.
	Price(words string) (model string, micro int64, known bool)
	// Find returns the recording that Record has made for a message; nil if there is none. sent reports that the message
	// needs none, because the message was handed over for sending already.
	Find(ctx context.Context, r Reading) (found *bus.FileRef, sent bool, err error)
	// Record asks the model once for a recording, and stores it until the message is sent. An *UnreadError says why there
	// is no recording.
	Record(ctx context.Context, r Reading) (bus.FileRef, error)
}

// A Reading is a text that is read aloud with a message.
type Reading struct {
	Session string
	Message string // the id of the message that the recording goes with
	At      bus.Address
	Words   string
}

// An UnreadError says why a text was not read aloud.
type UnreadError struct {
	Code string // for metrics: failed, refused, timeout, over_budget, no_room or given_up
	Why  string // a clause for people
	Paid bool   // whether the model may have done its work
	Err  error  // for the log
}

// Error returns the code, and what is known besides.
func (e *UnreadError) Error() string {
	if e.Err != nil {
		return e.Code + ": " + e.Err.Error()
	}
	return e.Code
}

// Unwrap returns the cause.
func (e *UnreadError) Unwrap() error { return e.Err }
