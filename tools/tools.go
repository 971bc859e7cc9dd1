// Package tools is the contract of an agent's tools: specs, calls, results, errors, and the set that an agent has.
//
// New makes a tool from a function; the schema of its arguments is derived from their type. Tools know nothing
// about permissions, deadlines, redaction or truncation: their caller applies these to all tools in the same way.
// The families of tools are in the folders below. They get what they need from the rest of the program as small
// interfaces and functions.
//
// The files, in reading order: tools.go is the contract; touch.go says what a call touches, and show.go how people
// see it; timeout.go says how long a call may take; new.go makes a tool from a function; set.go holds an agent's set;
// args.go, fit.go, schema.go, pattern.go and words.go parse, repair and check the arguments that a model wrote;
// annotate.go adds the repairs to a result; truncate.go shortens a result; verdict.go defines a guard's decision on a
// call; ask.go defines a tool's question to people, task.go its task for a sub-agent, and postponed.go that it has to wait. below.go, direrror.go and
// textfile.go are for tools that read the files of a session.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/tools/plainjson"
)

// An Effect says what would happen if a call were made twice. It decides whether an interrupted
// call runs again, and whether calls run at the same time.
type Effect string

const (
	// Pure calls change nothing. They run at the same time and may be repeated freely.
	Pure Effect = "pure"
	// Idempotent calls may be repeated under the same Key: the second call does nothing new.
	Idempotent Effect = "idempotent"
	// Reconcilable calls can find out whether they took effect: see Reconciler.
	Reconcilable Effect = "reconcilable"
	// Once calls are never repeated. If such a call is interrupted, its outcome is unknown.
	Once Effect = "once"
)

// A Permission is what an agent must be granted in order to use a tool; "" means that the tool needs none.
type Permission string

// The permissions.
const (
	FileRead  Permission = "file_read"
	FileWrite Permission = "file_write"
	Shell     Permission = "shell"
	Network   Permission = "network"
	Git       Permission = "git"
	Session   Permission = "session"
)

// Permissions returns all permissions.
func Permissions() []Permission {
	return []Permission{FileRead, FileWrite, Shell, Network, Git, Session}
}

// A Spec describes a tool to a model and to its caller.
type Spec struct {
	Name        string // at most 64 of A-Za-z0-9_-
	Description string
	// Schema is the JSON Schema of the arguments; it always describes an object.
	Schema json.RawMessage
	// Effect is what repeating any call would do, unless the tool is an Effecter.
	Effect Effect
	// Timeout is how long a call may take, and MaxTimeout is the longest time that the model may
	// ask for with an argument named timeout. Zero means 10 s and 60 s. A negative MaxTimeout
	// says that the model may not ask: an argument named timeout then belongs to the tool itself.
	Timeout    time.Duration
	MaxTimeout time.Duration
	Permission Permission
	// Touches returns what a call touches: see Touch. It is called often, and must be fast. If it is nil, the tool
	// doesn't declare what its calls touch, and the worst is assumed.
	Touches func(call Call) Touch
	// Shows returns what people see of a call that needs their approval: see Showing. If it is nil, they see the
	// arguments by name.
	Shows func(ctx context.Context, call Call) Showing
	// After are the names of other tools. If a model asks for calls of several tools in one step, a call of this
	// tool runs after the calls of those, and doesn't run if one of them fails.
	After []string
	// Version, if set, returns a text that changes whenever what a call would run changes, such as a hash of the
	// program. An approval is only for the version that was there when people were asked.
	Version func() (string, error)
	// Quotes says that results contain only text by others, so that a model cannot make the tool print a text of
	// the model's choosing.
	Quotes bool
}

// A Call is one use of a tool.
type Call struct {
	// ID identifies the call within its session forever.
	ID string
	// Key is the same for every attempt of this call and differs from that of every other call: it is the
	// idempotency key for what the call does.
	Key  string
	Name string
	// Args is a JSON object that matches the schema.
	Args json.RawMessage
	// HeldAt is the last time at which it was certain that no other process works on the session; zero if no other can.
	// A tool that changes something must do so soon after that time, because another process may take over the session
	// later.
	Attempt int
	// HeldAt is the last time at which it was certain that no other process works on the session; zero if no other
	// can. A tool that changes something must do so soon after that time, because another process may take over the
	// session later.
	HeldAt time.Time
	// CheckLease, if set, returns an error if another process may work on the session. A tool that changes something
	// after a long time of work calls it first; HeldAt is from before that time.
	CheckLease func(ctx context.Context) error
	// WaitsUntil is the time until which the call waits for a device, because an earlier attempt was postponed: see
	// Postponed. It is zero if none was.
	WaitsUntil time.Time

	Turn    string
	Session string // the session's key
	Agent   string
	// Parent is the key of the session for which a sub-agent makes the call; "" if the caller is not a sub-agent.
	Parent     string
	Person     string // the person on whose behalf the call is made: CHANNEL:USER
	PersonName string // the person's name on their platform; it proves nothing
	Owner      bool   // whether that person owns the bot
	Address    string // the address of the conversation, CHANNEL:CHAT or CHANNEL:CHAT/THREAD
	// Scheduled says that a schedule began the turn, rather than a message that the person has just sent.
	Scheduled bool
	// Private says that only that person reads the conversation.
	Private bool
	// Untrusted says that the model that asked for this call had already read content from strangers (see
	// Result.Untrusted), or a summary of it.
	Untrusted bool
	// Approved says that a person has approved this call.
	Approved bool
	// Touches returns what the call touches. It is the function of the tool's Spec; if it is nil,
	// the worst is assumed.
	Touches func(call Call) Touch
	// Seen, if set, returns where the model has read a complete address, word for word, in a person's message or in a
	// tool's result. Once the model has read something untrusted, only results of tools that quote count (see
	// Spec.Quotes), because a model can make most tools print any text.
	Seen func(address string) Sighting
	// Spent, if set, returns what other calls of the conversation have spent: see Verdict.Spends.
	Spent func() Spending

	// Progress, if set, reports the call's progress to people who watch. Each report replaces the last one and may
	// have several lines. It never blocks.
	Progress func(string)
}

