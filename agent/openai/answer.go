package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent/llm"
)

// Bounds of an answer, for a server that sends without end.
const (
	maxAnswer  = 16 << 20 // bytes of it that are kept
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
	text     *piece // the text that grows; nil once a call has followed it
	thought  *piece // the only thinking piece
	calls    int    // how many calls there are
	byIndex  map[int]*piece
	lastCall *piece
	split    splitter
	message  wholeMessage // what came as a message and not as a delta

	usage     *wireUsage
	stop      llm.Stop
	reason    string
	announced bool // the finish_reason says that there are tool calls
	finished  bool // there was a finish_reason
	size      int  // bytes of text and arguments, for an estimate
	kept      int  // bytes of all that is kept
}

// A wholeMessage remembers what came as "message". Some servers send that beside or
// instead of "delta": all that was said so far, or the whole answer.
type wholeMessage struct {
	text    string // what messages have said so far
	thought string

	streamsText, streamsThought bool // whether these come as deltas
	called                      bool // whether calls have come
}

// A piece is a block that grows.
type piece struct {
	kind    llm.BlockKind
	index   int  // its index in the answer
	hidden  bool // it is not emitted as it grows, because a later piece has been
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

// add takes one event. Its error is a *refusal if the event says that the server failed.
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
		if err := a.takeChoice(choice); err != nil {
			return err
		}
	}
	if a.kept > maxAnswer {
		return fmt.Errorf("%w: it does not end", errGarbled)
	}
	return nil
}

func (a *assembly) takeChoice(c choice) error {
	if !missing(c.Error) {
		return refusalIn([]byte(`{"error":` + string(c.Error) + `}`))
	}
	if err := a.takeDelta(c.Delta); err != nil {
		return err
	}
	a.message.noteDelta(c.Delta)
	if c.Message != nil {
		if err := a.takeDelta(a.message.newIn(*c.Message)); err != nil {
			return err
		}
	}
	return a.takeFinishReason(reasonOf(c.Finish))
}

func (a *assembly) takeDelta(d delta) error {
	if err := a.takeThinking(d); err != nil {
		return err
	}
	thought, said := a.split.add(d.Content.text)
	a.addThinking(thought)
	a.addText(said + string(d.Refusal))
	if len(d.ToolCalls) > maxCalls {
		return fmt.Errorf("%w: more than %d tool calls", errGarbled, maxCalls)
	}
	for i, call := range d.ToolCalls {
		if err := a.takeCall(call, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// noteDelta remembers what a server sends as deltas.
func (m *wholeMessage) noteDelta(d delta) {
	m.streamsText = m.streamsText || d.Content.text+string(d.Refusal) != ""
	m.streamsThought = m.streamsThought || d.thinking() != ""
	m.called = m.called || len(d.ToolCalls) > 0
}

// newIn is the part of a message that neither a delta nor an earlier message has had.
func (m *wholeMessage) newIn(d delta) delta {
	var news delta
	if !m.streamsText {
		news.Content.text = beyond(d.Content.text+string(d.Refusal), m.text)
		m.text += news.Content.text
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

// beyond is the rest of a text that begins with what was said before, or else the whole
// text.
func beyond(text, before string) string {
	if rest, ok := strings.CutPrefix(text, before); ok {
		return rest
	}
	return text
}

func (a *assembly) begin(kind llm.BlockKind) *piece {
	p := &piece{kind: kind, index: len(a.pieces)}
	a.pieces = append(a.pieces, p)
	return p
}

// addText adds what the model says. Text after a call is a block of its own, because
// watchers have been told that the first one has ended.
func (a *assembly) addText(text string) {
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
	if !p.hidden {
		a.emit(llm.Delta{Block: p.index, Kind: p.kind, Text: text})
	}
}

// takeThinking takes what a delta has of the model's thinking, and what its provider
// wants back.
func (a *assembly) takeThinking(d delta) error {
	text := d.thinking()
	a.addThinking(text)
	if text != "" && d.ReasoningContent.all() != "" {
		a.thought.thought.Echo = true
	}
	if !missing(d.ReasoningDetails) {
		a.kept += len(d.ReasoningDetails)
		if err := a.thinkingPiece().details.add(d.ReasoningDetails); err != nil {
			return err
		}
	}
	if !missing(d.ExtraContent) {
		a.kept += len(d.ExtraContent)
		a.thinkingPiece().thought.Extra = d.ExtraContent
	}
	return nil
}

// addThinking adds text that the model thought.
func (a *assembly) addThinking(text string) {
	if text == "" {
		return
	}
	p := a.thinkingPiece()
	// Watchers have been told of a later block, so they no longer see this one grow.
	p.hidden = p.hidden || p.index < len(a.pieces)-1
	a.grow(p, text)
}

// thinkingPiece is the piece of what the model thinks. There is only one, because
// providers want the thinking back whole.
func (a *assembly) thinkingPiece() *piece {
	if a.thought == nil {
		a.thought = a.begin(llm.BlockThinking)
		a.thought.hidden = a.text != nil // the text goes on
	}
	return a.thought
}

// answer is the answer that was put together. asked is the request's size in bytes.
func (a *assembly) answer(asked int) (llm.Answer, error) {
	thought, said := a.split.rest()
	a.addThinking(thought)
	a.addText(said)
	stop := a.stopReason(a.calls)
	if stop == llm.StopWindow && a.calls == 0 && a.text == nil {
		return llm.Answer{}, &refusal{code: "context_length_exceeded", message: "the model's window is full"}
	}
	out := llm.Answer{Stop: stop, Usage: a.usageOf(asked)}
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
					continue // the answer is not whole, and the call's name may have been cut off
				}
				return llm.Answer{}, fmt.Errorf("%w: a tool call without a name", errGarbled)
			}
			b.Name, b.Text, b.Args = p.name, "", objectOf(p.text.String())
			if !seen[p.id] { // calls that share an id get ids of our own
				b.ProviderID, seen[p.id] = p.id, true
			}
			if p.call.ExtraContent != nil || p.call.ThoughtSignature != nil {
				b.Provider = toRaw(savedCall{By: a.host, callExtra: p.call})
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
	return toRaw(p.thought)
}

// toRaw is JSON for the Provider field of a block. Its values were read from JSON, so
// they can always be written.
func toRaw(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
