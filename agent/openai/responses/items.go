package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/lenient"
	"parley/agent/openai/thinktags"
)

// An item is one item of the output while it grows. It becomes a block of the answer
// once something of it is known: a server may announce an item and put nothing into it.
type item struct {
	kind   string // typeMessage, typeReasoning or typeCall
	id     string // may differ from event to event
	callID string
	at     int // its index in the output; -1 if the server does not say, and not always its own
	block  *block
	got    strings.Builder // the text as it came
	done   bool
	listed bool // the list at the end has it too

	split  thinktags.Splitter // of a message
	source string             // of reasoning: the type of the events that bring its text
	part   int                // of reasoning: the part of the summary that grows
}

// A block is one block of the answer while it grows.
type block struct {
	kind  llm.BlockKind
	index int // its index in the answer
	text  strings.Builder
	id    string // of a call: the provider's
	name  string
	saved savedContent
}

// find returns the newest item that an event may belong to: that of its id, or else that
// of its index, or else the one that goes on; nil if there is none. Gateways give the
// events of one item different ids, several items one index, or leave out either.
func (a *Assembly) find(kind, id string, at *int) *item {
	var byID, byIndex, open *item
	for _, i := range a.items {
		if i.kind != kind || i == a.tagged {
			continue
		}
		if id != "" && i.id == id {
			byID = i
		}
		if at != nil && i.at == *at {
			byIndex = i
		}
		if !i.done {
			open = i
		}
	}
	return cmp.Or(byID, byIndex, open)
}

// begin appends an item that the server has announced, or of which it sends something
// without having announced it.
func (a *Assembly) begin(kind, id string, at *int) (*item, error) {
	if len(a.items) == maxItems {
		return nil, fmt.Errorf("%w: more than %d items", errGarbled, maxItems)
	}
	i := &item{kind: kind, id: id, at: -1}
	if at != nil {
		i.at = *at
	}
	a.items = append(a.items, i)
	return i, nil
}

// findOrBegin returns the item that an event belongs to, which may be a new one.
func (a *Assembly) findOrBegin(kind string, e event) (*item, error) {
	if i := a.find(kind, string(e.ItemID), e.At); i != nil {
		return i, nil
	}
	return a.begin(kind, string(e.ItemID), e.At)
}

// announce handles the announcement of an item. Some servers repeat it.
func (a *Assembly) announce(e event) error {
	w, known, err := readItem(e.Item)
	if err != nil || !known {
		return err
	}
	for _, i := range a.items {
		again := i.kind == w.Type && w.ID != "" && i.id == string(w.ID) && i.callID == string(w.CallID)
		if again && !i.done && i.got.Len() == 0 {
			return nil
		}
	}
	i, err := a.begin(w.Type, string(w.ID), e.At)
	if err != nil || i.kind != typeCall {
		return err
	}
	i.callID = string(w.CallID)
	return a.nameCall(i, w)
}

// nameCall gives a call its name and its id, once the server has sent them.
func (a *Assembly) nameCall(i *item, w wireItem) error {
	if len(w.Name) > maxName {
		return fmt.Errorf("%w: a tool's name of %d bytes", errGarbled, len(w.Name))
	}
	b, err := a.blockOf(i, llm.BlockToolUse)
	if err != nil {
		return err
	}
	if i.callID == "" {
		i.callID = string(w.CallID)
	}
	b.id = i.callID
	a.kept += len(w.Name) + len(w.CallID)
	if b.name == "" && w.Name != "" {
		b.name = string(w.Name)
		a.emit(llm.Delta{Block: b.index, Kind: llm.BlockToolUse, Name: b.name})
	}
	return nil
}

// finish handles an item that is whole, as the server sends it at the item's end or in
// the list at the end of the answer.
func (a *Assembly) finish(i *item, w wireItem, raw json.RawMessage) error {
	if i.done {
		return nil
	}
	i.done = true
	switch w.Type {
	case typeMessage:
		if err := a.completeText(i, w.text()); err != nil {
			return err
		}
		thought, said := i.split.Flush()
		if err := a.addSaid(i, thought, said); err != nil {
			return err
		}
		if i.block != nil && len(w.Phase) <= maxName {
			i.block.saved.Phase = string(w.Phase)
		}
	case typeReasoning:
		if i.got.Len() == 0 {
			if err := a.addThinking(i, w.text()); err != nil {
				return err
			}
		}
		back := w.toSave(raw)
		if back == nil {
			return nil
		}
		b, err := a.blockOf(i, llm.BlockThinking)
		if err != nil {
			return err
		}
		a.kept += len(back)
		b.saved.Item = back
	case typeCall:
		if err := a.nameCall(i, w); err != nil {
			return err
		}
		a.replaceArguments(i, string(w.Arguments))
	}
	return nil
}

