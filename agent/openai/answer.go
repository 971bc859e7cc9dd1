package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent"
)

// maxAnswer is the most bytes that an answer may have.
const maxAnswer = 16 << 20

// An assembly puts an answer together from chunks.
type assembly struct {
	host     string
	emit     func(agent.Delta)
	pieces   []*piece
	text     *piece
	thought  *piece
	byIndex  map[int]*piece
	lastCall *piece
	usage    *usage
	cutOff   bool
	finished bool // the model has said that it ended
	size     int  // bytes received, for an estimate
}

// A piece is a block that grows.
type piece struct {
	kind    agent.BlockKind
	at      int // its index in the answer
	text    strings.Builder
	id      string
	name    string
	call    callExtra
	thought savedThought
	details details
}

func newAssembly(host string, emit func(agent.Delta)) *assembly {
	return &assembly{host: host, emit: emit, byIndex: map[int]*piece{}}
}

// add takes one event. A *refusal is what the server says of its own failing.
func (a *assembly) add(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return fmt.Errorf("%w: an event of %d bytes", errGarbled, len(raw))
	}
	switch {
	case !missing(c.Error):
		return refusalIn(raw)
	case c.Object == "error":
		return refusalIn(raw)
	}
	if a.size > maxAnswer {
		return fmt.Errorf("%w: it does not end", errGarbled)
	}
	if c.Groq != nil && c.Groq.Usage != nil {
		a.usage = c.Groq.Usage
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // only one was asked for
		}
		if err := a.choice(choice); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) choice(c choice) error {
	if !missing(c.Error) {
		return refusalIn([]byte(`{"error":` + string(c.Error) + `}`))
	}
	d := c.Delta
	if c.Message != nil {
		d = *c.Message
	}
	a.think(d)
	a.say(d.Content.text + string(d.Refusal))
	for _, call := range d.ToolCalls {
		a.call(call)
	}
	switch strings.ToLower(string(c.Finish)) {
	case "":
	case "error":
		return fmt.Errorf("%w: by its server", errCut)
	case "length", "max_tokens", "max_output_tokens":
		a.cutOff, a.finished = true, true
	default:
		a.finished = true
	}
	return nil
}

func (a *assembly) begin(kind agent.BlockKind) *piece {
	p := &piece{kind: kind, at: len(a.pieces)}
	a.pieces = append(a.pieces, p)
	return p
}

func (a *assembly) say(text string) {
	if text == "" {
		return
	}
	if a.text == nil {
		a.text = a.begin(agent.BlockText)
	}
	a.grow(a.text, text)
}

func (a *assembly) grow(p *piece, text string) {
	a.size += len(text)
	p.text.WriteString(text)
	a.emit(agent.Delta{Block: p.at, Kind: p.kind, Text: text})
}

// think takes what a model thought, and what its provider wants back of it.
func (a *assembly) think(d delta) {
	text, echo := d.ReasoningContent.all(), true
	if text == "" {
		text, echo = d.Reasoning.all(), false // some servers send both, the same
	}
	if text == "" {
		text = d.Content.thinking
	}
	more := !missing(d.ReasoningDetails) || !missing(d.ExtraContent)
	if text == "" && !more {
		return
	}
	if a.thought == nil {
		a.thought = a.begin(agent.BlockThinking)
	}
	p := a.thought
	if text != "" {
		p.thought.Echo = p.thought.Echo || echo
		a.grow(p, text)
	}
	if !missing(d.ReasoningDetails) {
		p.details.add(d.ReasoningDetails)
	}
	if !missing(d.ExtraContent) {
		p.thought.Extra = d.ExtraContent
	}
}

// call takes a part of a tool call.
func (a *assembly) call(d callDelta) {
	p := a.callOf(d)
	if p == nil {
		return
	}
	if d.ID != "" {
		p.id = string(d.ID)
	}
	if p.name == "" && d.Function.Name != "" { // some repeat it in each part
		p.name = string(d.Function.Name)
		a.emit(agent.Delta{Block: p.at, Kind: agent.BlockToolUse, Name: p.name})
	}
	p.text.WriteString(string(d.Function.Arguments))
	a.size += len(d.Function.Arguments)
	if !missing(d.ExtraContent) {
		p.call.ExtraContent = d.ExtraContent
	}
	if !missing(d.ThoughtSignature) {
		p.call.ThoughtSignature = d.ThoughtSignature
	}
}

