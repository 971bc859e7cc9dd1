package api

import (
	"context"
	"slices"

	"parley/sessions"
)

// A snapshot is how a session's newest turns stand in its log. Whoever watches
// replaces by it all that it knows of blocks.
type snapshot struct {
	Turns  []turnState `json:"turns"`
	Blocks []block     `json:"blocks"`
}

// A turnState is a turn in a snapshot.
type turnState struct {
	Turn   string   `json:"turn"`
	Causes []string `json:"causes"`
	State  string   `json:"state"` // running, parked, done, failed or cancelled
}

// A block is what the model thought, said or asked for; its number counts within
// the turn.
type block struct {
	Turn  string `json:"turn"`
	Block int    `json:"block"`
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Tool  string `json:"tool,omitempty"`
	Call  string `json:"call,omitempty"`
	Done  bool   `json:"done"`
}

const (
	running = "running"
	parked  = "parked" // it waits for people
)

// A snapshot holds that many turns, and of older ones none where the blocks take
// more than snapshotBytes; what came before is read from the log.
const (
	snapshotTurns = 32
	snapshotBytes = 1 << 20
	snapshotPage  = 100 // entries
)

// A recount makes a snapshot of a log's entries.
type recount struct {
	turns []*toldTurn
	size  int
}

type toldTurn struct {
	state  turnState
	blocks []block
	size   int
}

// recountLog makes a snapshot of a log's end: of the newest turns and of no more
// than it holds. It reads backwards, a page at a time, so that it costs the same
// however long the log is. What is appended after the entry until is not in it.
func recountLog(ctx context.Context, log sessions.Reader, key string, until int64) (*recount, error) {
	var pages [][]sessions.Entry // the newest first, without what no snapshot has
	turns, size := 0, 0
	for end := until; end > 0 && (turns == 0 || turns < snapshotTurns && size <= snapshotBytes); {
		from := max(1, end-snapshotPage+1)
		var kept []sessions.Entry
		for e, err := range log.Read(ctx, key, from) {
			if err != nil {
				return nil, err
			}
			if e.N > end {
				break
			}
			switch e.Kind {
			case sessions.KindTurnStarted:
				turns++
				e.Data = nil
			case sessions.KindUser, sessions.KindTurnParked, sessions.KindTurnUnparked:
				e.Data = nil
			case sessions.KindThinking, sessions.KindText, sessions.KindToolUse, sessions.KindTurnDone:
				size += len(e.Data)
			default:
				continue
			}
			kept = append(kept, e)
			if e.N == end {
				break
			}
		}
		pages = append(pages, kept)
		end = from - 1
	}
	c := &recount{}
	for _, page := range slices.Backward(pages) {
		for _, e := range page {
			if err := c.take(e); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *recount) take(e sessions.Entry) error {
	if e.Kind == sessions.KindTurnStarted {
		c.turns = append(c.turns, &toldTurn{state: turnState{Turn: e.Turn, Causes: []string{}, State: running}})
		c.trim()
		return nil
	}
	t := c.turn(e.Turn)
	if t == nil {
		return nil
	}
	b := block{Turn: e.Turn, Block: len(t.blocks), Kind: string(e.Kind), Call: e.Call, Done: true}
	switch e.Kind {
	case sessions.KindUser:
		t.state.Causes = append(t.state.Causes, e.Cause)
		return nil
	case sessions.KindTurnParked:
		t.state.State = parked
		return nil
	case sessions.KindTurnUnparked:
		t.state.State = running
		return nil
	case sessions.KindTurnDone:
		done, err := sessions.Decode[sessions.TurnDone](e)
		t.state.State = done.State
		return err
	case sessions.KindThinking, sessions.KindText:
		said, err := sessions.Decode[sessions.Text](e) // a thought has its text at the same place
		if err != nil {
			return err
		}
		b.Text = said.Text
	case sessions.KindToolUse:
		use, err := sessions.Decode[sessions.ToolUse](e)
		if err != nil {
			return err
		}
		b.Tool = use.Name // its arguments are no text, as little as in the events
	default:
		return nil
	}
	t.blocks = append(t.blocks, b)
	t.size += len(b.Text)
	c.size += len(b.Text)
	c.trim()
	return nil
}

func (c *recount) turn(id string) *toldTurn {
	for i := len(c.turns) - 1; i >= 0; i-- {
		if c.turns[i].state.Turn == id {
			return c.turns[i]
		}
	}
	return nil
}

// trim lets go of the oldest turns, but never of one that runs or the newest.
func (c *recount) trim() {
	for len(c.turns) > 1 && (len(c.turns) > snapshotTurns || c.size > snapshotBytes) {
		oldest := c.turns[0]
		if oldest.state.State == running {
			return
		}
		c.size -= oldest.size
		c.turns[0] = nil
		c.turns = c.turns[1:]
	}
}

// whole is the snapshot as it is sent.
func (c *recount) whole() snapshot {
	s := snapshot{Turns: []turnState{}, Blocks: []block{}}
	for _, t := range c.turns {
		s.Turns = append(s.Turns, t.state)
		s.Blocks = append(s.Blocks, t.blocks...)
	}
	return s
}
