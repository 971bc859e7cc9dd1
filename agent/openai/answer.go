package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/agent/llm"
	"parley/agent/openai/increment"
	"parley/agent/openai/thinktags"
	"parley/agent/openai/wire"
)

// Limits on an answer. They stop a server that would send without end.
const (
	maxAnswerSize = 16 << 20 // bytes of an answer that are kept in memory
	maxChoices    = 64       // choices in one event
)

// maxUsageWait is how long to wait for the usage after the finish_reason. It is short, because the answer is already
// there.
const maxUsageWait = 5 * time.Second

// An assembly puts a model's answer together from the chunks of its stream.
type assembly struct {
	callAssembly
	host string
	// These join the pieces of texts.
	textJoiner, refusalJoiner, thoughtJoiner wire.Joiner

	split thinktags.Splitter
	// thinksBare remembers whether the model's texts begin with thinking without an opening tag; nil if nobody
	// needs that.
	thinksBare *thinktags.Habit
	message    wholeMessage // what arrived in "message" instead of "delta"

	usage     *wire.Usage
	stop      llm.Stop
	reason    string
	announced bool // the finish_reason says that the answer has tool calls
	finished  bool // a finish_reason has arrived

	// The event that is being read. All events are read into the same memory.
	chunk chunk
	small smallChunk
}

// A wholeMessage keeps track of the parts of an answer that arrived in a field "message". Some servers send
// that field in addition to "delta" or instead of it, with all the text so far or with the whole answer.
type wholeMessage struct {
	text    string // the text of the messages so far
	thought string // the thinking of the messages so far

	streamsText, streamsThought bool // the text, or the thinking, arrives in deltas
	hasCalls                    bool // tool calls have arrived
}

// newAssembly returns an empty assembly. It calls emit for each piece of text that is added.
func newAssembly(host string, emit func(llm.Delta)) *assembly {
	return &assembly{host: host, callAssembly: callAssembly{pieces: pieces{emit: emit}, byIndex: map[wire.Int]*piece{}}}
}

// add adds one event of the stream. It returns a *refusal if the event says that the server failed, and
// errGarbled if the event can't be read or the answer gets too large.
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