// A Result is what a call returns.
type Result struct {
	// Content is a complete JSON value: the caller of the tool truncates it.
	Content json.RawMessage
	// Untrusted says that Content contains text that strangers may have written, such as a web page or another
	// program's answer. It may try to give orders to a model that reads it.
	Untrusted bool
	// Pictures are shown to the model with Content, if the model can see pictures.
	Pictures []Picture
	// Field is the field of Content that has the main text, such as that of a file; "" if none has. MIME is the
	// type of that text, or of a Content that is a text; "" for plain text. Programs are shown the text, and models
	// the whole Content.
	Field, MIME string
	// StoredContent is stored in the session instead of Content, which the model then sees only in this turn; if
	// StoredContent is nil, Content is stored.
	StoredContent json.RawMessage
	// Enclosed are paths of files in the session's workspace that are sent with the turn's answer, with the content
	// that they have then.
	Enclosed []string
}

// A Picture is a picture that a model is shown. It is stored in a file.
type Picture struct {
	Path string // the path of the original, as the model knows it
	View string // the file that contains the picture in the form in which the model sees it
	Hash string // the hash of that file's content
	Type string // MIME type
}

// Shown is what a tool's function returns to show the model pictures along with a value.
type Shown struct {
	Value    any
	Pictures []Picture
}

// Untrusted is what a tool's function returns around its value to mark the result as possibly written by strangers:
// see Result.Untrusted.
type Untrusted struct{ Value any }

// Typed is what a tool's function returns around its value to say which field of it has the main text, and of which
// type that is: see Result.Field. A Typed may be the value of an Untrusted.
type Typed struct {
	Value       any
	Field, MIME string
}

// Fleeting is what a tool's function returns to show the model Value only in this turn; the session stores StoredValue
// instead. A Fleeting may be the value of an Untrusted.
type Fleeting struct{ Value, StoredValue any }

// Enclosed is what a tool's function returns around its value to send files of the session's workspace with the turn's
// answer: see Result.Enclosed.
type Enclosed struct {
	Value any
	Files []string
}

// A Tool is one ability of an agent, such as reading a file.
type Tool interface {
	Spec() Spec
	// Run runs a call once. Its error is for the model: an *Error has a code, and any other error
	// counts as ExecutionFailed. An error does not end the turn; only the end of ctx does. The
	// Result returned with an error says whether the error quotes untrusted content.
	Run(ctx context.Context, call Call) (Result, error)
}

// An Effecter is a tool whose effect depends on the arguments of the call.
type Effecter interface {
	EffectOf(call Call) Effect
}

// A Reconciler is a tool that can find out whether an interrupted call took effect. Reconcile
// returns the result and true if the call took effect, and false if it did not and has to be run;
// an error means that the tool cannot tell.
type Reconciler interface {
	Reconcile(ctx context.Context, call Call) (Result, bool, error)
}

// EffectOf returns the effect of one call of a tool. An undeclared effect counts as Once.
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

// A Code classifies what went wrong, for models, metrics and audits.
type Code string

// What can go wrong with a call.
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
	RateLimited      Code = "rate_limited" // the person has had as many calls as the operator allows
	NodeAway         Code = "node_away"    // the device that has the tool has no link now; nothing was done
)

// ErrUnwanted is the cause of the end of a call's ctx if the call's outcome is no longer wanted, for example after
// /stop. After any other end, such as the process's, the next attempt of the call asks for the outcome.
var ErrUnwanted = errors.New("nobody wants the outcome anymore")

// An Error is a failed call, in the form in which the model reads it.
type Error struct {
	Code Code `json:"code"`
	// Message says what went wrong and what would work instead.
	Message string `json:"message"`
}

// Errorf makes an Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the code and the message as one text.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Result returns the error as the result of a call: {"error": {"code", "message"}}.
func (e *Error) Result() Result {
	raw, err := plainjson.Marshal(map[string]*Error{"error": e})
	if err != nil { // two strings always marshal
		panic(err)
	}
	return Result{Content: raw}
}
