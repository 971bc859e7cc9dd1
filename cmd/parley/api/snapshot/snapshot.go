// Package snapshot makes snapshots of a session's newest turns for everybody who begins to watch it.
package snapshot

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/agent/blocks"
	"parley/bus"
	"parley/sessions"
)

// A Snapshot contains a session's newest turns as they are in its log. A watcher who receives one forgets all earlier
// blocks and shows these.
type Snapshot struct {
	Turns  []Turn  `json:"turns"`
	Blocks []Block `json:"blocks"`
	// Messages are what was said besides the blocks of these turns: by operators, on behalf of people in other
	// conversations, in reply to commands, by the tool message, and at the end of turns that failed or were stopped.
	Messages []Aside `json:"messages,omitempty"`
	// Asks are the ended asks of these turns. Open ones are in the list of asks, for those who may see them.
	Asks []bus.Ask `json:"-"`
}

// An Aside is what an operator said in the conversation in place of the agent, what the agent said there on somebody's
// behalf or with its tool message, the reply to a command, or what a turn that failed or was stopped told its person.
type Aside struct {
	Call    string `json:"call"` // the message's id
	Kind    string `json:"kind"`
	Turn    string `json:"turn,omitempty"`    // for a reply: its turn, or the command's id
	Command string `json:"command,omitempty"` // for the reply to a command: the command's name
	Name    string `json:"name,omitempty"`    // the name of the operator, or of the person on whose behalf it was said
	Text    string `json:"text"`
	Cut     bool   `json:"cut,omitempty"`
	After   string `json:"after,omitempty"` // the newest turn that had begun by then
}

// A Turn is a turn in a snapshot.
type Turn struct {
	Turn   string   `json:"turn"`
	Causes []string `json:"causes"`
	State  string   `json:"state"` // running, parked, done, failed or cancelled
	Waits  []Wait   `json:"waits,omitempty"`
}

// A Wait says that a call of a parked turn waits for a node that is away.
type Wait struct {
	Call  string    `json:"call"`
	Node  string    `json:"node"`
	Since time.Time `json:"since,omitzero"` // when the node was lost; zero if it has never been there
	Until time.Time `json:"until"`
}

// A Block is something that a person said, that the model thought, said or called, or that a call returned.
// Block is its number within its turn.
type Block struct {
	Turn  string `json:"turn"`
	Block int    `json:"block"`
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Tool  string `json:"tool,omitempty"`
	Call  string `json:"call,omitempty"`
	bus.Detail
	Done bool `json:"done"`
}

// size returns about how many bytes the block's texts take.
func (b *Block) size() int { return len(b.Text) + len(b.Input) }

const (
	running = "running"
	parked  = "parked" // the turn waits for people or a node
)

// These are the limits of a snapshot. If there are more turns, or their blocks take more bytes, the oldest turns are
// left out. Watchers read earlier turns from the log.
const (
	maxTurns = 32
	maxBytes = 1 << 20
	pageSize = 100 // how many entries are read from the log at a time
	// MaxMessages and maxMessageBytes limit the asides in a snapshot, which are the newest ones.
	MaxMessages     = 64
	maxMessageBytes = 256 << 10
)

// A builder makes a snapshot from the entries of a session's log.
type builder struct {
	redact blocks.Redactor
	turns  []*turnBlocks
	said   []Aside
	size   int
	key    string // the session's key
}

// A turnBlocks is a turn of a snapshot with its blocks and their size.
type turnBlocks struct {
	state   Turn
	person  string // the person whose turn it is
	numbers blocks.Numbering
	blocks  []Block
	asks    blocks.TurnAsks
	size    int
}

// use returns the call with that id as watchers see it; an empty one if the turn has none.
func (t *turnBlocks) use(call string) (use sessions.ToolUse) {
	for _, b := range t.blocks {
		if b.Call == call && b.Kind == string(sessions.KindToolUse) {
			use = sessions.ToolUse{Name: b.Tool, Args: b.Input}
		}
	}
	return use
}

// endedAsks returns the turn's asks that have ended; session is the turn's session.
func (t *turnBlocks) endedAsks(session string) (all []bus.Ask) {
	for _, a := range t.asks.Ended(t.state.State != running && t.state.State != parked) {
		a.Session, a.Person = session, t.person
		all = append(all, a)
	}
	return all
}

// sorted returns the blocks in the order of their numbers, which is not always that of the log.
func (t *turnBlocks) sorted() []Block {
	return slices.SortedStableFunc(slices.Values(t.blocks), func(a, b Block) int { return a.Block - b.Block })
}