// addLarge adds an event of any size, or one that reports an error.
func (a *assembly) addLarge(raw []byte) error {
	a.chunk = chunk{}
	c := &a.chunk
	if bytes.HasPrefix(raw, []byte("[")) { // Google sends its errors as a list
		return refusalInStream(raw)
	}
	if err := json.Unmarshal(raw, c); err != nil {
		return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
	}
	a.usage = cmp.Or(c.usage(), a.usage) // an error may come with usage
	switch {
	case c.isFailure(len(c.Choices)):
		return refusalInStream(raw)
	case len(c.Choices) > maxChoices:
		return fmt.Errorf("%w: an event with %d choices", errGarbled, len(c.Choices))
	}
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

// addIncrement adds the text of an event that contains nothing else.
func (a *assembly) addIncrement(text string) error {
	d := &delta{Content: content{text: text}}
	if err := a.addDelta(d); err != nil {
		return err
	}
	a.message.noteDelta(d)
	return a.checkSize()
}

// addSmall adds a small event that has choices and reports no error. It returns false, and adds nothing, for
// any other event.
func (a *assembly) addSmall(raw []byte) (added bool, err error) {
	choices := a.small.Choices[:0]
	clear(choices[:cap(choices)]) // decoding doesn't clear them, and what they held may be kept
	a.small = smallChunk{Choices: choices}
	c := &a.small
	if json.Unmarshal(raw, c) != nil || len(c.Choices) == 0 || len(c.Choices) > maxChoices || c.isFailure(len(c.Choices)) {
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

// checkSize returns an error if the answer is too large to keep.
func (a *assembly) checkSize() error {
	if a.keptBytes > maxAnswerSize {
		return fmt.Errorf("%w: it does not end", errGarbled)
	}
	return nil
}

// addChoice adds the delta, the message and the finish_reason of a choice. It ignores all choices but the first, and
// returns a *refusal if the choice reports an error.
func (a *assembly) addChoice(c *choice) error {
	if c.Index != 0 {
		return nil // only one was asked for
	}
	a.usage = cmp.Or(c.Usage, a.usage)
	if !wire.IsEmpty(c.Error) {
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
	return a.setFinishReason(wire.ReasonWord(c.Finish))
}

// setFinishReason records an answer's finish_reason. Some servers send several; the first that says that the
// answer is incomplete counts. It returns an error if the server reports a failure.
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
	a.stop = wire.StopOf(reason)
	if wire.WellFormed(reason) {
		a.reason = reason
	}
	a.announced = a.announced || wire.AnnouncesCalls(reason)
	return nil
}

// stopReason returns why the answer ended. If the server announced tool calls and sent none, they were lost.
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
	said := a.textJoiner.Add(wire.Text(d.Content.text))
	a.addParts(a.split.Add(said, a.currentText()), a.refusalJoiner.Add(d.Refusal))
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
	m.hasCalls = m.hasCalls || len(d.ToolCalls) > 0
}

// newPartOf returns the part of a message that neither a delta nor an earlier message contained.
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
	if !m.hasCalls {
		news.ToolCalls = d.ToolCalls
		m.hasCalls = len(d.ToolCalls) > 0
	}
	return news
}

// textBeyond returns the part of text after the prefix before, or the whole text if it doesn't begin with
// before.
func textBeyond(text, before string) string {
	if rest, ok := strings.CutPrefix(text, before); ok {
		return rest
	}
	return text
}

// addThinkingOf adds the thinking in a delta, and the fields that the provider wants back with the next
// request.
func (a *assembly) addThinkingOf(d *delta) error {
	text := d.thinkingText()
	if text != "" {
		a.split.CancelAssume()
	}
	a.addThinking(a.thoughtJoiner.Add(wire.Text(text)))
	if text != "" && d.ReasoningContent.thinkingThenText() != "" {
		a.thinkingPiece().thought.Echo = true
	}
	if !wire.IsEmpty(d.ReasoningDetails) {
		a.keptBytes += len(d.ReasoningDetails)
		if err := a.thinkingPiece().details.add(d.ReasoningDetails); err != nil {
			return err
		}
	}
	if !wire.IsEmpty(d.ExtraContent) {
		a.keptBytes += len(d.ExtraContent)
		a.thinkingPiece().thought.Extra = d.ExtraContent
	}
	return nil
}

// answer returns the answer that the chunks form. requestSize is the size of the request in bytes; it is used
// to estimate the tokens if the server reports no usage. It returns a *refusal if the request left no room for an
// answer, and errGarbled if a call has no name.
func (a *assembly) answer(requestSize int) (*llm.Answer, error) {
	a.addThinking(a.thoughtJoiner.Flush())
	a.addParts(a.split.Add(a.textJoiner.Flush(), a.currentText()), "")
	rest := a.split.Flush(a.calls > 0)
	a.addParts(rest, a.refusalJoiner.Flush())
	if a.thinksBare != nil && (a.text != nil || a.thought != nil) {
		a.thinksBare.Note(&a.split, rest)
	}
	a.announced = a.announced || a.split.LostCall()
	stop := a.stopReason(a.calls)
	if stop == llm.StopWindow && a.calls == 0 && a.text == nil {
		return nil, &refusal{code: "context_length_exceeded", message: "the model's window is full"}
	}
	out := &llm.Answer{Stop: stop, Usage: wire.UsageOf(a.usage, requestSize, a.size)}
	if stop != llm.StopWhole {
		out.Reason = a.reason
	}
	seen := map[string]bool{}
	for _, p := range a.all {
		a.emitName(p)
		b := llm.Block{Kind: p.kind, Text: p.text.String() + p.args.Flush()}
		switch p.kind {
		case llm.BlockToolUse:
			if p.name == "" {
				if stop != llm.StopWhole {
					continue // the answer is incomplete, and the call's name may have been cut off
				}
				return nil, fmt.Errorf("%w: a tool call without a name", errGarbled)
			}
			b.Name, b.Text, b.Args = p.name, "", wire.ReadArgs(b.Text)
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

// wait implements answerReader. Once the answer has ended, only its usage may follow.
func (a *assembly) wait(cfg *Config) time.Duration {
	if a.finished {
		return maxUsageWait
	}
	return cfg.Idle
}

// isWhole implements answerReader. The answer is complete when a finish_reason or [DONE] has arrived.
func (a *assembly) isWhole(done bool) bool { return a.finished || done }

// isOver implements answerReader. It never is, because some servers send the usage after the end of the answer.
func (a *assembly) isOver() bool { return false }

// void implements answerReader.
func (a *assembly) void(requestSize int) *llm.Answer { return wire.Void(a.usage, requestSize, a.size) }
