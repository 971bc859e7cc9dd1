// Package transcript turns a session's log into the messages that a model is shown.
//
// transcript.go makes messages of the log's entries; size.go says how large they are, and
// cut.go which of them go where that is too large; pictures.go decides which pictures are
// shown and which are only named; frames.go marks in the text who said what, so that nobody
// can speak for anybody else; textonly.go retells messages without calls, and summary.go
// has a model sum these up; untrusted.go tells whether strangers may have written some of
// it. The same log always gives the same bytes, so that providers can reuse what they have
// read.
package transcript

import (
	"encoding/json"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
	"parley/tools"
)

// clearedResult replaces an old result to make room.
const clearedResult = `"[an old result, cleared to save room; call the tool again if it matters]"`

// waitingResult stands for the result of a call about which somebody is asked.
const waitingResult = `"[waiting: somebody is asked about this call and has not answered yet]"`

// Render makes the model's messages of the log, for the turn that is going on: own,
// or "" where there is none. The same log gives the same bytes, so that providers
// can reuse what they have read. Every call is followed by its result, whatever the
// log lacks.
//
// What the newest summary covers is not shown, but for what it keeps, which comes first.
// A turn that waited while a new conversation was begun goes on in the old one: it
// is shown itself alone, and in the new conversation nothing of it is.
func Render(records []journal.Record, own string) []llm.Message {
	r := newRendering(records)
	r.shown = turnsWithPictures(records, own)
	v := viewOf(records, own)
	r.cleared = v.summary.Cleared
	for _, rec := range records {
		if v.keeps(rec) {
			r.addEntry(rec)
		}
	}
	r.addSummary(v.summary)
	for _, rec := range records {
		if v.shows(rec) {
			r.addEntry(rec)
		}
	}
	r.addResults()
	limitPictures(r.messages)
	return r.messages
}

// A view is what of a log a model is shown.
type view struct {
	summary sessions.Summary
	left    map[string]bool // turns of a conversation that /new has ended
	alone   string          // one of them, which is shown itself alone
}

// viewOf is what the model is shown that goes on with the turn own.
func viewOf(records []journal.Record, own string) view {
	s, _ := NewestSummary(records)
	v := view{summary: s, left: leftBehind(records, s)}
	if v.left[own] {
		v.alone, v.summary = own, summaryWithin(records, own)
	}
	return v
}

// shows tells whether a record is shown behind the summary.
func (v view) shows(r journal.Record) bool {
	if v.alone != "" {
		return r.Turn == v.alone && r.N > v.summary.Covers
	}
	return r.N > v.summary.Covers && !v.left[r.Turn]
}

// keeps tells whether a record is shown though the summary covers it.
func (v view) keeps(r journal.Record) bool {
	return r.N <= v.summary.Covers && !v.summary.Hides(r.N) && (v.alone == "" || r.Turn == v.alone)
}

// leftBehind are the turns that began before what a summary covers and end after it, but
// for the one of which it covers a part.
func leftBehind(records []journal.Record, s sessions.Summary) map[string]bool {
	if s.Covers == 0 {
		return nil
	}
	began := map[string]bool{}
	left := map[string]bool{}
	for _, rec := range records {
		if rec.Turn == s.Turn {
			continue
		}
		switch rec.Data.(type) {
		case sessions.TurnStarted:
			began[rec.Turn] = true
			left[rec.Turn] = rec.N <= s.Covers
		case sessions.TurnDone:
			if rec.N > s.Covers && !began[rec.Turn] { // its beginning is not held any more
				left[rec.Turn] = true
			}
		}
	}
	return left
}

// summaryWithin is the newest summary that covers a part of a turn.
func summaryWithin(records []journal.Record, turn string) sessions.Summary {
	for i := len(records) - 1; i >= 0; i-- {
		if s, ok := records[i].Data.(sessions.Summary); ok && s.Turn == turn {
			return s
		}
	}
	return sessions.Summary{}
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
	numbers  map[string]int64     // of their entries
	waiting  map[string]bool      // calls about which somebody is asked
	came     bool                 // a result, since the last answer

	pictures map[string][]sessions.Picture // by the call that shows them
	files    *fileLists
	shown    map[string]bool // turns whose pictures are shown
	cleared  int64           // up to this entry results are emptied
	turn     string          // of the last answer
}

// newRendering looks up the results, and which calls wait for one: what is said
// while a turn waits comes before its results in the log, and after them here.
func newRendering(records []journal.Record) *rendering {
	r := &rendering{files: newFileLists(records), results: map[string]llm.Block{}, numbers: map[string]int64{}, waiting: map[string]bool{}, pictures: map[string][]sessions.Picture{}}
	for _, rec := range records {
		switch d := rec.Data.(type) {
		case sessions.ToolResult:
			r.results[rec.Call] = llm.Block{Kind: llm.BlockToolResult, Call: rec.Call, Content: d.Content, Failed: d.Code != ""}
			r.numbers[rec.Call] = rec.N
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

// addSummary adds the summary, which replaces the past, wherever the log has it.
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
			if r.numbers[c.Call] <= r.cleared && clearable(b.Content) {
				b.Content = json.RawMessage(clearedResult)
			}
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
