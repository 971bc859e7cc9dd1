package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/ending"
	"parley/agent/openai/increment"
	"parley/agent/openai/lenient"
	"parley/agent/openai/thinktags"
	"parley/agent/openai/toolcall"
	"parley/agent/openai/usage"
)

// Bounds of an answer. They stop a server that would send without end.
const (
	maxAnswer  = 16 << 20 // bytes of an answer that are kept in memory
	maxStream  = 96 << 20 // bytes of the stream that are read
	maxCalls   = 128
	maxName    = 256 // bytes of a tool's name
	maxChoices = 64  // choices in one event
)

// An assembly puts a model's answer together from the chunks of its stream.
type assembly struct {
	host     string
	emit     func(llm.Delta)
	pieces   []*piece
	text     *piece // the text block that grows; nil once a call has followed it
	thought  *piece // the only thinking piece; nil until the model has thought
	calls    int    // number of tool calls so far
	byIndex  map[int]*piece
	lastCall *piece // the call that the last part belonged to
	split    thinktags.Splitter
	message  wholeMessage // what came as "message" and not as "delta"

	usage     *usage.Report
	stop      llm.Stop
	reason    string
	announced bool // the finish_reason says that there are tool calls
	finished  bool // a finish_reason has come
	size      int  // bytes of text and arguments, from which tokens are estimated
	kept      int  // bytes of everything that is kept

	// What is being read. Each event is read into the same memory.
	chunk chunk
	small smallChunk
}

// A wholeMessage remembers the parts of an answer that came in a field "message". Some
// servers send that field beside "delta" or instead of it, with all the text so far or
// with the whole answer.
type wholeMessage struct {
	text    string // the text of the messages so far
	thought string // the thinking of the messages so far

	streamsText, streamsThought bool // the text, or the thinking, comes as deltas
	called                      bool // tool calls have come
}

// A piece is one block of the answer while it grows.
type piece struct {
	kind    llm.BlockKind
	index   int  // its index in the answer
	hidden  bool // its growth is not emitted, because a later block has been emitted
	text    strings.Builder
	id      string
	name    string
	call    callExtra
	thought savedThought
	details details
}

// newAssembly returns an empty assembly. It calls emit for each piece of text that is
// added.
func newAssembly(host string, emit func(llm.Delta)) *assembly {
	return &assembly{host: host, emit: emit, byIndex: map[int]*piece{}}
}

// add adds one event of the stream. It returns a *refusal if the event says that the
// server failed, and errGarbled if the event cannot be read or the answer does not end.
func (a *assembly) add(raw []byte) error {
	if text, ok := increment.Text(raw); ok {
		return a.addIncrement(text)
	}
	if len(raw) <= maxSmallChunk {
		if added, err := a.addSmall(raw); added {
			return err
		}
	}
	return a.addLarge(raw)
}

// addLarge adds an event of any size, or one that says that something is wrong.
func (a *assembly) addLarge(raw []byte) error {
	a.chunk = chunk{}
	c := &a.chunk
	if err := json.Unmarshal(raw, c); err != nil {
		return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
	}
	switch {
	case !lenient.IsEmpty(c.Error), c.Object == "error", c.Choices == nil && len(c.Message) > 2 && c.Message[0] == '"':
		return refusalInStream(raw)
	case len(c.Choices) > maxChoices:
		return fmt.Errorf("%w: an event with %d choices", errGarbled, len(c.Choices))
	}
	a.usage = cmp.Or(c.usage(), a.usage)
	for _, one := range c.Choices {
		var choice choice
		if err := json.Unmarshal(one, &choice); err != nil {
			return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
		}
		if err := a.addChoice(&choice); err != nil {
			return err
		}
	}
	return a.checkSize()
}

// addIncrement adds the text of an event that says nothing else.
func (a *assembly) addIncrement(text string) error {
	d := &delta{Content: content{text: text}}
	if err := a.addDelta(d); err != nil {
		return err
	}
	a.message.noteDelta(d)
	return a.checkSize()
}

