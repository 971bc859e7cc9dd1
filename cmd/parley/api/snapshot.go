package api

import (
	"context"
	"slices"

	"parley/sessions"
)

// A snapshot shows a session's newest turns as its log has them. A watcher who receives one
// forgets all blocks that came before and shows these.
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

// A block is something that the model thought, said or called; Block is its number within its
// turn.
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
	parked  = "parked" // the turn waits for people
)

// A snapshot holds at most this many turns, and fewer if their blocks take more than
// snapshotBytes: then the oldest are left out. Watchers read earlier turns from the log.
const (
	snapshotTurns = 32
	snapshotBytes = 1 << 20
	snapshotPage  = 100 // how many entries are read from the log at a time
)

// A snapshotBuilder makes a snapshot from the entries of a session's log.
type snapshotBuilder struct {
	turns []*turnBlocks
	size  int
}

// A turnBlocks is a turn of a snapshot with its blocks and their size.
type turnBlocks struct {
	state  turnState
	blocks []block
	size   int
}

// readSnapshot makes a snapshot of the end of a session's log. It reads backwards, a page at a
// time, and stops as soon as the snapshot is full, so that it costs the same however long the log
// is. It leaves out the entries after the one with the number until.
func readSnapshot(ctx context.Context, log sessions.Reader, key string, until int64) (*snapshotBuilder, error) {
	var pages [][]sessions.Entry // the newest first, without the kinds of entries that no snapshot shows
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
			case sessions.KindUser, sessions.KindTurnUnparked:
				e.Data = nil
			case sessions.KindTurnParked:
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
	c := &snapshotBuilder{}
	for _, page := range slices.Backward(pages) {
		for _, e := range page {
			if err := c.add(e); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// add adds one entry of the log to the snapshot; entries must be added in the log's order.
func (c *snapshotBuilder) add(e sessions.Entry) error {
	if e.Kind == sessions.KindTurnStarted {
		c.turns = append(c.turns, &turnBlocks{state: turnState{Turn: e.Turn, Causes: []string{}, State: running}})
		c.trim()
		return nil
	}
	t := c.findTurn(e.Turn)
	if t == nil {
		return nil
	}
	b := block{Turn: e.Turn, Block: len(t.blocks), Kind: string(e.Kind), Call: e.Call, Done: true}
	switch e.Kind {
	case sessions.KindUser:
		t.state.Causes = append(t.state.Causes, e.Cause)
		return nil
	case sessions.KindTurnParked:
		waits, err := sessions.Decode[sessions.TurnParked](e)
		if waits.WaitsForPeople() {
			t.state.State = parked
		}
		return err
	case sessions.KindTurnUnparked:
		t.state.State = running
		return nil
	case sessions.KindTurnDone:
		done, err := sessions.Decode[sessions.TurnDone](e)
		t.state.State = done.State
		return err
	case sessions.KindThinking, sessions.KindText:
		said, err := sessions.Decode[sessions.Text](e) // a thought has its text in the same field
		if err != nil {
			return err
		}
		b.Text = said.Text
	case sessions.KindToolUse:
		use, err := sessions.Decode[sessions.ToolUse](e)
		if err != nil {
			return err
		}
		b.Tool = use.Name // events do not show its arguments either
	default:
		return nil
	}
	t.blocks = append(t.blocks, b)
	t.size += len(b.Text)
	c.size += len(b.Text)
	c.trim()
	return nil
}

// findTurn returns the turn with this id; nil if the builder does not have it.
func (c *snapshotBuilder) findTurn(id string) *turnBlocks {
	for i := len(c.turns) - 1; i >= 0; i-- {
		if c.turns[i].state.Turn == id {
			return c.turns[i]
		}
	}
	return nil
}

// trim drops the oldest turns while the snapshot is too large, but never a turn that runs, nor
// the newest.
func (c *snapshotBuilder) trim() {
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

// build returns the snapshot as it is sent.
func (c *snapshotBuilder) build() snapshot {
	s := snapshot{Turns: []turnState{}, Blocks: []block{}}
	for _, t := range c.turns {
		s.Turns = append(s.Turns, t.state)
		s.Blocks = append(s.Blocks, t.blocks...)
	}
	return s
}
