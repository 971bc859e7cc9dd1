// Package transcript is a session's log as a model is shown it.
//
// transcript.go makes messages of the log's entries and keeps them within a size;
// frames.go marks in the text who said what, so that nobody can speak for anybody
// else; textonly.go retells messages without calls, for a summary. The same log
// always gives the same bytes: providers then reuse what they have read.
package transcript

import (
	"encoding/json"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
	"parley/tools"
)

// BytesPerToken is a cautious guess where no provider has counted.
const BytesPerToken = 4

// clearedResult stands for an old result that makes room for what is new.
const clearedResult = `"[an old result, cleared to save room; call the tool again if it matters]"`

// Render makes the model's messages of the log. The same log gives the same
// bytes, so that providers can reuse what they have read. Every call is
// followed by its result, whatever the log lacks.
func Render(records []journal.Record, contextTokens int) []llm.Message {
	r := &rendering{}
	covered := int64(0)
	if s, ok := NewestSummary(records); ok {
		covered = s.Covers
		r.summary(s)
	}
	for _, rec := range records {
		if rec.N > covered {
			r.entry(rec)
		}
	}
	r.addResults()
	clearOldResults(r.messages, contextTokens)
	return r.messages
}

// NewestSummary is the summary that stands for the past, if there is one.
func NewestSummary(records []journal.Record) (sessions.Summary, bool) {
	for i := len(records) - 1; i >= 0; i-- {
		if s, ok := records[i].Data.(sessions.Summary); ok {
			return s, true
		}
	}
	return sessions.Summary{}, false
}

type rendering struct {
	messages []llm.Message
	calls    []llm.Block // of the last answer, in the order in which the model made them
	results  map[string]llm.Block
}

func (r *rendering) entry(rec journal.Record) {
	switch d := rec.Data.(type) {
	case sessions.User:
		r.addResults()
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameMessage(rec.Person, d)})
	case sessions.Notice:
		r.addResults()
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameNotice(d)})
	case sessions.Thinking:
		r.answerBlock(llm.Block{Kind: llm.BlockThinking, Text: d.Text, Provider: d.Provider})
	case sessions.Text:
		r.answerBlock(llm.Block{Kind: llm.BlockText, Text: d.Text})
	case sessions.ToolUse:
		b := llm.Block{Kind: llm.BlockToolUse, Call: rec.Call, Name: d.Name, Args: d.Args, ProviderID: d.ProviderID, Provider: d.Provider}
		r.answerBlock(b)
		r.calls = append(r.calls, b)
	case sessions.ToolResult:
		if r.results == nil {
			r.results = map[string]llm.Block{}
		}
		r.results[rec.Call] = llm.Block{Kind: llm.BlockToolResult, Call: rec.Call, Content: d.Content, Failed: d.Code != ""}
	}
}

// summary comes first, wherever it stands in the log: it replaces the past.
func (r *rendering) summary(s sessions.Summary) {
	if s.Text == "" {
		return
	}
	r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: FrameSummary(s.Text)})
}

func (r *rendering) add(role llm.Role, blocks ...llm.Block) {
	if n := len(r.messages); n > 0 && r.messages[n-1].Role == role {
		r.messages[n-1].Blocks = append(r.messages[n-1].Blocks, blocks...)
		return
	}
	r.messages = append(r.messages, llm.Message{Role: role, Blocks: blocks})
}

// answerBlock adds a block of the model's. One that follows results is a new answer.
func (r *rendering) answerBlock(b llm.Block) {
	if len(r.results) > 0 {
		r.addResults()
	}
	r.add(llm.RoleAssistant, b)
}

// addResults adds the results of the last answer's calls, in the order of the calls.
func (r *rendering) addResults() {
	for _, c := range r.calls {
		b, ok := r.results[c.Call]
		if !ok {
			lost := tools.Errorf(tools.OutcomeUnknown, "There is no record of what came of this call.")
			b = llm.Block{Kind: llm.BlockToolResult, Call: c.Call, Content: lost.Result().Content, Failed: true}
		}
		b.Name, b.ProviderID = c.Name, c.ProviderID
		r.add(llm.RoleUser, b)
	}
	r.calls, r.results = nil, nil
}

// clearOldResults empties old tool results, the oldest first, until the messages fit
// into the window. The newer half of the window keeps all of its own.
func clearOldResults(messages []llm.Message, contextTokens int) {
	excess := EstimateMessages(messages) - contextTokens
	if excess <= 0 {
		return
	}
	kept, newest := 0, len(messages)
	for newest > 0 && kept < contextTokens/2 {
		newest--
		kept += EstimateMessages(messages[newest : newest+1])
	}
	for i := 0; i < newest && excess > 0; i++ {
		for j, b := range messages[i].Blocks {
			if b.Kind == llm.BlockToolResult && len(b.Content) > 2*len(clearedResult) && excess > 0 {
				excess -= (len(b.Content) - len(clearedResult)) / BytesPerToken
				messages[i].Blocks[j].Content = json.RawMessage(clearedResult)
			}
		}
	}
}

// Estimate is about how many tokens a request has.
func Estimate(r llm.Request) int {
	n := len(r.System)
	for _, t := range r.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n/BytesPerToken + EstimateMessages(r.Messages)
}

// EstimateMessages is about how many tokens messages have.
func EstimateMessages(messages []llm.Message) int {
	n := 0
	for _, m := range messages {
		for _, b := range m.Blocks {
			n += len(b.Text) + len(b.Args) + len(b.Content) + len(b.Provider) + 16
		}
	}
	return n / BytesPerToken
}

// TruncateResults cuts results that are longer than a quarter of the room, where all does not
// fit. The same log and the same room give the same bytes.
func TruncateResults(messages []llm.Message, limit int) {
	if limit <= 0 || EstimateMessages(messages) <= limit {
		return
	}
	most := limit * BytesPerToken / 4
	for _, m := range messages {
		for i, b := range m.Blocks {
			if b.Kind == llm.BlockToolResult && len(b.Content) > most {
				m.Blocks[i].Content, _ = tools.Truncate(b.Content, most, "")
			}
		}
	}
}