// addSmall adds a small event that has choices and nothing wrong. It returns false, and adds nothing,
// if the event is another.
func (a *assembly) addSmall(raw []byte) (added bool, err error) {
	choices := a.small.Choices[:0]
	clear(choices[:cap(choices)]) // what they held may be kept, and decoding does not empty them
	a.small = smallChunk{Choices: choices}
	c := &a.small
	if json.Unmarshal(raw, c) != nil || len(c.Choices) == 0 || len(c.Choices) > maxChoices || !lenient.IsEmpty(c.Error) || c.Object == "error" {
		return false, nil
	}
	a.usage = cmp.Or(c.usage(), a.usage)
	for i := range c.Choices {
		if err := a.addChoice(&c.Choices[i]); err != nil {
			return true, err
		}
	}
	return true, a.checkSize()
}

// checkSize returns an error if the answer is larger than what is kept.
func (a *assembly) checkSize() error {
	if a.kept > maxAnswer {
		return fmt.Errorf("%w: it does not end", errGarbled)
	}
	return nil
}

// addChoice adds the delta, the message and the finish_reason of a choice.
func (a *assembly) addChoice(c *choice) error {
	if c.Index != 0 {
		return nil // only one was asked for
	}
	if !lenient.IsEmpty(c.Error) {
		return refusalInStream([]byte(`{"error":` + string(c.Error) + `}`))
	}
	if err := a.addDelta(&c.Delta); err != nil {
		return err
	}
	a.message.noteDelta(&c.Delta)
	if c.Message != nil {
		if err := a.addDelta(a.message.newPartOf(c.Message)); err != nil {
			return err
		}
	}
	return a.setFinishReason(ending.Word(c.Finish))
}

// setFinishReason records an answer's finish_reason. Some servers send several; the
// first that says that the answer is not whole counts. It returns an error if the server
// reports a failure.
func (a *assembly) setFinishReason(reason string) error {
	if reason == "" {
		return nil
	}
	if reason == "error" {
		return fmt.Errorf("%w: by its server", errCut)
	}
	a.finished = true
	if a.stop != llm.StopWhole {
		return nil
	}
	a.stop = ending.StopOf(reason)
	if toolcall.WellFormed(reason) {
		a.reason = reason
	}
	a.announced = a.announced || ending.AnnouncesCalls(reason)
	return nil
}

// stopReason returns why the answer ended. If the server announced tool calls and sent
// none, they were lost.
func (a *assembly) stopReason(calls int) llm.Stop {
	if a.stop == llm.StopWhole && a.announced && calls == 0 {
		return llm.StopLost
	}
	return a.stop
}

