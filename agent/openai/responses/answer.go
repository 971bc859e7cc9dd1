package responses

import (
	"bytes"
	"encoding/json"
	"fmt"

	"parley/agent/llm"
	"parley/agent/openai/thinktags"
	"parley/agent/openai/wire"
	"parley/tools/plainjson"
)

// Limits on an answer. They stop a server that would send without end.
const (
	maxAnswerSize = 16 << 20 // bytes of an answer that are kept in memory
	maxItems      = 512
	maxCalls      = 128
	maxName       = 256 // bytes of a tool's name
)

// eventArgumentsDone is the type of the event that contains a call's complete arguments.
const eventArgumentsDone = "response.function_call_arguments.done"

// An Assembly puts a model's answer together from the events of its stream.
type Assembly struct {
	host           string
	emit           func(llm.Delta)
	items          []*item
	blocks         []*block
	taggedThinking *item // the thinking that arrived within the text; nil for none
	// thinksBare remembers whether the model's texts begin with thinking without an opening tag.
	thinksBare *thinktags.Habit
	calls      int // number of tool calls so far

	lost       bool // a text contained a tool call that the server did not recognize
	ended      bool
	stop       llm.Stop
	reason     string
	usage      *wire.Usage
	progressed bool // the last event added something to the answer
	size       int  // bytes of text and arguments, from which the tokens are estimated
	keptBytes  int  // bytes of everything that is stored
}

// NewAssembly returns an empty Assembly for an answer from a host. It calls emit for each piece of text that is
// added. thinksBare remembers, from answer to answer, whether the model's texts begin with thinking without an
// opening tag.
func NewAssembly(host string, emit func(llm.Delta), thinksBare *thinktags.Habit) *Assembly {
	return &Assembly{host: host, emit: emit, thinksBare: thinksBare}
}

// Ended reports whether the server has said that the answer has ended.
func (a *Assembly) Ended() bool { return a.ended }

// Whole reports whether the answer has at least one block and all items that have begun have ended.
func (a *Assembly) Whole() bool {
	for _, i := range a.items {
		if !i.isDone {
			return false
		}
	}
	return len(a.blocks) > 0
}

// HasProgressed reports whether the last event added something to the answer. Other events only show that the
// server is alive.
func (a *Assembly) HasProgressed() bool { return a.progressed }

// MayBeThinking reports whether the model may be reasoning at the moment. A server may send nothing for a long
// time while it does.
func (a *Assembly) MayBeThinking() bool {
	open, last := false, typeReasoning
	for _, i := range a.items {
		open = open || i.kind == typeReasoning && !i.isDone
		if i.block != nil {
			last = i.kind
		}
	}
	return open || last == typeReasoning
}

// Add adds one event of the stream. It returns a *Failure if the event says that the server failed, and another
// error if the event can't be read or the answer exceeds a limit.
func (a *Assembly) Add(raw []byte) error {
	if bytes.HasPrefix(raw, []byte("[")) { // Google sends its errors as a list
		return &Failure{Raw: raw}
	}
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
	}
	before := a.keptBytes + len(a.blocks)
	if err := a.add(e, raw); err != nil {
		return err
	}
	a.progressed = a.keptBytes+len(a.blocks) > before || a.ended
	if a.keptBytes > maxAnswerSize {
		return fmt.Errorf("%w: it does not end", errGarbled)
	}
	return nil
}

