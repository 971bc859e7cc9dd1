// Package blocks says how watchers are shown what a session's log has of a turn: as numbered blocks,
// without secrets and within bounds. Events and snapshots show the same, because both are made here.
package blocks

import (
	"encoding/json"
	"strings"

	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// Bounds of what watchers are shown, in bytes; the log has the whole. What a model says is not cut.
const (
	MostOfCall = 16 << 10 // of the input or the result of a call
	mostSaid   = 64 << 10 // of what a person has said
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
	Text   string // of a tool_result its content, as JSON; "" for a tool_use
	Tool   string // of a tool_use and its tool_result
	Call   string // likewise
	bus.Detail
}

// Show returns how watchers are shown an entry with that data, without its number, its call and its
// cause. It returns false for data of entries that are no blocks.
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
		b.Cut, b.Failed = shortened, d.Code != ""
	default:
		return b, false
	}
	return b, true
}

// Operators returns how watchers are shown a notice of what an operator has said in the conversation: Call is
// the id of the message.
func Operators(n sessions.Notice, redact Redactor) Block {
	b := Block{Kind: bus.KindOperator, Call: n.Of}
	if len(n.Quotes) > 0 {
		b.Name = redact.Text(n.Quotes[0].Name)
		b.Text, b.Cut = shownOf(redact.Text(n.Quotes[0].Text))
	}
	return b
}

// shownOf returns what watchers are shown of what somebody said, and whether that is not all.
func shownOf(said string) (text string, cut bool) {
	return strings.Clone(tools.Beginning(said, mostSaid)), len(said) > mostSaid
}

// Say tells watchers of a block that is in the log, whole: they forget what they know of it. emit must
// pass the events on in their order.
func (b Block) Say(emit func(bus.Event)) {
	b.SayStart(emit)
	b.SayText(b.Text, emit)
	b.SayStop(emit)
}

// SayStart tells watchers that a block begins, or begins anew.
func (b Block) SayStart(emit func(bus.Event)) {
	e := bus.Event{Type: bus.BlockStart, Block: b.Number, Kind: b.Kind, Tool: b.Tool, Call: b.Call}
	if b.Cause != "" || b.Name != "" {
		e.Detail = &bus.Detail{Cause: b.Cause, Name: b.Name}
	}
	emit(e)
}

// SayText tells watchers of a piece of a block's text.
func (b Block) SayText(piece string, emit func(bus.Event)) {
	if piece != "" {
		emit(bus.Event{Type: bus.BlockDelta, Block: b.Number, Kind: b.Kind, Delta: piece})
	}
}

// SayStop tells watchers that a block is in the log.
func (b Block) SayStop(emit func(bus.Event)) {
	e := bus.Event{Type: bus.BlockStop, Block: b.Number, Kind: b.Kind, Tool: b.Tool, Call: b.Call}
	if b.Input != nil || b.Failed || b.Cut {
		e.Detail = &bus.Detail{Input: b.Input, Failed: b.Failed, Cut: b.Cut}
	}
	emit(e)
}

// A Numbering gives the blocks of one turn their numbers. These follow from the log alone, so they are
// the same whoever works on the turn. The zero value is that of a turn without blocks.
//
// The blocks of an answer are numbered in their order, and behind them the results of its calls in the
// order of the calls, whichever result comes first.
type Numbering struct {
	next     int
	newest   int           // the number of the newest answer's first block
	inAnswer bool          // the newest answer is being read
	asked    []string      // its calls so far
	results  []resultPlace // of the turn's calls, those of earlier answers first
}

// A resultPlace is the number that the result of a call has, or will have.
type resultPlace struct {
	call   string
	number int
}

// Next returns the number of the first block of the turn's next answer.
func (n *Numbering) Next() int { return n.next }

// Newest returns the number of the first block of the turn's newest answer; 0 if it has none.
func (n *Numbering) Newest() int { return n.newest }

// Add takes the next entry of the turn, in the log's order, and returns its number; false if the entry
// is no block.
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

// Result returns the number that the result of a call has, or will have; false if no answer of the turn
// has asked for the call.
func (n *Numbering) Result(call string) (number int, ok bool) {
	for i := len(n.results) - 1; i >= 0; i-- {
		if n.results[i].call == call {
			return n.results[i].number, true
		}
	}
	return 0, false
}
