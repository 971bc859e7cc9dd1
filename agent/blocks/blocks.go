// Package blocks defines how watchers are shown the log entries of a turn: as numbered blocks, without secrets
// and limited in size. Events and snapshots show the same, because both are made here.
package blocks

import (
	"encoding/json"
	"strings"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// Limits on what watchers are shown, in bytes; the log has everything. What a model says is not cut.
const (
	MostOfCall      = 16 << 10 // of the input or the result of a call
	maxMessageBytes = 64 << 10 // of a person's message
)

// A Redactor takes secrets out of what watchers are shown.
type Redactor interface {
	Text(text string) string
	JSON(raw json.RawMessage) json.RawMessage
}

// A Block is a block of a turn as watchers are shown it.
type Block struct {
	Number int    // within its turn
	Kind   string // sessions.KindUser, KindThinking, KindText, KindToolUse or KindToolResult
	Text   string // of a tool_result, its content as JSON; "" for a tool_use
	Tool   string // for a tool_use and its tool_result
	Call   string // likewise
	bus.Detail
}

// Show returns a log entry's data as a block for watchers, without its number, its call and its cause. It
// returns false if such an entry is not a block.
func Show(data any, redact Redactor) (Block, bool) {
	var b Block
	switch d := data.(type) {
	case sessions.User:
		b.Kind, b.Name = string(sessions.KindUser), redact.Text(d.Name)
		b.Text, b.Cut = shownOf(redact.Text(d.Text))
	case sessions.Thinking:
		b.Kind, b.Text = string(sessions.KindThinking), redact.Text(d.Text)
	case sessions.Text:
		b.Kind, b.Text = string(sessions.KindText), redact.Text(d.Text)
	case sessions.ToolUse:
		b.Kind, b.Tool = string(sessions.KindToolUse), d.Name
		b.Input, b.Cut = tools.Shorten(tools.AsJSON(redact.JSON(d.Args)), MostOfCall, "")
	case sessions.ToolResult:
		content, shortened := tools.Shorten(tools.AsJSON(redact.JSON(d.Content)), MostOfCall, "")
		b.Kind, b.Text = string(sessions.KindToolResult), string(content)
		b.Cut, b.Failed, b.Reason = shortened, d.Code != "", d.Code
		b.Metadata = bus.ResultMetadata(d.Result("").Metadata)
	default:
		return b, false
	}
	return b, true
}

// ShowOperator returns a notice of what an operator said in the conversation as a block for watchers. Its Call is
// the id of the message.
func ShowOperator(n sessions.Notice, redact Redactor) Block {
	b := Block{Kind: bus.KindOperator, Call: n.MessageID}
	if len(n.Quotes) > 0 {
		b.Name = redact.Text(n.Quotes[0].Name)
		b.Text, b.Cut = shownOf(redact.Text(n.Quotes[0].Text))
	}
	return b
}

// ShowTold returns a notice of what the agent has said in the conversation on somebody's behalf as a block for
// watchers, given the notice's id. Its Call is the id of the message, and its Name is that of who had it said, with
// the id, which alone proves who that is.
func ShowTold(notice string, n sessions.Notice, redact Redactor) Block {
	b := ShowOperator(n, redact)
	b.Kind, b.Call = bus.KindTold, bus.ToldOf(notice)
	if len(n.Quotes) == 0 {
		return b
	}
	if id := redact.Text(n.Quotes[0].Person); b.Name == "" {
		b.Name = id
	} else if id != "" {
		b.Name += " (" + id + ")"
	}
	return b
}

// shownOf returns as much of a person's message as watchers are shown, and whether it was cut.
func shownOf(said string) (text string, cut bool) {
	return strings.Clone(tools.Beginning(said, maxMessageBytes)), len(said) > maxMessageBytes
}

// Emit sends watchers a whole block that is in the log: they discard what they have received of it before. emit
// must keep the events in order.
func (b Block) Emit(emit func(bus.Event)) {
	b.EmitStart(emit)
	b.EmitText(b.Text, emit)
	b.EmitStop(emit)
}

// EmitStart tells watchers that a block begins, or begins again.
func (b Block) EmitStart(emit func(bus.Event)) {
	e := bus.Event{Type: bus.BlockStart, Block: b.Number, Kind: b.Kind, Tool: b.Tool, Call: b.Call}
	if b.Cause != "" || b.Name != "" {
		e.Detail = &bus.Detail{Cause: b.Cause, Name: b.Name}
	}
	emit(e)
}

// EmitText sends watchers a piece of a block's text.
func (b Block) EmitText(piece string, emit func(bus.Event)) {
	if piece != "" {
		emit(bus.Event{Type: bus.BlockDelta, Block: b.Number, Kind: b.Kind, Delta: piece})
	}
}

// EmitStop tells watchers that a block is in the log.
func (b Block) EmitStop(emit func(bus.Event)) {
	e := bus.Event{Type: bus.BlockStop, Block: b.Number, Kind: b.Kind, Tool: b.Tool, Call: b.Call}
	if b.Input != nil || b.Failed || b.Cut || b.Metadata != (bus.ResultMetadata{}) {
		e.Detail = &bus.Detail{Input: b.Input, Failed: b.Failed, Reason: b.Reason, Metadata: b.Metadata, Cut: b.Cut}
	}
	emit(e)
}

// A Numbering numbers the blocks of one turn. The numbers follow from the log alone, so they are the same
// whichever process works on the turn. The zero value is for a turn without blocks.
//
// The blocks of an answer are numbered in order. The results of its calls are numbered after them, in the order
// of the calls, no matter which result arrives first.
type Numbering struct {
	next     int
	newest   int           // the number of the newest answer's first block
	inAnswer bool          // the log is between this answer's first block and its end
	asked    []string      // the calls of this answer so far
	results  []resultPlace // of the turn's calls, oldest answer first
}

// A resultPlace is the number of the block that holds, or will hold, the result of a call.
type resultPlace struct {
	call   string
	number int
}

// Next returns the number of the first block of the turn's next answer.
func (n *Numbering) Next() int { return n.next }

// Newest returns the number of the first block of the turn's newest answer; 0 if it has none.
func (n *Numbering) Newest() int { return n.newest }

// Add takes the next entry of the turn, in the log's order, and returns the number of its block; false if the
// entry is not a block.
func (n *Numbering) Add(kind sessions.Kind, call string) (number int, ok bool) {
	switch kind {
	case sessions.KindThinking, sessions.KindText, sessions.KindToolUse:
		if !n.inAnswer {
			n.newest, n.inAnswer = n.next, true
		}
		if kind == sessions.KindToolUse {
			n.asked = append(n.asked, call)
		}
	case sessions.KindUser:
	case sessions.KindUsage: // the end of an answer
		for _, of := range n.asked {
			n.results = append(n.results, resultPlace{of, n.next})
			n.next++
		}
		n.asked, n.inAnswer = nil, false
		return 0, false
	case sessions.KindToolResult:
		return n.Result(call)
	default:
		return 0, false
	}
	n.next++
	return n.next - 1, true
}

// Result returns the number of the block that holds, or will hold, the result of a call; false if no answer of
// the turn asked for that call.
func (n *Numbering) Result(call string) (number int, ok bool) {
	for i := len(n.results) - 1; i >= 0; i-- {
		if n.results[i].call == call {
			return n.results[i].number, true
		}
	}
	return 0, false
}
