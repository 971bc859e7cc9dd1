package bus

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
)

// ErrGone says that the bus no longer has all events after the id given to Subscribe: read the log, and
// subscribe without an id.
var ErrGone = errors.New("events are no longer held")

// These are the types of events, with the fields of Event that they set. Events only inform watchers; the durable
// record is the session's log.
const (
	TurnStart    = "turn_start"    // Causes: a turn has begun
	BlockStart   = "block_start"   // Block, Kind, Tool, and Call, Cause and Name if they are known: a block begins, or begins again
	BlockDelta   = "block_delta"   // Block, Kind, Delta: the next piece of that block
	BlockStop    = "block_stop"    // Block, Kind, Tool, Call, Input, Failed, Reason, Metadata, Cut: the log has that block
	BlockReset   = "block_reset"   // the blocks from Block on are void and come again
	Retried      = "retry"         // Retry: the model is asked again after an error
	Compacted    = "compaction"    // Compaction: the model is shown less of the conversation
	Used         = "usage"         // Usage: a model call has ended
	ToolStart    = "tool_start"    // Tool, Call, Delta = arguments in brief: a tool call begins
	ToolProgress = "tool_progress" // Tool, Call, Delta: what the running call reports
	ToolEnd      = "tool_end"      // Tool, Call, Error if it failed
	TurnParked   = "parked"        // the turn waits for people, or for nodes only if its Kind is KindNode
	Asked        = "ask"           // Ask: people are asked
	AskResolved  = "ask_resolved"  // Ask, which has ended
	TurnComplete = "turn_complete" // Causes: the turn has ended
	TurnError    = "turn_error"    // Causes, Error: the turn has failed
	Limited      = "limited"       // a platform accepts nothing for Delta (a duration) in Route's chat, or in all chats if that is ""; Call is the process that got this answer. Only in channels' feeds
	Spoken       = "message"       // Delta was said in the conversation; Call is the message's id. Only where people read answers by watching, and for what its Kind names
)

// KindNode is the Kind of the TurnParked event of a turn that waits for nodes that are away, and for nobody else.
const KindNode = "node"

// These are the Kinds of Spoken events whose text is neither an answer nor a command's reply.
const (
	// KindOperator is for words that an operator says in person.
	KindOperator = "operator"
	// KindTold is for words that an agent says on behalf of a person in another conversation.
	KindTold = "told"
)

// A Failure is an error in the form that programs and models read.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// An Event is ephemeral news about a turn. Its Type says which fields are set.
type Event struct {
	// ID grows within a feed, even across restarts. The bus assigns it, and Subscribe can continue after
	// it.
	ID uint64 `json:"-"`

	Type    string  `json:"-"`
	Session string  `json:"-"`
	Route   Address `json:"-"` // where the turn's reply goes

	Turn   string   `json:"turn,omitempty"`
	Causes []string `json:"causes,omitempty"` // the ids of the messages that the turn answers
	Block  int      `json:"block"`            // which block of the turn, from 0
	Kind   string   `json:"kind,omitempty"`   // what that block is: user, thinking, text, tool_use or tool_result; for Spoken see KindOperator and KindTold, for TurnParked KindNode
	Delta  string   `json:"delta,omitempty"`
	Tool   string   `json:"tool,omitempty"`
	Call   string   `json:"call,omitempty"`
	Error  *Failure `json:"error,omitempty"`
	Ask    *Ask     `json:"ask,omitempty"`
	Retry  *Retry   `json:"retry,omitempty"`
	// Compaction says by how much the request became shorter.
	Compaction *Compaction `json:"compaction,omitempty"`
	Usage      *Usage      `json:"usage,omitempty"`
	// News is set in the server's feed only.
	News    *News `json:"news,omitempty"`
	*Detail       // fields that few blocks have; nil if this one has none of them
}

