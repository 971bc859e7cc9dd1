package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/lenient"
)

// addCall adds one part of a tool call. beside reports whether another part precedes it
// in the same event.
func (a *assembly) addCall(raw json.RawMessage, beside bool) error {
	var d callDelta
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("%w: a tool call of %d bytes", errGarbled, len(raw))
	}
	p := a.callOf(d, beside)
	switch {
	case p == nil:
		return nil // the part is empty and belongs to no call
	case a.calls > maxCalls:
		return fmt.Errorf("%w: more than %d tool calls", errGarbled, maxCalls)
	case len(d.Function.Name) > maxName:
		return fmt.Errorf("%w: a tool's name of %d bytes", errGarbled, len(d.Function.Name))
	}
	if p.id != "" && string(d.ID) == p.id && d.Function.Name != "" && p.text.Len() > 2 && string(d.Function.Arguments) == p.text.String() {
		return nil // the server has sent this call twice
	}
	if d.ID != "" {
		p.id = string(d.ID)
	}
	if p.name == "" && d.Function.Name != "" { // some servers repeat the name in each part
		p.name = string(d.Function.Name)
		a.emit(llm.Delta{Block: p.index, Kind: llm.BlockToolUse, Name: p.name})
	}
	p.text.WriteString(string(d.Function.Arguments))
	a.size += len(d.Function.Arguments)
	a.kept += len(d.ID) + len(d.Function.Name) + len(d.Function.Arguments) + len(d.ExtraContent) + len(d.ThoughtSignature)
	if !lenient.IsEmpty(d.ExtraContent) {
		p.call.ExtraContent = d.ExtraContent
	}
	if !lenient.IsEmpty(d.ThoughtSignature) {
		p.call.ThoughtSignature = d.ThoughtSignature
	}
	return nil
}

// callOf returns the call that a part belongs to, which may be a new one; nil if the
// part is empty and belongs to none. Servers number calls from 0 or from 1, give all of
// them the same number, or do not number them. They give calls distinct ids, the same
// id, or none.
func (a *assembly) callOf(d callDelta, beside bool) *piece {
	id, name := string(d.ID), string(d.Function.Name)
	p := a.lastCall
	switch {
	case d.Index != nil:
		p = a.byIndex[*d.Index]
	case id != "" && p != nil && p.id != "" && id != p.id:
		p = a.byID(id)
	case id == "" && name != "" && beside:
		p = nil // parts of one event with names are calls of their own
	}
	if p != nil && p.endsBefore(d) {
		p = nil
	}
	if p == nil {
		if id == "" && name == "" && d.Function.Arguments == "" {
			return nil
		}
		p = a.begin(llm.BlockToolUse)
		a.calls++
		a.text = nil
	}
	a.lastCall = p
	if d.Index != nil {
		a.byIndex[*d.Index] = p
	}
	return p
}

// endsBefore reports whether a part that could belong to this call begins another call:
// the part has another id or another name, or the arguments of this call are already
// whole.
func (p *piece) endsBefore(d callDelta) bool {
	id, name, args := string(d.ID), string(d.Function.Name), string(d.Function.Arguments)
	switch {
	case id != "" && p.id != "" && id != p.id:
		return true
	case name == "" || p.name == "":
		return false
	case name != p.name:
		return true
	}
	before := p.text.String()
	if id == "" {
		return json.Valid([]byte(before))
	}
	return len(before) > 2 && args != before && strings.HasPrefix(args, "{") && json.Valid([]byte(before))
}

// byID returns the newest call with the given id, or nil.
func (a *assembly) byID(id string) *piece {
	for i := len(a.pieces) - 1; i >= 0; i-- {
		if p := a.pieces[i]; p.kind == llm.BlockToolUse && p.id == id {
			return p
		}
	}
	return nil
}
