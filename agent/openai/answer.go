package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent/llm"
)

// What an answer may have at most, so that a server that does not end costs no
// more than this.
const (
	maxAnswer  = 16 << 20 // bytes that are kept of it
	maxStream  = 96 << 20 // bytes of its stream
	maxCalls   = 128
	maxName    = 256 // bytes of a tool's name
	maxChoices = 64  // in one event
)

// An assembly puts an answer together from chunks.
type assembly struct {
	host     string
	emit     func(llm.Delta)
	pieces   []*piece
	text     *piece // that grows; nil once a call has followed it
	thought  *piece
	calls    int
	byIndex  map[int]*piece
	lastCall *piece
	split    splitter
	whole    message // what came as a message and not as a delta

	usage     *usage
	stop      llm.Stop
	reason    string
	announced bool // tool calls were
	finished  bool // the model has said that it ended
	size      int  // bytes of text and arguments, for an estimate
	kept      int  // bytes of all that is kept
}

// A message is what servers send beside or instead of deltas: all that was said
// so far, or the whole answer.
type message struct {
	said    string // by messages
	thought string

	streamsText, streamsThought bool // these come as deltas
	called                      bool // calls have come
}

// A piece is a block that grows.
type piece struct {
	kind    llm.BlockKind
	at      int  // its index in the answer
	quiet   bool // it is not shown as it grows, because what follows it is already
	text    strings.Builder
	id      string
	name    string
	call    callExtra
	thought savedThought
	details details
}

func newAssembly(host string, emit func(llm.Delta)) *assembly {
	return &assembly{host: host, emit: emit, byIndex: map[int]*piece{}}
}

// add takes one event. A *refusal is what the server says of its own failing.
func (a *assembly) add(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
	}
	switch {
	case !missing(c.Error), c.Object == "error", c.Choices == nil && len(c.Message) > 2 && c.Message[0] == '"':
		return refusalIn(raw)
	case len(c.Choices) > maxChoices:
		return fmt.Errorf("%w: an event with %d choices", errGarbled, len(c.Choices))
	}
	if c.Groq != nil && c.Groq.Usage != nil {
		a.usage = c.Groq.Usage
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for _, one := range c.Choices {
		var choice choice
		if err := json.Unmarshal(one, &choice); err != nil {
			return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
		}
		if choice.Index != 0 {
			continue // only one was asked for
		}
		if err := a.choice(choice); err != nil {
			return err
		}
	}
	if a.kept > maxAnswer {
		return fmt.Errorf("%w: it does not end", errGarbled)
	}
	return nil
}

func (a *assembly) choice(c choice) error {
	if !missing(c.Error) {
		return refusalIn([]byte(`{"error":` + string(c.Error) + `}`))
	}
	if err := a.delta(c.Delta); err != nil {
		return err
	}
	a.whole.note(c.Delta)
	if c.Message != nil {
		if err := a.delta(a.whole.news(*c.Message)); err != nil {
			return err
		}
	}
	return a.end(reasonOf(c.Finish))
}