// completeText adds to a message's text the end that is missing. What watchers have seen stays.
func (a *Assembly) completeText(i *item, whole string) error {
	rest, goesOn := strings.CutPrefix(whole, i.got.String())
	if !goesOn {
		return nil
	}
	return a.addMessage(i, rest)
}

// addMessage adds text to a message.
func (a *Assembly) addMessage(i *item, text string) error {
	i.got.WriteString(text)
	thought, said := i.split.Add(text)
	return a.addSaid(i, thought, said)
}

// addSaid adds what the model thought and said in a text in which both stood.
func (a *Assembly) addSaid(i *item, thought, said string) error {
	if thought != "" {
		if a.tagged == nil {
			t, err := a.begin(typeReasoning, "", nil)
			if err != nil {
				return err
			}
			t.done, a.tagged = true, t
		}
		if err := a.addThinking(a.tagged, thought); err != nil {
			return err
		}
	}
	if said == "" || i.block == nil && a.calls > 0 && strings.TrimSpace(said) == "" {
		return nil
	}
	b, err := a.blockOf(i, llm.BlockText)
	if err != nil {
		return err
	}
	a.grow(b, said)
	return nil
}

// addThinking adds text to an item of reasoning.
func (a *Assembly) addThinking(i *item, text string) error {
	if text == "" {
		return nil
	}
	b, err := a.blockOf(i, llm.BlockThinking)
	if err != nil {
		return err
	}
	i.got.WriteString(text)
	a.grow(b, text)
	return nil
}

// addReasoning adds a piece of a model's reasoning that came as an event. Some servers
// send the same reasoning whole and summed up; the form that comes first is taken.
func (a *Assembly) addReasoning(e event) error {
	i, err := a.findOrBegin(typeReasoning, e)
	if err != nil {
		return err
	}
	if i.source == "" {
		i.source = e.Type
	}
	if i.source != e.Type {
		return nil
	}
	text := string(e.Delta)
	if e.Part != nil && *e.Part != i.part {
		i.part = *e.Part
		if i.got.Len() > 0 {
			text = partBreak + text
		}
	}
	return a.addThinking(i, text)
}

// addArguments adds a piece of a call's arguments.
func (a *Assembly) addArguments(e event) error {
	i, err := a.findOrBegin(typeCall, e)
	if err != nil {
		return err
	}
	b, err := a.blockOf(i, llm.BlockToolUse)
	if err != nil {
		return err
	}
	if e.Type == eventArgumentsDone {
		a.replaceArguments(i, string(e.Arguments))
		return nil
	}
	i.got.WriteString(string(e.Delta))
	a.size += len(e.Delta)
	a.kept += len(e.Delta)
	b.text.WriteString(string(e.Delta))
	return nil
}

// replaceArguments takes a call's arguments as the server sends them at their end.
func (a *Assembly) replaceArguments(i *item, whole string) {
	if lenient.IsEmpty(json.RawMessage(whole)) || whole == i.block.text.String() {
		return
	}
	a.size += max(0, len(whole)-i.block.text.Len())
	a.kept += len(whole)
	i.block.text.Reset()
	i.block.text.WriteString(whole)
}

// blockOf returns an item's block, and begins it if needed.
func (a *Assembly) blockOf(i *item, kind llm.BlockKind) (*block, error) {
	if i.block != nil {
		return i.block, nil
	}
	if kind == llm.BlockToolUse {
		if a.calls == maxCalls {
			return nil, fmt.Errorf("%w: more than %d tool calls", errGarbled, maxCalls)
		}
		a.calls++
	}
	i.block = &block{kind: kind, index: len(a.blocks)}
	a.blocks = append(a.blocks, i.block)
	return i.block, nil
}

// grow appends text to a block. It is emitted unless watchers have been told of a later
// block.
func (a *Assembly) grow(b *block, text string) {
	a.size += len(text)
	a.kept += len(text)
	b.text.WriteString(text)
	if b.index == len(a.blocks)-1 {
		a.emit(llm.Delta{Block: b.index, Kind: b.kind, Text: text})
	}
}
