package openai

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"parley/agent/llm"
	"parley/agent/openai/wire"
	"parley/tools"
)

// Limits on the calls in an answer. They stop a server that would send without end.
const (
	maxCalls = 128
	maxName  = 256 // bytes of a tool's name
)

// A callAssembly puts an answer's tool calls together from their parts.
type callAssembly struct {
	pieces
	byIndex map[wire.Int]*piece
	last    *piece       // the call that the last part belonged to
	offered []tools.Spec // the tools that the model may call, sorted by name
}

// addCall adds one part of a tool call. beside reports whether another part precedes it in the same event. An empty
// part that belongs to no call adds nothing, and neither does a call that is sent again.
func (a *callAssembly) addCall(raw json.RawMessage, beside bool) error {
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
	if p.id == "" { // some servers give each part a different one
		p.id = string(d.ID)
	}
	if err := a.nameCall(p, string(d.Function.Name)); err != nil {
		return err
	}
	if d.Function.Arguments != "" {
		a.emitName(p)
	}
	a.growCall(p, p.args.Add(d.Function.Arguments))
	a.size += len(d.Function.Arguments)
	a.keptBytes += len(d.ID) + len(d.Function.Name) + len(d.Function.Arguments) + len(d.ExtraContent) + len(d.ThoughtSignature)
	if !wire.IsEmpty(d.ExtraContent) {
		p.call.ExtraContent = d.ExtraContent
	}
	if !wire.IsEmpty(d.ThoughtSignature) {
		p.call.ThoughtSignature = d.ThoughtSignature
	}
	return nil
}

// nameCall sets the name of a call, or appends the next part of it. Most servers send the whole name at once,
// and some repeat it in each part. A name that doesn't fit to the call's is ignored.
func (a *callAssembly) nameCall(p *piece, name string) error {
	switch {
	case name == "" || name == p.name:
		return nil
	case p.name == "":
		p.name = name
	case a.isWholeName(p.name, name):
		p.name = name
	case a.isRestOfName(p.name, name):
		p.name += name
	default:
		return nil
	}
	if len(p.name) > maxName {
		return fmt.Errorf("%w: a tool's name of %d bytes", errGarbled, len(p.name))
	}
	if len(a.offered) == 0 || a.isOffered(p.name) {
		a.emitName(p)
	}
	return nil
}

// firstOffered returns the first tool name, in sorted order, that doesn't sort before text; "" if there is
// none.
func (a *callAssembly) firstOffered(text string) string {
	at := sort.Search(len(a.offered), func(i int) bool { return a.offered[i].Name >= text })
	if at == len(a.offered) {
		return ""
	}
	return a.offered[at].Name
}

// isOffered reports whether the model may call a tool with that name.
func (a *callAssembly) isOffered(name string) bool { return name != "" && a.firstOffered(name) == name }

// isRestOfName reports whether part continues a name that has begun: no tool has the name part, and some tool's name
// begins with both joined.
func (a *callAssembly) isRestOfName(begun, part string) bool {
	return !a.isOffered(part) && strings.HasPrefix(a.firstOffered(begun+part), begun+part)
}

// isWholeName reports whether name is the name of a tool, and begun is its beginning but no tool's name.
func (a *callAssembly) isWholeName(begun, name string) bool {
	return !a.isOffered(begun) && a.isOffered(name) && strings.HasPrefix(name, begun)
}

// callOf returns the call that a part belongs to, which may be a new one; nil if the part is empty and belongs
// to none. Servers number calls from 0 or from 1, give all of them the same number, or don't number them. They
// give calls distinct ids, the same id, or none.
func (a *callAssembly) callOf(d callDelta, beside bool) *piece {
	id, name := string(d.ID), string(d.Function.Name)
	p := a.last
	switch {
	case d.Index != nil:
		p = a.byIndex[*d.Index]
	case id != "" && p != nil && p.id != "" && id != p.id:
		if known := a.byID(id); known != nil || !p.isContinuedBy(d) {
			p = known
		}
	case id == "" && name != "" && beside:
		p = nil // parts with names in one event are separate calls
	}
	if p != nil && a.isEndedBy(p, d) {
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
	a.last = p
	if d.Index != nil {
		a.byIndex[*d.Index] = p
	}
	return p
}

// isEndedBy reports whether a part that could belong to this call begins another one. It does if it has a different id,
// unless it continues the arguments; if it has a different name, unless that continues the name; or if it repeats the
// name although the arguments are already complete.
func (a *callAssembly) isEndedBy(p *piece, d callDelta) bool {
	id, name, args := string(d.ID), string(d.Function.Name), string(d.Function.Arguments)
	switch {
	case id != "" && p.id != "" && id != p.id && p.isContinuedBy(d):
		return false
	case id != "" && p.id != "" && id != p.id:
		return true
	case name == "" || p.name == "":
		return false
	case name != p.name:
		return p.text.Len() > 0 || !a.isWholeName(p.name, name) && !a.isRestOfName(p.name, name)
	}
	before := p.text.String()
	if id == "" {
		return json.Valid([]byte(before))
	}
	return len(before) > 2 && args != before && strings.HasPrefix(args, "{") && json.Valid([]byte(before))
}

// isContinuedBy reports whether a part contains arguments but no name, while the arguments of this call are
// incomplete. Then it belongs to this call, whatever its id is, because some servers give each part a different
// one.
func (p *piece) isContinuedBy(d callDelta) bool {
	args := strings.TrimRight(p.text.String(), " \t\r\n")
	return d.Function.Name == "" && d.Function.Arguments != "" && !(strings.HasSuffix(args, "}") && json.Valid([]byte(args)))
}
