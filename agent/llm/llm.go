// Package llm is the contract with a large language model: what it is asked, what it answers, and why it does not.
//
// llm.go holds Model, the request and the answer; error.go what a failed request
// means and what is said of it. agent/openai and agent/demo implement Model.
package llm

import (
	"context"
	"encoding/json"
	"time"

	"parley/tools"
)

// A Model answers with text and tool calls.
type Model interface {
	// Generate asks once and returns the whole answer; meanwhile it calls emit
	// with what comes, in order, from the calling goroutine. An answer is whole
	// when the model said that it had ended: a stream that merely stops is an
	// error, and what was emitted of it is void. A tool use is never partial.
	// Errors are *Error, or ctx's.
	Generate(ctx context.Context, r Request, emit func(Delta)) (Answer, error)

	// Info says what is known of the model.
	Info() Info
}

// Info describes a model.
type Info struct {
	Name          string
	ContextTokens int    // the size of its window; 0 where that is not known
	ContextFrom   string // from where that is known, in words
	Blind         bool   // it is known to see no pictures
	Toolless      bool   // it is known to take no tools
	// Price is what its tokens cost, where Priced says that this is known.
	Price  Price
	Priced bool
}

// A Price is what a million tokens cost, in micro-dollars.
type Price struct{ Input, Cached, Output int64 }

// million is how many tokens a Price is for.
const million = 1_000_000

// Of is what an answer costs at the price, in micro-dollars, rounded up.
func (p Price) Of(u Usage) int64 {
	cached := min(max(u.Cached, 0), max(u.Input, 0))
	sum := product(u.Input-cached, p.Input) + product(cached, p.Cached) + product(u.Output, p.Output)
	return (sum + million - 1) / million
}

// product bounds tokens and price, so that a server that reports nonsense cannot make a
// sum overflow.
func product(tokens, price int64) int64 { return min(max(tokens, 0), 1<<28) * min(max(price, 0), 1e10) }

// A Request is what a model is asked.
type Request struct {
	// System is the prompt's prefix, the same bytes from step to step.
	System   string
	Messages []Message
	// Tools are sorted by name.
	Tools []tools.Spec
	// NoCalls forbids tool calls for this once; Tools are still shown.
	NoCalls bool
	// MaxTokens bounds the answer; 0 leaves it to the model.
	MaxTokens int
	// Tokens is about how many tokens it has, by whoever asks; 0 where nobody has counted.
	Tokens int
	// Session is whom the answer is for. A chain of models stays with the one that has
	// answered it.
	Session string
	// Retry, if set, is called by a model that asks more than once, before each further
	// try. What was emitted is void then. Its error ends the asking, and is Generate's.
	Retry func(ctx context.Context, again Retry) error
}

// A Retry is a further try of a request.
type Retry struct {
	Try      int           // which one it is, from 2 on
	Wait     time.Duration // before it
	From, To string        // the model that was asked, and the one that will be; often the same
	// Void is an answer that came in part: it is paid for, and not used. Nil where
	// nothing came.
	Void *Answer
}

// A Role says whose message it is.
type Role string

// The roles. Tool results are the user's.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// A Message is a run of blocks of one role.
type Message struct {
	Role   Role
	Blocks []Block
}

// A BlockKind says what a block is.
type BlockKind string

// The kinds of blocks.
const (
	BlockText       BlockKind = "text"        // Text
	BlockThinking   BlockKind = "thinking"    // Text, Provider
	BlockToolUse    BlockKind = "tool_use"    // Call, Name, Args, ProviderID, Provider
	BlockToolResult BlockKind = "tool_result" // Call, Name, Content, Failed, ProviderID
	BlockPicture    BlockKind = "picture"     // Picture, of the user; a model that does not see is told its path
)

// A Block is a piece of a message.
type Block struct {
	Kind BlockKind
	Text string

	Call    string // our id of the call: set by the caller of Generate, empty in an Answer
	Name    string // of the tool
	Args    json.RawMessage
	Content json.RawMessage
	Failed  bool

	// ProviderID is the provider's id of the call, Provider what else it wants
	// back word for word with this block.
	ProviderID string
	Provider   json.RawMessage

	Picture *Picture
}

// A Picture is a picture that the model is shown.
type Picture struct {
	Path string // by which the model knows it
	View string // the file that holds it, in the session's workspace
	Hash string // of that file's content
	Type string // MIME type
	Data []byte // its content, which whoever asks fills in
}

// An Answer is what a model said.
type Answer struct {
	Blocks []Block // thinking, text, tool_use
	Usage  Usage
	// Stop says why the answer is not whole; its tool uses are then not to be
	// trusted.
	Stop Stop
	// Reason is the provider's word for that, if it is one.
	Reason string
	// Model is the name of the one that has answered; "" where there is but one.
	Model string
}

// A Stop says why an answer ended before its end.
type Stop string

// The stops.
const (
	StopWhole    Stop = ""         // it did not: this is all
	StopLength   Stop = "length"   // it had reached its length
	StopWindow   Stop = "window"   // the model's window was full
	StopFiltered Stop = "filtered" // the provider keeps the rest back for its content
	StopBroken   Stop = "broken"   // the provider broke it off; the same call may work later
	StopLost     Stop = "lost"     // it was to end in tool calls, and there are none
	StopUnknown  Stop = "unknown"  // for a reason that nobody knows
)

// Usage is what an answer has cost.
type Usage struct {
	Input     int64 // of the prompt, cached ones included
	Cached    int64
	Output    int64 // those of its reasoning included
	Reasoning int64 // of Output
	// Estimated says that the provider reported nothing.
	Estimated bool
	// Cost is what the answer costs, in micro-dollars, where Priced says that this is known.
	Cost   int64
	Priced bool
}

// A Delta is a piece of a block as it arrives.
type Delta struct {
	Block int       // its index in the answer
	Kind  BlockKind // text, thinking or tool_use
	Text  string    // what was added; of a tool use, nothing
	Name  string    // of a tool use
}
