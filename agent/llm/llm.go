// Package llm is the contract with a large language model: its request, its answer, and
// its errors.
//
// llm.go holds Model, the request and the answer; error.go classifies and describes
// failed requests; server.go tells the operator's own servers from public ones.
// agent/openai and agent/demo implement Model.
package llm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"parley/tools"
)

// A Model is a large language model. It answers requests with text and tool calls.
type Model interface {
	// Generate asks once and returns the answer when the model has signaled its end; Answer.Stop says whether
	// it is complete. Meanwhile it calls emit with each piece that arrives, in order and from the calling
	// goroutine (see Delta.Void). If a stream merely stops, Generate returns an error, and the emitted pieces
	// are void. Errors are *Error, or ctx's. The answer belongs to the caller. The request is not changed,
	// except that its Messages may be released.
	//
	// Request and answer are pointers because thousands of turns may wait for answers: otherwise each function
	// on the way to the model would keep a copy on its stack meanwhile.
	Generate(ctx context.Context, r *Request, emit func(Delta)) (*Answer, error)

	// Info returns what is known about the model.
	Info() Info
}

// Info describes a model.
type Info struct {
	Name          string
	ContextTokens int    // the size of the model's window; 0 if that is not known
	ContextFrom   string // where the size comes from, in words
	Blind         bool   // whether the model is known to see no pictures
	Toolless      bool   // whether the model is known to take no tools
	// Price is the price of the model's tokens. It is known if Priced is true.
	Price  Price
	Priced bool
}

// A Price is the cost of a million tokens of each kind, in micro-dollars.
type Price struct{ Input, Cached, Output int64 }

// tokensPerPrice is the number of tokens that a Price applies to.
const tokensPerPrice = 1_000_000

// Of returns the cost of the tokens in u at this price, in micro-dollars, rounded up.
func (p Price) Of(u Usage) int64 {
	cached := min(max(u.Cached, 0), max(u.Input, 0))
	sum := tokensTimesPrice(u.Input-cached, p.Input) + tokensTimesPrice(cached, p.Cached) + tokensTimesPrice(u.Output, p.Output)
	return (sum + tokensPerPrice - 1) / tokensPerPrice
}

// tokensTimesPrice returns the price of that many tokens, in millionths of micro-dollars. It limits both numbers, so
// that a server that reports nonsense can't make a sum overflow.
func tokensTimesPrice(tokens, price int64) int64 {
	return min(max(tokens, 0), 1<<28) * min(max(price, 0), 1e10)
}

// A Request is a conversation for a model to continue.
type Request struct {
	// System holds the instructions. It has the same bytes from step to step.
	System string
	// Messages are the conversation. They may have been released, so call Restore before reading
	// them.
	Messages []Message
	// Tools are the tools that the model may call, sorted by name.
	Tools []tools.Spec
	// NoCalls forbids tool calls in this answer. The model still sees Tools.
	NoCalls bool
	// MaxTokens limits the length of the answer; 0 leaves it to the model.
	MaxTokens int
	// Tokens is the caller's estimate of the request's tokens; 0 if there is none.
	Tokens int
	// Session is the session that the answer is for. A chain of models stays with the model that answered the
	// session before.
	Session string
	// Turn is the id of the turn that the answer is for; "" if it is for something else.
	Turn string
	// Retry, if set, is called before each further try by a model that asks more than once. The pieces emitted
	// so far are void then. If Retry returns an error, Generate returns that.
	Retry func(ctx context.Context, again Retry) error
	// Render, if set, makes the same Messages again; see Release.
	Render func() []Message
}

// Release frees Messages, if they can be made again. A model calls it once it has written a request: the answer
// may take minutes, and thousands of requests may be waiting for theirs.
func (r *Request) Release() {
	if r.Render != nil {
		r.Messages = nil
	}
}

// Restore makes released Messages again.
func (r *Request) Restore() {
	if r.Messages == nil && r.Render != nil {
		r.Messages = r.Render()
	}
}

// A Retry describes a further try of a request.
type Retry struct {
	Try      int           // the number of this try, 2 or more
	Wait     time.Duration // before it
	From, To string        // the model that was asked last, and the one that is asked next; often the same
	Price    Price         // of the model that is asked next; 0 if it is not known
	// Void is a partial answer; nil if nothing arrived. It costs money but is not used.
	Void *Answer
}

// A Role says who wrote a message.
type Role string