// A Detail holds what a block contains besides its text.
type Detail struct {
	Input  json.RawMessage `json:"input,omitempty"`    // for a tool_use: the complete input, which replaces the pieces
	Failed bool            `json:"is_error,omitempty"` // for a tool_result: whether the call has failed
	// Reason and Metadata are set for a tool_result: the code of the failure, and what describes the result.
	Reason   string         `json:"reason,omitempty"`
	Metadata ResultMetadata `json:"metadata,omitzero"`
	Cut      bool           `json:"cut,omitempty"`   // whether the log contains more than is shown
	Cause    string         `json:"cause,omitempty"` // for a person's message: its id
	Name     string         `json:"name,omitempty"`  // for a person's message: the person's name on the platform
}

// ResultMetadata describes the result of a tool call; see the type of the same name in package sessions.
type ResultMetadata struct {
	Bytes     int64  `json:"bytes"`
	Truncated bool   `json:"truncated"`
	MIME      string `json:"mime"`
}

// Size returns the approximate size of an event's texts in bytes.
func (e *Event) Size() int {
	n := len(e.Delta)
	for _, c := range e.Causes {
		n += len(c)
	}
	if e.Error != nil {
		n += len(e.Error.Message)
	}
	if e.Detail != nil {
		n += len(e.Input) + len(e.Cause) + len(e.Name)
	}
	return n
}

// A Usage says how many tokens one model call has used, even if its answer was dropped.
type Usage struct {
	Model     string `json:"model"`
	Input     int64  `json:"input"`     // tokens, including cached ones
	Cached    int64  `json:"cached"`    // part of Input: those that the provider had in its cache
	Output    int64  `json:"output"`    // tokens, including those of reasoning
	Reasoning int64  `json:"reasoning"` // part of Output: those of the model's reasoning
	// Microdollars is the cost of the call; nil if it is unknown.
	Microdollars *int64 `json:"microdollars,omitempty"`
	Estimated    bool   `json:"estimated"` // whether the tokens are estimates, because the provider gave none
}

// A Compaction says how many tokens the next request had before and after it was shortened.
type Compaction struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// A Retry is another attempt to get an answer from a model.
type Retry struct {
	Attempt int    `json:"attempt"`  // 2 for the first repetition, then 3, and so on
	AfterMS int64  `json:"after_ms"` // the wait before this attempt, in milliseconds
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"` // the model that is asked instead of From, if From failed
}

// A Feed names a stream of events to which watchers subscribe.
type Feed string

// SessionFeed names the feed with the events of one session.
func SessionFeed(key string) Feed { return Feed("session/" + key) }

// ChannelFeed names the feed with the events of all turns whose reply goes through a
// channel. They may come some hundredths of a second late, and several at once.
func ChannelFeed(channel string) Feed { return Feed("channel/" + channel) }

// An Emitter takes events for watchers.
type Emitter interface {
	// Emit publishes e in the feeds of its session and of its route's channel, and the result of
	// ForServer in the server's feed. If IsServersOnly is true, it publishes e only in the server's feed.
	// It never blocks and never fails; events that it cannot handle in time are dropped and counted.
	Emit(e Event)
}

// Events carries events to watchers. It drops events rather than wait, because the log is
// the record.
type Events interface {
	Emitter

	// Subscribe follows a feed from the event after that id on; 0 means from now on. The subscription is
	// active when Subscribe returns, and the sequence ends when ctx does. A subscriber that is too slow
	// loses the oldest events, and gets one pair with the error ErrGone in their place. Subscribe itself
	// returns ErrGone if the bus no longer has all events after that id: it keeps the last few thousand
	// of a session and of the server. Forget removes the server's, and then those who watch them get
	// ErrGone, so that they forget, too.
	Subscribe(ctx context.Context, feed Feed, after uint64) (iter.Seq2[Event, error], error)
}

// A History reads the events of sessions that the bus still has.
type History interface {
	// HeldEvents returns the events of a session's feed that the bus has now, the oldest first. If some
	// are missing in between, it returns only those after the last gap. An event that was emitted a
	// moment ago may not be among them.
	HeldEvents(ctx context.Context, feed Feed) ([]Event, error)
}
