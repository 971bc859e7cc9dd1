// Package transcript turns a session's log into the messages that a model is shown.
//
// transcript.go makes messages of the log's entries and keeps them within a size;
// pictures.go decides which pictures are shown and which are only named;
// frames.go marks in the text who said what, so that nobody can speak for anybody
// else; textonly.go retells messages without calls, for a summary; untrusted.go tells
// whether strangers may have written some of it. The same log always gives the same
// bytes, so that providers can reuse what they have read.
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

// clearedResult replaces an old result to make room.
const clearedResult = `"[an old result, cleared to save room; call the tool again if it matters]"`

// waitingResult stands for the result of a call about which somebody is asked.
const waitingResult = `"[waiting: somebody is asked about this call and has not answered yet]"`

// Render makes the model's messages of the log, for the turn that is going on: own,
// or "" where there is none. The same log gives the same bytes, so that providers
// can reuse what they have read. Every call is followed by its result, whatever the
// log lacks.
//
// A turn that waited while a new conversation was begun goes on in the old one: it
// is shown itself alone, and in the new conversation nothing of it is.
func Render(records []journal.Record, own string, contextTokens int) []llm.Message {
	r := newRendering(records)
	r.shown = turnsWithPictures(records, own)
	covered := int64(0)
	if s, ok := NewestSummary(records); ok {
		covered = s.Covers
	}
	left := leftBehind(records, covered)
	if s, ok := NewestSummary(records); ok && !left[own] {
		r.addSummary(s)
	}
	for _, rec := range records {
		switch {
		case left[own]:
			if rec.Turn == own {
				r.addEntry(rec)
			}
		case rec.N > covered && !left[rec.Turn]:
			r.addEntry(rec)
		}
	}
	r.addResults()
	limitPictures(r.messages)
	clearOldResults(r.messages, contextTokens)
	return r.messages
}

// leftBehind are the turns that began before what is covered and end after it.
func leftBehind(records []journal.Record, covered int64) map[string]bool {
	if covered == 0 {
		return nil
	}
	began := map[string]bool{}
	left := map[string]bool{}
	for _, rec := range records {
		switch rec.Data.(type) {
		case sessions.TurnStarted:
			began[rec.Turn] = true
			left[rec.Turn] = rec.N <= covered
		case sessions.TurnDone:
			if rec.N > covered && !began[rec.Turn] { // its beginning is not held any more
				left[rec.Turn] = true
			}
		}
	}
	return left
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

// A rendering is the messages that Render has made so far.
type rendering struct {
	messages []llm.Message
	calls    []llm.Block          // of the last answer, in the order in which the model made them
	results  map[string]llm.Block // of all calls
	waiting  map[string]bool      // calls about which somebody is asked
	came     bool                 // a result, since the last answer

	pictures map[string][]sessions.Picture // by the call that shows them
	files    *fileLists
	shown    map[string]bool // turns whose pictures are shown
	turn     string          // of the last answer
}

// newRendering looks up the results, and which calls wait for one: what is said
// while a turn waits comes before its results in the log, and after them here.
func newRendering(records []journal.Record) *rendering {
	r := &rendering{files: newFileLists(records), results: map[string]llm.Block{}, waiting: map[string]bool{}, pictures: map[string][]sessions.Picture{}}
	for _, rec := range records {
		switch d := rec.Data.(type) {
		case sessions.ToolResult:
			r.results[rec.Call] = llm.Block{Kind: llm.BlockToolResult, Call: rec.Call, Content: d.Content, Failed: d.Code != ""}
		case sessions.Picture:
			r.pictures[rec.Call] = append(r.pictures[rec.Call], d)
		case sessions.TurnParked:
			for _, ask := range d.Asks {
				r.waiting[ask.Call] = true
			}
		}
	}
	return r
}

func (r *rendering) addEntry(rec journal.Record) {
	switch d := rec.Data.(type) {
	case sessions.User:
		r.addResults()
		files := r.files.of(rec.Cause)
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameMessage(rec.Person, d, files)})
		r.addAttached(files, rec.Turn)
	case sessions.Attached:
		if files := r.files.orphans(d.Message); len(files) > 0 { // its message was an answer, and is in a result
			r.addResults()
			r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameMessage(rec.Person, sessions.User{}, files)})
			r.addAttached(files, rec.Turn)
		}
	case sessions.Notice:
		r.addResults()
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameNotice(d)})
	case sessions.Thinking:
		r.addAnswerBlock(llm.Block{Kind: llm.BlockThinking, Text: d.Text, Provider: d.Provider})
	case sessions.Text:
		r.addAnswerBlock(llm.Block{Kind: llm.BlockText, Text: d.Text})
	case sessions.ToolUse:
		b := llm.Block{Kind: llm.BlockToolUse, Call: rec.Call, Name: d.Name, Args: d.Args, ProviderID: d.ProviderID, Provider: d.Provider}
		r.addAnswerBlock(b)
		r.calls, r.turn = append(r.calls, b), rec.Turn
	case sessions.ToolResult:
		r.came = true
	}
}

// addSummary adds the summary. It comes first, wherever the log has it, as it replaces
// the past.
func (r *rendering) addSummary(s sessions.Summary) {
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

// addAnswerBlock adds a block that the model wrote. After results a new answer begins.
func (r *rendering) addAnswerBlock(b llm.Block) {
	if r.came {
		r.addResults()
	}
	r.add(llm.RoleAssistant, b)
}

// addResults adds the results of the last answer's calls, in the order of the calls.
func (r *rendering) addResults() {
	for _, c := range r.calls {
		b, ok := r.results[c.Call]
		switch {
		case ok:
		case r.waiting[c.Call]:
			b = llm.Block{Kind: llm.BlockToolResult, Call: c.Call, Content: json.RawMessage(waitingResult)}
		default:
			lost := tools.Errorf(tools.OutcomeUnknown, "There is no record of what came of this call.")
			b = llm.Block{Kind: llm.BlockToolResult, Call: c.Call, Content: lost.Result().Content, Failed: true}
		}
		b.Name, b.ProviderID = c.Name, c.ProviderID
		r.add(llm.RoleUser, b)
	}
	for _, c := range r.calls {
		for _, p := range r.pictures[c.Call] {
			r.addPicture(p, r.shown[r.turn])
		}
	}
	r.calls, r.came = nil, false
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
			if b.Kind == llm.BlockPicture {
				n += pictureTokens * BytesPerToken
			}
		}
	}
	return n / BytesPerToken
}

// TruncateResults cuts results that are longer than a quarter of limit, in tokens, if the
// messages do not fit into it. The same log and limit give the same bytes.
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