func (a *assembly) delta(d delta) error {
	if err := a.think(d); err != nil {
		return err
	}
	thought, said := a.split.add(d.Content.text)
	a.ponder(thought)
	a.say(said + string(d.Refusal))
	if len(d.ToolCalls) > maxCalls {
		return fmt.Errorf("%w: more than %d tool calls", errGarbled, maxCalls)
	}
	for i, call := range d.ToolCalls {
		if err := a.call(call, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// note remembers what kinds of things have come as deltas.
func (m *message) note(d delta) {
	m.streamsText = m.streamsText || d.Content.text+string(d.Refusal) != ""
	m.streamsThought = m.streamsThought || d.thinking() != ""
	m.called = m.called || len(d.ToolCalls) > 0
}

// news is what a message has that neither a delta nor an earlier message has
// brought: some servers send beside each delta, or at the end, all that was
// said so far.
func (m *message) news(d delta) delta {
	var news delta
	if !m.streamsText {
		news.Content.text = beyond(d.Content.text+string(d.Refusal), m.said)
		m.said += news.Content.text
	}
	if !m.streamsThought {
		more := beyond(d.thinking(), m.thought)
		d.keepThinking(&news, more)
		m.thought += more
		news.ReasoningDetails, news.ExtraContent = d.ReasoningDetails, d.ExtraContent
	}
	if !m.called {
		news.ToolCalls = d.ToolCalls
		m.called = len(d.ToolCalls) > 0
	}
	return news
}

// beyond is what a text has more than what was said before, if it goes on with it.
func beyond(text, before string) string {
	if rest, ok := strings.CutPrefix(text, before); ok {
		return rest
	}
	return text
}

func (a *assembly) begin(kind llm.BlockKind) *piece {
	p := &piece{kind: kind, at: len(a.pieces)}
	a.pieces = append(a.pieces, p)
	return p
}

// say takes what the model says. What follows a call is a block of its own,
// since the first one has been shown as ended.
func (a *assembly) say(text string) {
	if text == "" || a.text == nil && a.calls > 0 && strings.TrimSpace(text) == "" {
		return
	}
	if a.text == nil {
		a.text = a.begin(llm.BlockText)
	}
	a.grow(a.text, text)
}

func (a *assembly) grow(p *piece, text string) {
	a.size += len(text)
	a.kept += len(text)
	p.text.WriteString(text)
	if !p.quiet {
		a.emit(llm.Delta{Block: p.at, Kind: p.kind, Text: text})
	}
}

// think takes what a model thought, and what its provider wants back of it.
func (a *assembly) think(d delta) error {
	text := d.thinking()
	a.ponder(text)
	if text != "" && d.ReasoningContent.all() != "" {
		a.thought.thought.Echo = true
	}
	if !missing(d.ReasoningDetails) {
		a.kept += len(d.ReasoningDetails)
		if err := a.pondering().details.add(d.ReasoningDetails); err != nil {
			return err
		}
	}
	if !missing(d.ExtraContent) {
		a.kept += len(d.ExtraContent)
		a.pondering().thought.Extra = d.ExtraContent
	}
	return nil
}

// ponder takes text that a model thought.
func (a *assembly) ponder(text string) {
	if text == "" {
		return
	}
	p := a.pondering()
	// A block that has been left is not begun again.
	p.quiet = p.quiet || p.at < len(a.pieces)-1
	a.grow(p, text)
}

// pondering is the block of what the model thinks. It is one, since providers
// want it back whole.
func (a *assembly) pondering() *piece {
	if a.thought == nil {
		a.thought = a.begin(llm.BlockThinking)
		a.thought.quiet = a.text != nil // which goes on
	}
	return a.thought
}

// answer is what has come together, of a request of so many bytes.
func (a *assembly) answer(asked int) (llm.Answer, error) {
	thought, said := a.split.rest()
	a.ponder(thought)
	a.say(said)
	stop := a.stopped(a.calls)
	if stop == llm.StopWindow && a.calls == 0 && a.text == nil {
		return llm.Answer{}, &refusal{code: "context_length_exceeded", message: "the model's window is full"}
	}
	out := llm.Answer{Stop: stop, Usage: a.used(asked)}
	if stop != llm.StopWhole {
		out.Reason = a.reason
	}
	seen := map[string]bool{}
	for _, p := range a.pieces {
		b := llm.Block{Kind: p.kind, Text: p.text.String()}
		switch p.kind {
		case llm.BlockToolUse:
			if p.name == "" {
				if stop != llm.StopWhole {
					continue // it is not to be trusted anyway
				}
				return llm.Answer{}, fmt.Errorf("%w: a tool call without a name", errGarbled)
			}
			b.Name, b.Text, b.Args = p.name, "", objectOf(p.text.String())
			if !seen[p.id] { // an id that is not unique is none
				b.ProviderID, seen[p.id] = p.id, true
			}
			if p.call.ExtraContent != nil || p.call.ThoughtSignature != nil {
				b.Provider = saved(savedCall{By: a.host, callExtra: p.call})
			}
		case llm.BlockThinking:
			b.Provider = p.savedThought(a.host)
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out, nil
}

// savedThought is what the provider wants back of a thinking block.
func (p *piece) savedThought(host string) json.RawMessage {
	p.thought.Details = p.details.raw()
	if !p.thought.Echo && p.thought.Details == nil && p.thought.Extra == nil {
		return nil
	}
	p.thought.By = host
	return saved(p.thought)
}

// saved is what a block keeps for its provider; raw JSON that was read is
// always written again.
func saved(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
