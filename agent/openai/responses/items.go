package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/thinktags"
	"parley/agent/openai/wire"
)

// An item is one item of the output while it grows. It becomes a block of the answer once some of its content
// is known: a server may announce an item and put nothing into it.
type item struct {
	kind        string // typeMessage, typeReasoning or typeCall
	id          string // may differ from event to event
	callID      string
	outputIndex wire.Int // its index in the output; -1 if the server doesn't say; several items may have the same
	block       *block
	received    strings.Builder // the text as it arrived
	joiner      wire.Joiner     // of its pieces
	isDone      bool
	listed      bool // the list at the end contains it

	split  thinktags.Splitter // of a message
	source string             // of reasoning: the type of the events that contain its text
	part   wire.Int           // of reasoning: the part of the summary that is growing
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

// find returns the newest item that an event may belong to: the one with its id, or else with its index, or
// else the one that is still growing; nil if there is none. Gateways give the events of one item different ids,
// give several items the same index, or leave out either.
func (a *Assembly) find(kind, id string, at *wire.Int) *item {
	var byID, byIndex, open *item
	for _, i := range a.items {
		if i.kind != kind || i == a.taggedThinking {
			continue
		}
		if id != "" && i.id == id {
			byID = i
		}
		if at != nil && i.outputIndex == *at {
			byIndex = i
		}
		if !i.isDone {
			open = i
		}
	}
	return cmp.Or(byID, byIndex, open)
}

// begin appends an item that the server has announced, or that it sends a part of without having announced it.
func (a *Assembly) begin(kind, id string, at *wire.Int) (*item, error) {
	if len(a.items) == maxItems {
		return nil, fmt.Errorf("%w: more than %d items", errGarbled, maxItems)
	}
	i := &item{kind: kind, id: id, outputIndex: -1}
	if at != nil {
		i.outputIndex = *at
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
		if again && !i.isDone && i.received.Len() == 0 {
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

// nameCall sets a call's name and id, once the server has sent them.
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
	a.keptBytes += len(w.Name) + len(w.CallID)
	if b.name == "" && w.Name != "" {
		b.name = string(w.Name)
		a.emit(llm.Delta{Block: b.index, Kind: llm.BlockToolUse, Name: b.name, Text: b.text.String()})
	}
	return nil
}

// finish handles a complete item, which the server sends at the item's end or in the list at the end of the
// answer.
func (a *Assembly) finish(i *item, w wireItem, raw json.RawMessage) error {
	if i.isDone {
		return nil
	}
	i.isDone, i.joiner = true, wire.Joiner{} // the complete item contains the text that was held back
	switch w.Type {
	case typeMessage:
		if err := a.completeText(i, w.text()); err != nil {
			return err
		}
		if err := a.flush(i); err != nil {
			return err
		}
		if i.block != nil && len(w.Phase) <= maxName {
			i.block.saved.Phase = string(w.Phase)
		}
	case typeReasoning:
		if i.received.Len() == 0 {
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
		a.keptBytes += len(back)
		b.saved.Item = back
	case typeCall:
		if err := a.nameCall(i, w); err != nil {
			return err
		}
		a.replaceArguments(i, string(w.Arguments))
	}
	return nil
}

// completeText adds the missing end to a message's text. What watchers have seen stays.
func (a *Assembly) completeText(i *item, whole string) error {
	rest, goesOn := strings.CutPrefix(whole, i.received.String())
	if !goesOn {
		return nil
	}
	return a.addMessage(i, rest)
}

// addMessage adds text to a message.
func (a *Assembly) addMessage(i *item, text string) error {
	if i.received.Len() == 0 && a.thinksBare.Holds() && a.calls == 0 {
		i.split.Assume()
	}
	i.received.WriteString(text)
	said := &strings.Builder{}
	if i.block != nil {
		said = &i.block.text
	}
	return a.addParts(i, i.split.Add(text, said))
}

// flush adds the end of a message's text that was held back.
func (a *Assembly) flush(i *item) error {
	rest := i.split.Flush(a.calls > 0)
	a.thinksBare.Note(&i.split, rest)
	a.lost = a.lost || i.split.LostCall()
	return a.addParts(i, rest)
}

// addParts adds thinking and text, from a message that contained both.
func (a *Assembly) addParts(i *item, p thinktags.Parts) error {
	if p.Thinking && i.block != nil {
		if err := a.turnToThinking(i); err != nil {
			return err
		}
	}
	if p.Speech && a.taggedThinking != nil {
		if err := a.turnToText(i); err != nil {
			return err
		}
	}
	if p.Thought != "" {
		t, err := a.taggedItem()
		if err != nil {
			return err
		}
		if err := a.addThinking(t, p.Thought); err != nil {
			return err
		}
	}
	if p.Said == "" || i.block == nil && a.calls > 0 && strings.TrimSpace(p.Said) == "" {
		return nil
	}
	b, err := a.blockOf(i, llm.BlockText)
	if err != nil {
		return err
	}
	a.grow(b, p.Said)
	return nil
}

// taggedItem returns the item for thinking that arrived within the text, and begins it if needed.
func (a *Assembly) taggedItem() (*item, error) {
	if a.taggedThinking == nil {
		t, err := a.begin(typeReasoning, "", nil)
		if err != nil {
			return nil, err
		}
		t.isDone, a.taggedThinking = true, t
	}
	return a.taggedThinking, nil
}

// turnToThinking turns what a message has said so far into thinking.
func (a *Assembly) turnToThinking(i *item) error {
	t, err := a.taggedItem()
	if err != nil {
		return err
	}
	text := i.block.text.String()
	a.remove(i)
	b, err := a.blockOf(t, llm.BlockThinking)
	if err != nil {
		return err
	}
	b.text.WriteString(text)
	a.emitAgain()
	return nil
}

// turnToText turns the thinking that arrived within the text into what a message says.
func (a *Assembly) turnToText(i *item) error {
	if a.taggedThinking.block == nil {
		return nil
	}
	text := a.taggedThinking.block.text.String()
	a.remove(a.taggedThinking)
	b, err := a.blockOf(i, llm.BlockText)
	if err != nil {
		return err
	}
	b.text.WriteString(text)
	a.emitAgain()
	return nil
}

// remove removes an item's block from the answer.
func (a *Assembly) remove(i *item) {
	a.blocks = slices.DeleteFunc(a.blocks, func(b *block) bool { return b == i.block })
	i.block = nil
	for n, b := range a.blocks {
		b.index = n
	}
}

// emitAgain tells watchers that the text they have seen is void, and emits all blocks in their current form.
func (a *Assembly) emitAgain() {
	a.emit(llm.Delta{Void: true})
	for _, b := range a.blocks {
		if b.kind == llm.BlockToolUse {
			a.emit(llm.Delta{Block: b.index, Kind: b.kind, Name: b.name, Text: b.text.String()})
		} else if b.text.Len() > 0 {
			a.emit(llm.Delta{Block: b.index, Kind: b.kind, Text: b.text.String()})
		}
	}
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
	i.received.WriteString(text)
	a.grow(b, text)
	return nil
}

// addReasoning adds a piece of a model's reasoning that arrived as an event. Some servers send the same
// reasoning both in full and summarized; the form that arrives first is used.
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
	text := i.joiner.Add(e.Delta)
	if e.Part != nil && *e.Part != i.part {
		i.part = *e.Part
		if i.received.Len() > 0 {
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
	text := i.joiner.Add(e.Delta)
	i.received.WriteString(text)
	a.size += len(text)
	a.keptBytes += len(text)
	b.text.WriteString(text)
	if text != "" && b.name != "" && b.index == len(a.blocks)-1 {
		a.emit(llm.Delta{Block: b.index, Kind: b.kind, Text: text})
	}
	return nil
}

// replaceArguments replaces a call's arguments by those that the server sends at the call's end, unless these are
// empty.
func (a *Assembly) replaceArguments(i *item, whole string) {
	if wire.IsEmpty(json.RawMessage(whole)) || whole == i.block.text.String() {
		return
	}
	a.size += max(0, len(whole)-i.block.text.Len())
	a.keptBytes += len(whole)
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

// grow appends text to a block. It emits the text unless watchers already see a later block.
func (a *Assembly) grow(b *block, text string) {
	a.size += len(text)
	a.keptBytes += len(text)
	b.text.WriteString(text)
	if b.index == len(a.blocks)-1 {
		a.emit(llm.Delta{Block: b.index, Kind: b.kind, Text: text})
	}
}