// callOf finds the call that a part belongs to. Servers number calls from 0 or
// from 1, all with the same number, or not at all; a new id, or a name after
// complete arguments, begins a new one.
func (a *assembly) callOf(d callDelta) *piece {
	id, name := string(d.ID), string(d.Function.Name)
	p := a.lastCall
	if d.Index != nil {
		p = a.byIndex[*d.Index]
	}
	switch {
	case p == nil:
	case id != "" && p.id != "" && id != p.id:
		if d.Index == nil {
			p = a.byID(id)
		} else {
			p = nil
		}
	case id == "" && name != "" && p.name != "" && json.Valid([]byte(p.text.String())):
		p = nil
	}
	if p == nil {
		if id == "" && name == "" && d.Function.Arguments == "" {
			return nil // a part of nothing
		}
		p = a.begin(agent.BlockToolUse)
	}
	a.lastCall = p
	if d.Index != nil {
		a.byIndex[*d.Index] = p
	}
	return p
}

func (a *assembly) byID(id string) *piece {
	for _, p := range a.pieces {
		if p.kind == agent.BlockToolUse && p.id == id {
			return p
		}
	}
	return nil
}

// answer is what has come together, of a request of so many bytes.
func (a *assembly) answer(asked int) (agent.Answer, error) {
	out := agent.Answer{CutOff: a.cutOff, Usage: a.used(asked)}
	seen := map[string]bool{}
	for _, p := range a.pieces {
		b := agent.Block{Kind: p.kind}
		switch p.kind {
		case agent.BlockToolUse:
			if p.name == "" {
				if a.cutOff {
					continue // it is not to be trusted anyway
				}
				return agent.Answer{}, fmt.Errorf("%w: a tool call without a name", errGarbled)
			}
			b.Name, b.Args = p.name, objectOf(p.text.String())
			if !seen[p.id] { // an id that is not unique is none
				b.ProviderID, seen[p.id] = p.id, true
			}
			if p.call.ExtraContent != nil || p.call.ThoughtSignature != nil {
				b.Provider = saved(savedCall{By: a.host, callExtra: p.call})
			}
		case agent.BlockThinking:
			b.Text = p.text.String()
			p.thought.Details = p.details.raw()
			if p.thought.Echo || p.thought.Details != nil || p.thought.Extra != nil {
				p.thought.By = a.host
				b.Provider = saved(p.thought)
			}
		default:
			b.Text = p.text.String()
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out, nil
}

// used is what the server counted, or else a guess: four bytes a token.
func (a *assembly) used(asked int) agent.TokenUse {
	u := a.usage
	if u == nil || u.Prompt <= 0 && u.Completion <= 0 {
		return agent.TokenUse{Input: int64(asked+3) / 4, Output: int64(a.size+3) / 4, Estimated: true}
	}
	cached := u.CacheHit
	if u.Details != nil && u.Details.Cached > 0 {
		cached = u.Details.Cached
	}
	return agent.TokenUse{
		Input:  int64(max(0, u.Prompt)),
		Cached: int64(max(0, min(cached, u.Prompt))),
		Output: int64(max(0, u.Completion)),
	}
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

// details are reasoning_details: entries that arrive in parts.
type details []map[string]any

func (ds *details) add(raw json.RawMessage) {
	var more []map[string]any
	if json.Unmarshal(raw, &more) != nil {
		return
	}
	for _, m := range more {
		if n := len(*ds); n > 0 && continues((*ds)[n-1], m) {
			merge((*ds)[n-1], m)
		} else {
			*ds = append(*ds, m)
		}
	}
}

// continues tells whether an entry is the next part of another. What is
// encrypted comes whole.
func continues(last, next map[string]any) bool {
	kind, _ := next["type"].(string)
	before, _ := last["type"].(string)
	from, _ := last["index"].(float64)
	to, _ := next["index"].(float64)
	return kind == before && from == to && (kind == "reasoning.text" || kind == "reasoning.summary")
}

func merge(last, next map[string]any) {
	for k, v := range next {
		part, isText := v.(string)
		before, _ := last[k].(string)
		switch {
		case isText && (k == "text" || k == "summary"):
			last[k] = before + part
		case v != nil:
			last[k] = v
		}
	}
}

func (ds details) raw() json.RawMessage {
	if len(ds) == 0 {
		return nil
	}
	return saved(ds)
}