// The roles. The results of tools have the user's role.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// A Message is a list of blocks by one role.
type Message struct {
	Role   Role
	Blocks []Block
}

// A BlockKind says what a Block holds, and so which of its fields are set.
type BlockKind string

// The kinds of blocks, each with the fields that it has.
const (
	BlockText       BlockKind = "text"        // Text, Provider
	BlockThinking   BlockKind = "thinking"    // Text, Provider
	BlockToolUse    BlockKind = "tool_use"    // Call, Name, Args, ProviderID, Provider
	BlockToolResult BlockKind = "tool_result" // Call, Name, Content, Failed, ProviderID
	BlockPicture    BlockKind = "picture"     // Picture, by the user; a model that sees no pictures gets its path
)

// A Block is one part of a message.
type Block struct {
	Kind BlockKind
	Text string

	Call    string // our id of the call: set by the caller of Generate, empty in an Answer
	Name    string // the tool's name
	Args    json.RawMessage
	Content json.RawMessage
	Failed  bool

	// ProviderID is the provider's id of the call. Provider holds anything else that the provider wants back
	// unchanged with this block.
	ProviderID string
	Provider   json.RawMessage

	Picture *Picture
}

// A Picture is a picture that a model is shown.
type Picture struct {
	Path string // the path under which the model knows it
	View string // the file that holds the picture for the model, in the session's workspace
	Hash string // the hash of that file's content
	Type string // MIME type
	Data []byte // that file's content, filled in by the caller of Generate
}

// An Answer is a model's answer to a request.
type Answer struct {
	Blocks []Block // thinking, text, tool_use
	Usage  Usage
	// Stop says why the answer is incomplete; "" if it is complete. The tool uses of an
	// incomplete answer may be cut off and must not be run.
	Stop Stop
	// Reason is the provider's word for Stop; "" if it isn't a single word.
	Reason string
	// Model is the name of the model that answered, if several replace one another; "" for a model that was
	// asked alone.
	Model string
}

// HasCalls reports whether the answer calls tools.
func (a *Answer) HasCalls() bool {
	for i := range a.Blocks { // by index: a copy of a block is large
		if b := &a.Blocks[i]; b.Kind == BlockToolUse && b.Name != "" {
			return true
		}
	}
	return false
}

// Text returns the answer's text, without the model's thoughts.
func (a *Answer) Text() string {
	var text strings.Builder
	for i := range a.Blocks {
		if b := &a.Blocks[i]; b.Kind == BlockText {
			text.WriteString(b.Text)
		}
	}
	return text.String()
}

// WithoutCalls returns the answer without its tool calls, which may be cut off.
func (a *Answer) WithoutCalls() *Answer {
	without := *a
	without.Blocks = slices.DeleteFunc(slices.Clone(a.Blocks), func(b Block) bool { return b.Kind == BlockToolUse })
	return &without
}

// A Stop says why an answer ended early.
type Stop string

// The stops.
const (
	StopWhole    Stop = ""         // it did not end early: it is complete
	StopLength   Stop = "length"   // the answer reached its maximum length
	StopWindow   Stop = "window"   // the model's window was full
	StopFiltered Stop = "filtered" // the provider withholds the rest because of its content
	StopBroken   Stop = "broken"   // the provider broke it off; the same call may work later
	StopLost     Stop = "lost"     // the server announced tool calls and sent none
	StopUnknown  Stop = "unknown"  // another reason, which Parley doesn't know
)

// Usage is the tokens and the cost of an answer.
type Usage struct {
	Input     int64 // tokens of the prompt, cached ones included
	Cached    int64 // tokens of the prompt that the provider had in its cache
	Output    int64 // tokens of the answer, those of its reasoning included
	Reasoning int64 // tokens of reasoning
	// Estimated reports that the provider gave no numbers, so the tokens are estimates.
	Estimated bool
	// Cost is what the answer costs, in micro-dollars: as the provider says, or else by the model's Price. It
	// is known if Priced is true.
	Cost   int64
	Priced bool
}

// A Delta is a piece of a block that arrives while the model answers.
type Delta struct {
	Block int       // the block's index in the answer
	Kind  BlockKind // text, thinking or tool_use
	Text  string    // the added text; of a tool use the added part of its arguments, as the model writes them
	Name  string    // the tool's name, with the first piece of a tool use
	// Void says that all blocks of this answer emitted so far are void and are sent again, because text turned
	// out to be thinking, or the other way around. The other fields are empty.
	Void bool
}