// addDelta adds the thinking, the text and the tool calls of a delta.
func (a *assembly) addDelta(d *delta) error {
	if err := a.addThinkingOf(d); err != nil {
		return err
	}
	thought, said := a.split.Add(d.Content.text)
	a.addThinking(thought)
	a.addText(said + string(d.Refusal))
	if len(d.ToolCalls) > maxCalls {
		return fmt.Errorf("%w: more than %d tool calls", errGarbled, maxCalls)
	}
	for i, call := range d.ToolCalls {
		if err := a.addCall(call, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// noteDelta remembers which fields the server sends as deltas.
func (m *wholeMessage) noteDelta(d *delta) {
	m.streamsText = m.streamsText || d.Content.text+string(d.Refusal) != ""
	m.streamsThought = m.streamsThought || d.thinkingText() != ""
	m.called = m.called || len(d.ToolCalls) > 0
}

// newPartOf returns the part of a message that neither a delta nor an earlier message has
// brought.
func (m *wholeMessage) newPartOf(d *delta) *delta {
	news := &delta{}
	if !m.streamsText {
		news.Content.text = textBeyond(d.Content.text+string(d.Refusal), m.text)
		m.text += news.Content.text
	}
	if !m.streamsThought {
		more := textBeyond(d.thinkingText(), m.thought)
		d.keepThinking(news, more)
		m.thought += more
		news.ReasoningDetails, news.ExtraContent = d.ReasoningDetails, d.ExtraContent
	}
	if !m.called {
		news.ToolCalls = d.ToolCalls
		m.called = len(d.ToolCalls) > 0
	}
	return news
}

// textBeyond returns what follows before in text, or the whole text if it does not begin
// with before.
func textBeyond(text, before string) string {
	if rest, ok := strings.CutPrefix(text, before); ok {
		return rest
	}
	return text
}

// begin appends an empty piece to the answer.
func (a *assembly) begin(kind llm.BlockKind) *piece {
	p := &piece{kind: kind, index: len(a.pieces)}
	a.pieces = append(a.pieces, p)
	return p
}

// addText adds text that the model says. Text after a tool call becomes a block of its
// own, because watchers have been told that the block before the call has ended.
func (a *assembly) addText(text string) {
	if text == "" || a.text == nil && a.calls > 0 && strings.TrimSpace(text) == "" {
		return
	}
	if a.text == nil {
		a.text = a.begin(llm.BlockText)
	}
	a.grow(a.text, text)
}

// grow appends text to a piece, and emits it unless the piece is hidden.
func (a *assembly) grow(p *piece, text string) {
	a.size += len(text)
	a.kept += len(text)
	p.text.WriteString(text)
	if !p.hidden {
		a.emit(llm.Delta{Block: p.index, Kind: p.kind, Text: text})
	}
}

// addThinkingOf adds the thinking in a delta, and the fields that the provider wants
// back with the next request.
func (a *assembly) addThinkingOf(d *delta) error {
	text := d.thinkingText()
	a.addThinking(text)
	if text != "" && d.ReasoningContent.thinkingThenText() != "" {
		a.thought.thought.Echo = true
	}
	if !lenient.IsEmpty(d.ReasoningDetails) {
		a.kept += len(d.ReasoningDetails)
		if err := a.thinkingPiece().details.add(d.ReasoningDetails); err != nil {
			return err
		}
	}
	if !lenient.IsEmpty(d.ExtraContent) {
		a.kept += len(d.ExtraContent)
		a.thinkingPiece().thought.Extra = d.ExtraContent
	}
	return nil
}

// addThinking appends text to the thinking piece.
func (a *assembly) addThinking(text string) {
	if text == "" {
		return
	}
	p := a.thinkingPiece()
	// Watchers have been told of a later block and no longer see this one grow.
	p.hidden = p.hidden || p.index < len(a.pieces)-1
	a.grow(p, text)
}

// thinkingPiece returns the piece that holds the model's thinking, and begins it if
// needed. There is only one, because providers want the thinking back whole.
func (a *assembly) thinkingPiece() *piece {
	if a.thought == nil {
		a.thought = a.begin(llm.BlockThinking)
		a.thought.hidden = a.text != nil // the text block goes on, so watchers see no new one
	}
	return a.thought
}

// answer returns the answer that the chunks make up. requestSize is the size of the
// request in bytes; the tokens are estimated from it if the server reports no usage.
func (a *assembly) answer(requestSize int) (*llm.Answer, error) {
	thought, said := a.split.Flush()
	a.addThinking(thought)
	a.addText(said)
	stop := a.stopReason(a.calls)
	if stop == llm.StopWindow && a.calls == 0 && a.text == nil {
		return nil, &refusal{code: "context_length_exceeded", message: "the model's window is full"}
	}
	out := &llm.Answer{Stop: stop, Usage: usage.Of(a.usage, requestSize, a.size)}
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
				return nil, fmt.Errorf("%w: a tool call without a name", errGarbled)
			}
			b.Name, b.Text, b.Args = p.name, "", toolcall.ReadArgs(p.text.String())
			if !seen[p.id] { // calls that share an id get ids of our own
				b.ProviderID, seen[p.id] = p.id, true
			}
			if p.call.ExtraContent != nil || p.call.ThoughtSignature != nil {
				b.Provider = toRaw(savedCall{By: a.host, callExtra: p.call})
			}
		case llm.BlockThinking:
			b.Provider = p.thoughtToSave(a.host)
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out, nil
}

// thoughtToSave returns the fields of a thinking block that the provider wants back; nil
// if it wants none.
func (p *piece) thoughtToSave(host string) json.RawMessage {
	p.thought.Details = p.details.raw()
	if !p.thought.Echo && p.thought.Details == nil && p.thought.Extra == nil {
		return nil
	}
	p.thought.By = host
	return toRaw(p.thought)
}

// toRaw encodes a value for the Provider field of a block. The values were read from
// JSON and can always be encoded.
func toRaw(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}