// add adds one event.
func (a *Assembly) add(e event, raw []byte) error {
	switch e.Type {
	case "response.output_item.added":
		return a.announce(e)
	case "response.output_text.delta", "response.refusal.delta":
		i, err := a.findOrBegin(typeMessage, e)
		if err != nil {
			return err
		}
		return a.addMessage(i, i.joiner.Add(e.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning.delta":
		return a.addReasoning(e)
	case "response.function_call_arguments.delta", eventArgumentsDone:
		return a.addArguments(e)
	case "response.output_item.done":
		return a.finishItem(e)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		return a.end(e.Type, e.Response)
	case "error":
		return &Failure{Raw: raw}
	}
	if e.isFailure() {
		return &Failure{Raw: raw}
	}
	if e.Object == "response" {
		return a.end("", raw)
	}
	return nil
}

// finishItem handles the end of one item.
func (a *Assembly) finishItem(e event) error {
	w, known, err := readItem(e.Item)
	if err != nil || !known {
		return err
	}
	i := a.callOf(w)
	if i == nil {
		i = a.find(w.Type, string(w.ID), e.At)
	}
	if i == nil || i.isDone && !i.sameAs(w) {
		if i, err = a.begin(w.Type, string(w.ID), e.At); err != nil {
			return err
		}
	}
	return a.finish(i, w, e.Item)
}

// sameAs reports whether a complete item is this item sent again.
func (i *item) sameAs(w wireItem) bool {
	if i.kind == typeCall {
		return i.callID == string(w.CallID) && i.block != nil && i.block.text.String() == string(w.Arguments)
	}
	return i.id == string(w.ID) && i.received.String() == w.text()
}

// callOf returns the newest call with the same id as the call w; nil if there is none.
func (a *Assembly) callOf(w wireItem) *item {
	if w.Type != typeCall || w.CallID == "" {
		return nil
	}
	for n := len(a.items) - 1; n >= 0; n-- {
		if i := a.items[n]; i.kind == typeCall && i.callID == string(w.CallID) {
			return i
		}
	}
	return nil
}

// end handles the end of the answer, which repeats the whole answer. Some servers have sent nothing of it before. It
// returns a *Failure if the answer has failed.
func (a *Assembly) end(kind string, raw json.RawMessage) error {
	var r response
	if len(raw) > 0 && json.Unmarshal(raw, &r) != nil {
		return fmt.Errorf("%w: an end of %d bytes", errGarbled, len(raw))
	}
	status := wire.ReasonWord(r.Status)
	a.usage = r.Usage // a failure may come with usage
	if !wire.IsEmpty(r.Error) {
		return &Failure{Raw: []byte(`{"error":` + string(r.Error) + `}`)}
	}
	if kind == "response.failed" || status == "failed" {
		return &Failure{Raw: []byte(`{"error":{"code":"server_error"}}`)}
	}
	for _, one := range r.Output {
		w, known, err := readItem(one)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		i := a.listedAs(w)
		if i == nil {
			if i, err = a.begin(w.Type, string(w.ID), nil); err != nil {
				return err
			}
		}
		i.listed = true
		if err := a.finish(i, w, one); err != nil {
			return err
		}
	}
	a.ended = true
	switch reason := wire.ReasonWord(r.Incomplete.Reason); {
	case reason != "":
		a.stop, a.reason = wire.StopOf(reason), reason
		if a.stop == llm.StopWhole {
			a.stop = llm.StopUnknown
		}
	case kind == "response.incomplete" || status == "incomplete":
		a.stop = llm.StopUnknown
	case kind == "response.cancelled" || status == "cancelled":
		a.stop, a.reason = llm.StopBroken, "cancelled"
	}
	return nil
}

// listedAs returns the item that corresponds to w in the list at the answer's end; nil if w is new. Servers may
// give an item a different id there, so if no id matches, the order decides.
func (a *Assembly) listedAs(w wireItem) *item {
	var first *item
	for _, i := range a.items {
		if i.kind != w.Type || i.listed || i == a.taggedThinking {
			continue
		}
		if w.ID != "" && i.id == string(w.ID) || w.CallID != "" && i.callID == string(w.CallID) {
			return i
		}
		if first == nil {
			first = i
		}
	}
	return first
}

// Void returns a broken-off answer without its blocks; see [wire.Void].
func (a *Assembly) Void(requestSize int) *llm.Answer { return wire.Void(a.usage, requestSize, a.size) }

// Answer returns the answer that the events form. requestSize is the size of the request in bytes; it is used to
// estimate the tokens if the server reports no usage. It returns a *Failure if the model's window left no room for
// an answer, and another error if a call of a complete answer has no name.
func (a *Assembly) Answer(requestSize int) (*llm.Answer, error) {
	for _, i := range a.items {
		if i.kind == typeMessage && !i.isDone {
			if err := a.addMessage(i, i.joiner.Flush()); err != nil {
				return nil, err
			}
			if err := a.flush(i); err != nil {
				return nil, err
			}
		}
	}
	if a.stop == llm.StopWindow && len(a.blocks) == 0 {
		return nil, &Failure{Raw: []byte(`{"error":{"code":"context_length_exceeded","message":"the model's window is full"}}`)}
	}
	if a.lost && a.calls == 0 && a.stop == llm.StopWhole {
		a.stop = llm.StopLost
	}
	out := &llm.Answer{Stop: a.stop, Usage: wire.UsageOf(a.usage, requestSize, a.size)}
	if wire.WellFormed(a.reason) {
		out.Reason = a.reason
	}
	seen := map[string]bool{}
	for _, b := range a.blocks {
		if b.kind != llm.BlockToolUse {
			out.Blocks = append(out.Blocks, llm.Block{Kind: b.kind, Text: b.text.String(), Provider: b.toSave(a.host)})
			continue
		}
		if b.name == "" {
			if a.stop != llm.StopWhole {
				continue // the answer is incomplete, and the call's name may have been cut off
			}
			return nil, fmt.Errorf("%w: a tool call without a name", errGarbled)
		}
		use := llm.Block{Kind: b.kind, Name: b.name, Args: wire.ReadArgs(b.text.String())}
		if !seen[b.id] { // calls that share an id get ids of our own
			use.ProviderID, seen[b.id] = b.id, true
		}
		out.Blocks = append(out.Blocks, use)
	}
	return out, nil
}

// toSave returns what the server wants back with a block; nil if it wants nothing.
func (b *block) toSave(host string) json.RawMessage {
	if b.saved.Item == nil && b.saved.Phase == "" {
		return nil
	}
	b.saved.By = host
	raw, err := plainjson.Marshal(b.saved)
	if err != nil { // it was read from JSON
		return nil
	}
	return raw
}
