package bus

import (
	"context"
	"errors"
	"iter"
)

// ErrGone says that the events after that id are no longer all held: read the
// log for a snapshot and subscribe from now on.
var ErrGone = errors.New("events are no longer held")

// The types of events. What is durable is in the session's log; events are news
// for those who watch.
const (
	TurnStart    = "turn_start"    // Causes
	BlockStart   = "block_start"   // Block, Kind; Tool and Call for a tool_use
	BlockDelta   = "block_delta"   // Block, Kind, Delta
	BlockStop    = "block_stop"    // Block, Kind
	BlockReset   = "block_reset"   // the blocks from Block on are void: the model is asked again
	Retried      = "retry"         // Retry: the model is asked again
	Compacted    = "compaction"    // Compaction: the model is shown less of the past
	ToolStart    = "tool_start"    // Tool, Call, Delta = arguments in brief
	ToolProgress = "tool_progress" // Tool, Call, Delta
	ToolEnd      = "tool_end"      // Tool, Call, Error if it failed
	TurnParked   = "parked"        // waits for somebody
	Asked        = "ask"           // Ask: somebody is asked
	AskResolved  = "ask_resolved"  // Ask, which has ended
	TurnComplete = "turn_complete" // Causes
	TurnError    = "turn_error"    // Causes, Error
	Limited      = "limited"       // a platform wants nothing in Route's chat, "" being the whole channel, for Delta (a duration); Call is who was told so. Only in channels' feeds
	Spoken       = "message"       // Delta was said to the conversation; Call is the message's id. Only where watching is how it is read
)

// Failure is an error as programs and models read it.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// An Event is ephemeral news about a turn. Which fields are set depends on Type.
type Event struct {
	// ID grows within a feed, over restarts too. The bus assigns it.
	ID uint64 `json:"-"`

	Type    string  `json:"-"`
	Session string  `json:"-"`
	Route   Address `json:"-"` // where the turn's reply goes

	Turn   string   `json:"turn,omitempty"`
	Causes []string `json:"causes,omitempty"` // message ids
	Block  int      `json:"block"`            // counts within a turn, from 0
	Kind   string   `json:"kind,omitempty"`   // of the block: thinking, text, tool_use
	Delta  string   `json:"delta,omitempty"`
	Tool   string   `json:"tool,omitempty"`
	Call   string   `json:"call,omitempty"`
	Error  *Failure `json:"error,omitempty"`
	Ask    *Ask     `json:"ask,omitempty"`
	Retry  *Retry   `json:"retry,omitempty"`
	// Compaction is how much less.
	Compaction *Compaction `json:"compaction,omitempty"`
}

// A Compaction is how many tokens the next request would have had, and has.
type Compaction struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// A Retry is a further try to have a model answer.
type Retry struct {
	Attempt int    `json:"attempt"`  // from 2 on
	AfterMS int64  `json:"after_ms"` // until then nobody is asked
	From    string `json:"from,omitempty"`
	To      string `json:"to,omitempty"` // another model than From where that one is given up
}

// A Feed is what a watcher follows.
type Feed string

// SessionFeed carries the events of one session.
func SessionFeed(key string) Feed { return Feed("session/" + key) }

// ChannelFeed carries the events of all turns whose reply goes through a channel.
func ChannelFeed(channel string) Feed { return Feed("channel/" + channel) }

// Events carries news to watchers. It loses rather than waits: the log is the
// truth.
type Events interface {
	// Emit publishes e under its session and under the channel of its route. It
	// never blocks and never fails; what cannot be kept up with is dropped and counted.
	Emit(e Event)

	// Subscribe follows a feed from the event after that id on; 0 means from
	// now on. The subscription stands when it returns. The sequence ends when
	// ctx does. A subscriber that is too slow loses the oldest, and gets
	// ErrGone once as the error of the pair in their place. Subscribe itself
	// gives ErrGone where the events after that id are no longer all held. The
	// last few thousand of a session are.
	Subscribe(ctx context.Context, feed Feed, after uint64) (iter.Seq2[Event, error], error)
}
