// Package transcript turns a session's log into the messages that a model is shown.
//
// transcript.go makes messages from the log's entries; rendered.go caches those parts that depend on one entry
// alone; size.go estimates how large they are, and cut.go decides which of them to drop if they are too large;
// pictures.go decides which pictures are shown and which are only named; frames.go marks in the text who said
// what, so that nobody can speak for somebody else; memory.go places what the agent remembers; lately.go shows
// what was done before a summary; textonly.go retells messages without calls, and summary.go has a model
// summarize these; untrusted.go finds out whether strangers may have written some of the messages. The same log
// always gives the same bytes, so that providers can reuse what they have cached.
package transcript

import (
	"encoding/json"
	"slices"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
	"parley/tools"
)

// clearedResult replaces an old result that is emptied to save room.
const clearedResult = `"[an old result, cleared to save room; call the tool again if it matters]"`

// waitingResult is the result of a call that is still waiting for a person's decision.
const waitingResult = `"[waiting: somebody is asked about this call and has not answered yet]"`

// Render makes the messages for the model from the log and the memory. own is the current turn, or "" if there
// is none. The same log and memory give the same bytes, so that providers can reuse what they have cached.
// Every call is followed by a result, even if the log has none.
//
// Entries that the newest summary covers are left out, except those that it keeps, which come first. A turn
// that was parked when /new began a new conversation continues in the old one: it sees only its own entries,
// and the new conversation sees none of them.
func Render(records []journal.Record, own string, memory []Memory) []llm.Message {
	r := newRendering(records)
	r.messages = make([]llm.Message, 0, len(records)/2+1) // in a short turn, two of four records become messages
	r.shown = turnsWithPictures(records, own)
	v := viewOf(records, own)
	r.cleared = v.summary.Cleared
	placed := placeMemory(records, v, own, memory)
	r.addMemory(placed.atStart)
	r.addKeptEpisodes(records, v)
	for i := range records {
		if rec := &records[i]; v.keeps(rec) {
			r.addKept(rec)
		}
	}
	r.addSummary(v.summary)
	for i := range records {
		if rec := &records[i]; v.shows(rec) {
			r.addMemory(placed.before[rec.N])
			r.addEntry(rec)
		}
	}
	r.addResults()
	limitPictures(r.messages)
	return r.messages
}

// Recreate returns a function that recreates the messages that Render and TruncateResults made from these
// arguments. It returns nil if the messages show pictures, whose files may change in the meantime.
func Recreate(messages []llm.Message, records []journal.Record, own string, memory []Memory, room int) func() []llm.Message {
	for _, m := range messages {
		if slices.ContainsFunc(m.Blocks, func(b llm.Block) bool { return b.Kind == llm.BlockPicture }) {
			return nil
		}
	}
	return func() []llm.Message {
		again := Render(records, own, memory)
		TruncateResults(again, room)
		return again
	}
}

// A view is the part of a log that a model is shown.
type view struct {
	summary    sessions.Summary
	leftBehind map[string]bool // turns of a conversation that /new has ended
	onlyTurn   string          // the current turn if it is one of leftBehind: only its entries are shown; otherwise ""
}

// viewOf returns the part of the log that is shown to a model that continues the turn own; "" means no turn.
func viewOf(records []journal.Record, own string) view {
	s, _ := NewestSummary(records)
	v := view{summary: s, leftBehind: turnsLeftBehind(records, s)}
	if v.leftBehind[own] {
		v.onlyTurn, v.summary = own, summaryWithin(records, own)
	}
	return v
}

// shows reports whether the view contains a record unchanged, after the summary.
func (v view) shows(r *journal.Record) bool {
	if v.onlyTurn != "" {
		return r.Turn == v.onlyTurn && r.N > v.summary.Covers
	}
	return r.N > v.summary.Covers && !v.leftBehind[r.Turn]
}

// keeps reports whether a record is shown even though the summary covers it.
func (v view) keeps(r *journal.Record) bool {
	return r.N <= v.summary.Covers && !v.summary.Hides(r.N) && (v.onlyTurn == "" || r.Turn == v.onlyTurn)
}

// turnsLeftBehind returns the turns that began before the end of the part that a summary covers. If such a turn
// continues after that, it belongs to a conversation that /new has ended. A turn of which a summary covers only
// the beginning isn't returned: it belongs to the current conversation.
func turnsLeftBehind(records []journal.Record, s sessions.Summary) map[string]bool {
	if s.Covers == 0 {
		return nil
	}
	began := map[string]bool{}
	left := map[string]bool{}
	for i := range records {
		rec := &records[i]
		if rec.Turn == s.Turn {
			continue
		}
		switch rec.Data.(type) {
		case sessions.TurnStarted, journal.FinishedTurn:
			began[rec.Turn] = true
			left[rec.Turn] = rec.N <= s.Covers
		case sessions.TurnDone:
			if rec.N > s.Covers && !began[rec.Turn] { // the record of its beginning is no longer in memory
				left[rec.Turn] = true
			}
		}
	}
	return left
}

// summaryWithin returns the newest summary that covers a part of a turn; the zero Summary if there is none.
func summaryWithin(records []journal.Record, turn string) sessions.Summary {
	for i := len(records) - 1; i >= 0; i-- {
		if s, ok := records[i].Data.(sessions.Summary); ok && s.Turn == turn {
			return s
		}
	}
	return sessions.Summary{}
}

