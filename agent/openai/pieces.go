package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/thinktags"
	"parley/agent/openai/wire"
)

// pieces holds the blocks of an answer while they grow.
type pieces struct {
	emit      func(llm.Delta) // is called with each addition
	all       []*piece
	text      *piece // the text block that is growing; nil after a call
	thought   *piece // the only thinking piece; nil until the model has thought
	calls     int    // number of tool calls so far
	size      int    // bytes of text and arguments, from which the tokens are estimated
	keptBytes int    // bytes of everything that is stored
}

// A piece is one block of the answer while it grows.
type piece struct {
	kind      llm.BlockKind
	index     int  // its index in the answer
	hidden    bool // its growth is not emitted, because a later block was already emitted
	text      strings.Builder
	id        string
	name      string
	nameShown bool // watchers were shown the name
	args      wire.Joiner
	call      callExtra
	thought   savedThought
	details   details
}

// addParts adds the thinking and the words in a piece of text, and a refusal by the model.
func (ps *pieces) addParts(p thinktags.Parts, refusal string) {
	if p.Thinking {
		ps.turnToThinking()
	}
	if p.Speech {
		ps.turnToText()
	}
	ps.addThinking(p.Thought)
	ps.addText(p.Said + refusal)
}

// begin appends an empty piece to the answer.
func (ps *pieces) begin(kind llm.BlockKind) *piece {
	p := &piece{kind: kind, index: len(ps.all)}
	ps.all = append(ps.all, p)
	return p
}

// addText adds text that the model says. Text after a tool call becomes a separate block, because watchers were
// told that the block before the call has ended. White space directly after a call adds nothing.
func (ps *pieces) addText(text string) {
	if text == "" || ps.text == nil && ps.calls > 0 && strings.TrimSpace(text) == "" {
		return
	}
	if ps.text == nil {
		ps.text = ps.begin(llm.BlockText)
	}
	ps.grow(ps.text, text)
}

// grow appends text to a piece, and emits it unless the piece is hidden.
func (ps *pieces) grow(p *piece, text string) {
	ps.size += len(text)
	ps.keptBytes += len(text)
	p.text.WriteString(text)
	if !p.hidden {
		ps.emit(llm.Delta{Block: p.index, Kind: p.kind, Text: text})
	}
}

// addThinking appends text to the thinking piece.
func (ps *pieces) addThinking(text string) {
	if text == "" {
		return
	}
	p := ps.thinkingPiece()
	// Watchers already see a later block, so they no longer see this one grow.
	p.hidden = p.hidden || p.index < len(ps.all)-1
	ps.grow(p, text)
}

// thinkingPiece returns the piece that holds the model's thinking, and begins it if needed. There is only one,
// because providers want all thinking back together.
func (ps *pieces) thinkingPiece() *piece {
	if ps.thought == nil {
		ps.thought = ps.begin(llm.BlockThinking)
		ps.thought.hidden = ps.text != nil // the text block continues, so watchers are shown no new one
	}
	return ps.thought
}

// currentText returns the text of the current block so far; empty if there is no block yet.
func (ps *pieces) currentText() *strings.Builder {
	if ps.text == nil {
		return &strings.Builder{}
	}
	return &ps.text.text
}

// turnToThinking turns the text that the model has said into thinking.
func (ps *pieces) turnToThinking() {
	if ps.text == nil {
		return
	}
	text := ps.text.text.String()
	ps.all = slices.DeleteFunc(ps.all, func(p *piece) bool { return p == ps.text })
	ps.text = nil
	ps.thinkingPiece().text.WriteString(text)
	ps.emitAgain()
}

// turnToText turns the thinking so far into text that the model says, unless the model has begun to say something.
func (ps *pieces) turnToText() {
	if ps.thought == nil || ps.text != nil {
		return
	}
	text := ps.thought.text.String()
	if ps.thought.text.Reset(); len(ps.thought.details.entries) == 0 && ps.thought.thought.Extra == nil {
		ps.all = slices.DeleteFunc(ps.all, func(p *piece) bool { return p == ps.thought })
		ps.thought = nil
	}
	ps.text = ps.begin(llm.BlockText)
	ps.text.text.WriteString(text)
	ps.emitAgain()
}

// emitAgain tells watchers that the text they have seen is void, and emits all pieces in their current form.
func (ps *pieces) emitAgain() {
	ps.emit(llm.Delta{Void: true})
	for i, p := range ps.all {
		p.index, p.hidden = i, i < len(ps.all)-1
		if p.kind == llm.BlockToolUse {
			p.nameShown = false
			ps.emitName(p)
		} else if p.text.Len() > 0 {
			ps.emit(llm.Delta{Block: i, Kind: p.kind, Text: p.text.String()})
		}
	}
}

// emitName shows a call to watchers, once, when its name is known, and sends them the arguments so far.
func (ps *pieces) emitName(p *piece) {
	if p.kind != llm.BlockToolUse || p.nameShown || p.name == "" {
		return
	}
	p.nameShown = true
	ps.emit(llm.Delta{Block: p.index, Kind: llm.BlockToolUse, Name: p.name, Text: p.text.String()})
}

// growCall appends a piece of a call's arguments. Watchers see it if they know the call's name and have seen no
// later block.
func (ps *pieces) growCall(p *piece, text string) {
	p.text.WriteString(text)
	if text != "" && p.nameShown && p.index == len(ps.all)-1 {
		ps.emit(llm.Delta{Block: p.index, Kind: llm.BlockToolUse, Text: text})
	}
}

// byID returns the newest call with the given id, or nil.
func (ps *pieces) byID(id string) *piece {
	for i := len(ps.all) - 1; i >= 0; i-- {
		if p := ps.all[i]; p.kind == llm.BlockToolUse && p.id == id {
			return p
		}
	}
	return nil
}

// thoughtToSave returns the fields of a thinking block that the provider wants back; nil if it wants none.
func (p *piece) thoughtToSave(host string) json.RawMessage {
	p.thought.Details = p.details.raw()
	if !p.thought.Echo && p.thought.Details == nil && p.thought.Extra == nil {
		return nil
	}
	p.thought.By = host
	return toRaw(p.thought)
}
