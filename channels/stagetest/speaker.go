package stagetest

import (
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
)

// A Speaker is an agent at work on one turn: what it does becomes events on the stage's bus.
type Speaker struct {
	Turn  string
	At    bus.Address
	Block int // the number of the current block
	bus   *sqlitebus.Bus
}

// Speaker returns the speaker of a turn in a chat of the platform.
func (s *Stage) Speaker(turn, chat string) *Speaker {
	return &Speaker{Turn: turn, At: bus.Address{Channel: "c", Chat: chat}, bus: s.Bus}
}

// Emit emits an event from the turn.
func (a *Speaker) Emit(e bus.Event) {
	e.Session, e.Turn, e.Route, e.Block = a.session(), a.Turn, a.At, a.Block
	a.bus.Emit(e)
}

func (a *Speaker) session() string { return "main:" + a.At.String() }

// Start starts the turn.
func (a *Speaker) Start() { a.Emit(bus.Event{Type: bus.TurnStart, Causes: []string{a.Turn}}) }

// EmitText emits a block of text from its beginning.
func (a *Speaker) EmitText(deltas ...string) {
	a.Emit(bus.Event{Type: bus.BlockStart, Kind: "text"})
	a.EmitMoreText(deltas...)
}

// EmitMoreText emits more text in the same block.
func (a *Speaker) EmitMoreText(deltas ...string) {
	for _, delta := range deltas {
		a.Emit(bus.Event{Type: bus.BlockDelta, Kind: "text", Delta: delta})
	}
}

// EmitToolCall emits a tool call, from its start to its end.
func (a *Speaker) EmitToolCall(tool, about string) {
	a.Block++
	a.Emit(bus.Event{Type: bus.ToolStart, Tool: tool, Call: "c1", Delta: about})
	a.Emit(bus.Event{Type: bus.ToolEnd, Tool: tool, Call: "c1"})
}

// EmitTaskList emits a call that lists the tasks, in pieces.
func (a *Speaker) EmitTaskList(call string, pieces ...string) {
	const tool = "todo_write"
	a.Block++
	a.Emit(bus.Event{Type: bus.ToolStart, Tool: tool, Call: call})
	for _, piece := range pieces {
		a.Emit(bus.Event{Type: bus.ToolProgress, Tool: tool, Call: call, Delta: piece})
	}
	a.Emit(bus.Event{Type: bus.ToolEnd, Tool: tool, Call: call})
}

// Reply returns the turn's answer, for the test to publish.
func (a *Speaker) Reply(text string) bus.Outbound {
	return bus.Outbound{ID: a.Turn + "#reply", To: a.At, Text: text, Session: a.session(), Turn: a.Turn, At: time.Now()}
}
