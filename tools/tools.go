// Package tools is the contract of an agent's tools: specs, calls, results, errors, and the set that an agent has.
//
// A tool is made by New from a function; the schema of its arguments comes from
// their type. Tools know nothing of permissions, deadlines, redaction or
// truncation: their caller applies these to all tools alike. The families of tools
// are in the folders below. What they need of the rest of the program they get as
// small interfaces and functions.
//
// The files, in reading order: tools.go is the contract; new.go makes a tool of a
// function; set.go is an agent's set; args.go, fit.go, schema.go, pattern.go and
// words.go read, repair and check what a model wrote as arguments; annotate.go adds to a
// result what was repaired; truncate.go shortens a result; verdict.go is what a guard
// says of a call, and ask.go what a tool asks a person.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// An Effect says what repeating a call would do. It decides whether a call that was
// interrupted runs again, and whether calls run at the same time.
type Effect string

const (
	// Pure calls change nothing. They run at the same time and are repeated freely.
	Pure Effect = "pure"
	// Idempotent calls may be repeated under the same Key: the second does nothing new.
	Idempotent Effect = "idempotent"
	// Reconcilable calls can find out whether they have happened: see Reconciler.
	Reconcilable Effect = "reconcilable"
	// Once calls are never repeated. If one is interrupted, its outcome is unknown.
	Once Effect = "once"
)

// A Permission is the capability that an agent needs for a tool; "" is none.
type Permission string

// The capabilities.
const (
	FileRead  Permission = "file_read"
	FileWrite Permission = "file_write"
	Shell     Permission = "shell"
	Network   Permission = "network"
	Git       Permission = "git"
	Session   Permission = "session"
)

// Permissions are all of them.
func Permissions() []Permission {
	return []Permission{FileRead, FileWrite, Shell, Network, Git, Session}
}

// A Spec is what a model and a caller need to know of a tool.
type Spec struct {
	Name        string // at most 64 of A-Za-z0-9_-
	Description string
	// Schema is the JSON Schema of the arguments, always of an object.
	Schema json.RawMessage
	// Effect is that of every call, unless the tool is an Effecter.
	Effect Effect
	// Timeout is how long a call may take, and MaxTimeout the longest time that the model
	// may ask for, by an argument of that name. Zero means 10 s and 60 s; a negative
	// MaxTimeout says that it may not ask: what is called timeout is the tool's own.
	Timeout    time.Duration
	MaxTimeout time.Duration
	Permission Permission
}

// A Call is one use of a tool.
type Call struct {
	// ID names the call within its session for good.
	ID string
	// Key is the same for every attempt at this call and for no other call: the
	// idempotency key for what it does.
	Key  string
	Name string
	// Args is a JSON object that fits the schema.
	Args json.RawMessage
	// Attempt counts from 1.
	Attempt int
	// Held is when the caller last knew that no other process works on the session; zero
	// if no other can. A tool that changes something must do so soon after it: another
	// process may take over the session later.
	Held time.Time

	Turn    string
	Session string // the session's key
	Agent   string
	Person  string // on whose behalf: CHANNEL:USER
	Called  string // what that person's platform calls them; it proves nothing
	Owner   bool   // whether that person owns the bot
	At      string // the address of the conversation, CHANNEL:CHAT or CHANNEL:CHAT/THREAD
	// Scheduled says that the turn was begun by a schedule, and not by what that person
	// has just said.
	Scheduled bool
	// Private says that nobody but that person reads the conversation.
	Private bool
	// Untrusted says that the model which asked for this call had read what nobody
	// here vouches for (see Result), or a summary of it.
	Untrusted bool
	// Seen, if set, tells whether a person has written a text, or a result held it, word
	// for word, among what that model was shown. After something untrusted only the
	// results of tools count that brings tells: a model can make most tools say anything.
	Seen func(text string, brings func(tool string) bool) bool

	// Progress, if set, tells watchers how far the call is. It never blocks.
	Progress func(string)
}

// A Result is what a call gives back.
type Result struct {
	// Content is a JSON value, whole: the caller truncates it.
	Content json.RawMessage
	// Untrusted says that Content holds what strangers may have written: a page of
	// the web, another program's answer. What a model reads there may try to give
	// it orders.
	Untrusted bool
	// Pictures are what the model is shown beside Content, if it can see.
	Pictures []Picture
	// Kept is what is kept in place of Content, which the model is shown in this turn
	// alone; nil keeps Content.
	Kept json.RawMessage
}

// A Picture is a picture that a model is shown. It is kept in a file, and named by it.
type Picture struct {
	Path string // of what it shows, as the model knows it
	View string // the file with the picture as it is shown
	Hash string // of the content of that file
	Type string // MIME type
}

// Shown has a tool's function show the model pictures beside a value.
type Shown struct {
	Value    any
	Pictures []Picture
}

// Untrusted marks what a tool's function returns as an untrusted Result.
type Untrusted struct{ Value any }

// Fleeting has a tool's function show the model a value in this turn alone: what is kept
// of it is Kept. It may be the value of an Untrusted.
type Fleeting struct{ Value, Kept any }

// A Tool is one thing an agent can do.
type Tool interface {
	Spec() Spec
	// Run runs a call once. Its error is for the model: an *Error has a code, and any
	// other counts as ExecutionFailed. An error does not end the turn; only the end of
	// ctx does. The Result beside an error says whether the error quotes what is untrusted.
	Run(ctx context.Context, call Call) (Result, error)
}

// An Effecter is a tool whose effect depends on its arguments.
type Effecter interface {
	EffectOf(call Call) Effect
}

// A Reconciler is a tool that can find out whether a call that was interrupted took
// effect. Reconcile returns the result and true if it did, and false if it did not and
// has to be run; an error means that the tool cannot tell.
type Reconciler interface {
	Reconcile(ctx context.Context, call Call) (Result, bool, error)
}

// EffectOf is the effect of one call of a tool; an effect that is not declared is Once.
func EffectOf(t Tool, call Call) Effect {
	effect := t.Spec().Effect
	if e, ok := t.(Effecter); ok {
		effect = e.EffectOf(call)
	}
	switch effect {
	case Pure, Idempotent, Reconcilable:
		return effect
	}
	return Once
}

// A Code says what went wrong, for models, metrics and audits.
type Code string

// The codes.
const (
	NotFound         Code = "not_found" // no such tool
	InvalidArgs      Code = "invalid_args"
	ExecutionFailed  Code = "execution_failed"
	PermissionDenied Code = "permission_denied"
	FileNotFound     Code = "file_not_found"
	InvalidPath      Code = "invalid_path"
	Timeout          Code = "timeout"
	OutcomeUnknown   Code = "outcome_unknown"
	Cancelled        Code = "cancelled"
)

// An Error is a failure as the model reads it.
type Error struct {
	Code Code `json:"code"`
	// Message says what went wrong and what would work instead.
	Message string `json:"message"`
}

// Errorf makes an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error is the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Result is the error as a result: {"error": {"code", "message"}}.
func (e *Error) Result() Result {
	raw, err := json.Marshal(map[string]*Error{"error": e})
	if err != nil { // two strings always marshal
		panic(err)
	}
	return Result{Content: raw}
}