// read makes a snapshot of the end of a session's log, without the entries after the one with the number until. It
// reads backwards, a page at a time, and stops as soon as the snapshot is full and has the beginning of a turn, so
// its cost doesn't depend on the length of the log.
func read(ctx context.Context, log sessions.Reader, redact blocks.Redactor, key string, until int64) (*builder, error) {
	c := &builder{redact: redact, key: key}
	var pages [][]sessions.Entry // the newest first, without the kinds of entries that no snapshot shows
	turns, size := 0, 0
	for end := until; end > 0 && (turns == 0 || turns < maxTurns && size <= maxBytes); {
		from := max(1, end-pageSize+1)
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
			case sessions.KindUsage, sessions.KindTurnUnparked:
				e.Data = nil
			case sessions.KindNotice, sessions.KindCommand:
				if !c.isAside(e) {
					continue
				}
				size += len(e.Data)
			case sessions.KindUser, sessions.KindThinking, sessions.KindText, sessions.KindTurnDone:
				size += len(e.Data)
			case sessions.KindToolUse, sessions.KindToolResult, sessions.KindTurnParked, sessions.KindAskEnded:
				size += min(len(e.Data), blocks.MostOfCall)
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
func (c *builder) add(e sessions.Entry) error {
	if e.Kind == sessions.KindTurnStarted {
		c.turns = append(c.turns, &turnBlocks{state: Turn{Turn: e.Turn, Causes: []string{}, State: running}, person: e.Person})
		c.trim()
		return nil
	}
	if e.Kind == sessions.KindNotice || e.Kind == sessions.KindCommand {
		return c.addAside(e)
	}
	t := c.findTurn(e.Turn)
	if t == nil {
		return nil
	}
	switch e.Kind {
	case sessions.KindTurnParked:
		waits, err := sessions.Decode[sessions.TurnParked](e)
		if !waits.WaitsForSubAgents() {
			t.state.State = parked
		}
		for _, a := range waits.Asks {
			if a.Kind == sessions.AskNode {
				t.state.Waits = append(t.state.Waits, Wait{a.Call, a.Node, a.Since, a.Expires})
			}
		}
		size := min(len(e.Data), blocks.MostOfCall)
		c.size, t.size = c.size+size, t.size+size
		return errors.Join(err, t.asks.Begin(e, t.use, c.redact))
	case sessions.KindAskEnded:
		return t.asks.End(e, c.redact)
	case sessions.KindTurnUnparked:
		t.state.State, t.state.Waits = running, nil
		return nil
	case sessions.KindTurnDone:
		done, err := sessions.Decode[sessions.TurnDone](e)
		t.state.State, t.state.Waits = done.State, nil
		c.addReplies(e.Turn, done)
		return err
	case sessions.KindUser:
		t.state.Causes = append(t.state.Causes, e.Cause)
	}
	b, err := t.addBlock(e, c.redact)
	c.size += b.size()
	c.addSent(t, b)
	c.trim()
	return err
}

// addBlock adds an entry of the log to its turn if the entry is a block, and returns the block.
func (t *turnBlocks) addBlock(e sessions.Entry, redact blocks.Redactor) (Block, error) {
	number, ok := t.numbers.Add(e.Kind, e.Call)
	if !ok {
		return Block{}, nil
	}
	data, _, err := sessions.DecodeAny(e)
	if err != nil {
		return Block{}, err
	}
	shown, _ := blocks.Show(data, redact)
	b := Block{Turn: e.Turn, Block: number, Kind: shown.Kind, Text: shown.Text, Tool: shown.Tool, Call: e.Call, Detail: shown.Detail, Done: true}
	b.Cause = e.Cause
	if e.Kind == sessions.KindToolResult {
		for _, use := range t.blocks {
			if use.Call == e.Call {
				b.Tool = use.Tool
			}
		}
	}
	t.blocks = append(t.blocks, b)
	t.size += b.size()
	return b, nil
}

// findTurn returns the turn with this id; nil if the builder does not have it.
func (c *builder) findTurn(id string) *turnBlocks {
	for i := len(c.turns) - 1; i >= 0; i-- {
		if c.turns[i].state.Turn == id {
			return c.turns[i]
		}
	}
	return nil
}

// trim drops the oldest turns while the snapshot is too large, together with the messages that were said before and
// during them. It stops at a turn that is running, and keeps the newest turn.
func (c *builder) trim() {
	for len(c.turns) > 1 && (len(c.turns) > maxTurns || c.size > maxBytes) {
		oldest := c.turns[0]
		if oldest.state.State == running {
			return
		}
		c.size -= oldest.size
		c.turns[0] = nil
		c.turns = c.turns[1:]
		c.said = slices.DeleteFunc(c.said, func(m Aside) bool { return m.After == "" || m.After == oldest.state.Turn })
	}
}

// build returns the snapshot as it is sent.
func (c *builder) build() Snapshot {
	s := Snapshot{Turns: []Turn{}, Blocks: []Block{}}
	for _, t := range c.turns {
		s.Turns = append(s.Turns, t.state)
		s.Blocks = append(s.Blocks, t.sorted()...)
		s.Asks = append(s.Asks, t.endedAsks(c.key)...)
	}
	s.Messages = c.said
	return s
}