// NewestSummary returns the newest summary that replaces the conversation's past for the
// model; false if there is none.
func NewestSummary(records []journal.Record) (sessions.Summary, bool) {
	for i := len(records) - 1; i >= 0; i-- {
		if s, ok := records[i].Data.(sessions.Summary); ok {
			return s, true
		}
	}
	return sessions.Summary{}, false
}

// A rendering is the state of Render while it makes a list of messages.
type rendering struct {
	messages   []llm.Message
	calls      []llm.Block          // the calls of the last answer, in the order in which the model made them
	results    map[string]llm.Block // results of all calls, by call id
	numbers    map[string]int64     // the entry numbers of these results, by call id
	waiting    map[string]bool      // calls that wait for people
	hasResults bool                 // a result was added since the last answer

	pictures map[string][]sessions.Picture // by the call that shows them
	files    *fileLists
	shown    map[string]bool // turns whose pictures are shown
	cleared  int64           // results up to this entry are emptied
	turn     string          // the turn of the last answer
}

// newRendering collects the results, and the calls that wait for one. It does so in advance, because what
// people say while a turn waits comes before the results in the log, but after them in the messages.
func newRendering(records []journal.Record) *rendering {
	r := &rendering{files: newFileLists(records), results: map[string]llm.Block{}, numbers: map[string]int64{}, waiting: map[string]bool{}, pictures: map[string][]sessions.Picture{}}
	for i := range records {
		rec := &records[i]
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

// addEntry adds what the model sees of one record: a message, or a part of one.
func (r *rendering) addEntry(rec *journal.Record) {
	switch d := rec.Data.(type) {
	case sessions.User:
		r.addResults()
		files := r.files.filesOf(rec.Cause)
		if len(files) == 0 {
			r.addList(llm.RoleUser, renderedBlocks(rec))
			return
		}
		r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameMessage(rec.Person, d, files)})
		r.addAttached(files, rec.Turn)
	case sessions.Attached:
		if files := r.files.orphans(d.Message); len(files) > 0 { // the message answered an ask: its text is in a result
			r.addResults()
			r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameMessage(rec.Person, sessions.User{}, files)})
			r.addAttached(files, rec.Turn)
		}
	case sessions.Notice:
		if len(d.Memory) > 0 || d.Code == sessions.NoticeEpisode { // see placeMemory and addKeptEpisodes
			return
		}
		r.addResults()
		r.addList(llm.RoleUser, renderedBlocks(rec))
	case sessions.Thinking:
		r.addAnswerBlock(llm.Block{Kind: llm.BlockThinking, Text: d.Text, Provider: d.Provider})
	case sessions.Text:
		if r.hasResults {
			r.addResults()
		}
		r.addList(llm.RoleAssistant, renderedBlocks(rec))
	case sessions.ToolUse:
		b := llm.Block{Kind: llm.BlockToolUse, Call: rec.Call, Name: d.Name, Args: d.Args, ProviderID: d.ProviderID, Provider: d.Provider}
		r.addAnswerBlock(b)
		r.calls, r.turn = append(r.calls, b), rec.Turn
	case sessions.ToolResult:
		r.hasResults = true
	}
}

// addKept adds an entry that a summary covers but keeps. An answer to a question is shown by itself there,
// because its call is covered.
func (r *rendering) addKept(rec *journal.Record) {
	if d, ok := rec.Data.(sessions.AskEnded); ok {
		if isAnswer(d) {
			r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameAnswer(rec.Person, d)})
		}
		return
	}
	r.addEntry(rec)
}

// addSummary adds the summary of the past before everything that follows, even though it comes later in the
// log.
func (r *rendering) addSummary(s sessions.Summary) {
	if s.Text == "" {
		return
	}
	r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: FrameSummary(s.Text)})
}

// add adds a block to the end of the last message if that has the same role; otherwise it adds a new message.
func (r *rendering) add(role llm.Role, b llm.Block) { r.addList(role, []llm.Block{b}) }

// addList does what add does for a list of blocks, which the message may use as its own list. The list must
// have no spare capacity.
func (r *rendering) addList(role llm.Role, blocks []llm.Block) {
	if n := len(r.messages); n > 0 && r.messages[n-1].Role == role {
		r.messages[n-1].Blocks = append(r.messages[n-1].Blocks, blocks...)
		return
	}
	r.messages = append(r.messages, llm.Message{Role: role, Blocks: blocks})
}

// addAnswerBlock adds a block that the model wrote. If results came before it, it begins a new answer.
func (r *rendering) addAnswerBlock(b llm.Block) {
	if r.hasResults {
		r.addResults()
	}
	r.add(llm.RoleAssistant, b)
}

// addResults adds the results of the last answer's calls, in the order of the calls, and the pictures that they
// show.
func (r *rendering) addResults() {
	for _, c := range r.calls {
		b, ok := r.results[c.Call]
		switch {
		case ok:
			if r.numbers[c.Call] <= r.cleared && isClearable(b.Content) {
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
	r.calls, r.hasResults = nil, false
}
