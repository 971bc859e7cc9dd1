package transcript

import (
	"math"
	"slices"

	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
	"parley/tools/plainjson"
)

// Budgets says how many tokens of the log stay unchanged when a summary replaces the rest.
type Budgets struct {
	Steps int // for the newest steps, after the part that the summary covers
	// Unread is the budget for the newest step alone. No model has read that step's results yet, so the step
	// stays even if it is longer than Steps.
	Unread       int
	OwnWords     int // for what people said in the current turn
	EarlierWords int // for what people said before the current turn
	Episodes     int // for the episodes of the turns that the summary covers
}

// Cut decides what a summary must cover so that the newest steps stay within their budget, and which of the
// covered entries are kept. It never separates a call from its result. own is the current turn, and withinTurn
// says whether its beginning may be covered too. Cut returns false if there is nothing to summarize.
func Cut(records []journal.Record, own string, withinTurn bool, b Budgets) (sessions.Summary, bool) {
	v := viewOf(records, own)
	if v.onlyTurn != "" { // the newest summary belongs to another conversation
		return sessions.Summary{}, false
	}
	var shown []journal.Record
	for i := range records {
		if r := &records[i]; v.shows(r) {
			shown = append(shown, *r)
		}
	}
	covers, newest := int64(0), newestStep(shown, own)
	for _, n := range boundaries(shown, own, withinTurn) {
		covers = n
		size := sizeAfter(shown, n, v.summary.Cleared)
		if size <= b.Steps || n == newest && size <= b.Unread {
			break
		}
	}
	if !coversAny(shown, covers) {
		return sessions.Summary{}, false
	}
	s := sessions.Summary{Covers: covers, Cleared: max(v.summary.Cleared, covers)}
	for _, r := range records {
		if r.Kind == sessions.KindTurnStarted && r.Turn == own && r.N <= covers {
			s.Turn = own
		}
	}
	s.Keep = keptEntries(records, v, covers, own, b)
	return s, true
}

// coversAny reports whether a summary of the records up to the entry covers would replace any of them.
func coversAny(shown []journal.Record, covers int64) bool {
	return slices.ContainsFunc(shown, func(r journal.Record) bool {
		switch r.Kind {
		case sessions.KindText, sessions.KindThinking, sessions.KindToolUse, sessions.KindToolResult, sessions.KindNotice, sessions.KindUser:
			return r.N <= covers
		}
		return false
	})
}

// boundaries returns the numbers of the entries up to which a summary may cover, in ascending order: before
// each turn, and, if withinTurn is true, in the turn own before each answer and after its last result.
func boundaries(shown []journal.Record, own string, withinTurn bool) []int64 {
	var at []int64
	answered, last := true, int64(0)
	for _, r := range shown {
		switch r.Data.(type) {
		case sessions.TurnStarted, journal.FinishedTurn:
			at = append(at, r.N-1)
		case sessions.Thinking, sessions.Text, sessions.ToolUse:
			if r.Turn != own {
				continue
			}
			if answered && withinTurn {
				at = append(at, r.N-1)
			}
			answered = false
		case sessions.Usage:
			answered = answered || r.Turn == own
		case sessions.ToolResult:
			if r.Turn == own && withinTurn {
				last = r.N
			}
		}
	}
	if len(shown) > 0 && !slices.ContainsFunc(shown, func(r journal.Record) bool { return r.Turn == own }) { // there is no current turn
		last = shown[len(shown)-1].N
	}
	if last > 0 && (len(at) == 0 || last > at[len(at)-1]) {
		at = append(at, last)
	}
	return at
}

// newestStep returns the number of the entry before the newest step of the turn own, which is an answer and the
// results of its calls; the largest number if the turn has no step.
func newestStep(shown []journal.Record, own string) int64 {
	at, began := int64(math.MaxInt64), false
	for _, r := range shown {
		if r.Turn != own {
			continue
		}
		switch r.Data.(type) {
		case sessions.Thinking, sessions.Text, sessions.ToolUse:
			if !began {
				at, began = r.N-1, true
			}
		case sessions.Usage:
			began = false
		}
	}
	return at
}

// sizeAfter estimates how many tokens the model reads from the records after entry n.
func sizeAfter(shown []journal.Record, n, cleared int64) int {
	bytes := 0
	for _, r := range shown {
		if r.N <= n {
			continue
		}
		bytes += sizeOf(r, cleared)
	}
	return bytes / BytesPerToken
}

// sizeOf estimates how many bytes the model reads from a record. It counts a clearable result in an entry up to
// number cleared as the placeholder that replaces it.
func sizeOf(r journal.Record, cleared int64) int {
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		if r.N <= cleared && isClearable(d.Content) {
			return len(clearedResult)
		}
		return len(d.Content)
	case sessions.Picture:
		return pictureTokens * BytesPerToken
	case sessions.Notice:
		if d.Code != sessions.NoticeEpisode {
			return r.Size + entryFrameBytes
		}
	case sessions.User, sessions.Thinking, sessions.Text, sessions.ToolUse, sessions.Fetched:
		return r.Size + entryFrameBytes
	}
	return 0
}

// entryFrameBytes is the estimated size, in bytes, of what surrounds an entry's text in a request, such as its frame.
const entryFrameBytes = 64

// keptEntries returns the numbers of the entries that stay beside a summary: people's messages, newest first
// until the budgets are used up; the files that came with these; for each scope of the memory, the newest entry
// that marks it; and the episodes of the last days. The first message of the current turn comes before all
// others, because it says what the turn is about.
func keptEntries(records []journal.Record, v view, covers int64, own string, b Budgets) []int64 {
	var inOwn, before []journal.Record // people's words, newest first
	for _, r := range slices.Backward(records) {
		switch {
		case r.N > covers || !isSaid(r) || !v.shows(&r) && !v.keeps(&r):
		case own != "" && r.Turn == own:
			inOwn = append(inOwn, r)
		default:
			before = append(before, r)
		}
	}
	said, kept := map[string]bool{}, newestMarks(records, v, covers)
	for _, n := range KeepEpisodes(records, covers, records[len(records)-1].At(), b.Episodes) {
		kept[n] = true
	}
	keep := func(r journal.Record, budget *int) bool {
		size := (r.Size + entryFrameBytes) / BytesPerToken
		if size > *budget {
			return false
		}
		*budget -= size
		if r.Kind == sessions.KindUser {
			said[r.Cause] = true
		} else {
			kept[r.N] = true
		}
		return true
	}
	if n := len(inOwn) - 1; n >= 0 {
		keep(inOwn[n], &b.OwnWords)
		inOwn = inOwn[:n]
	}
	for _, r := range inOwn {
		keep(r, &b.OwnWords)
	}
	for _, r := range before {
		if !keep(r, &b.EarlierWords) {
			break // no gaps between the kept messages
		}
	}
	return numbersOf(records, covers, said, kept)
}

// isSaid reports whether an entry contains a person's words: a message, or an answer to the agent's question.
func isSaid(r journal.Record) bool {
	d, ok := r.Data.(sessions.AskEnded)
	return r.Kind == sessions.KindUser || ok && isAnswer(d)
}

// isAnswer reports whether an ask ended with an answer to a question. An approval doesn't count.
func isAnswer(d sessions.AskEnded) bool { return d.Question != "" && d.Answer != "" }

// numbersOf returns the numbers of the covered entries that are kept: the messages with the ids in said, the
// files that came with them, and the entries in kept.
func numbersOf(records []journal.Record, covers int64, said map[string]bool, kept map[int64]bool) []int64 {
	var numbers []int64
	for _, r := range records {
		of := ""
		switch d := r.Data.(type) {
		case sessions.User:
			of = r.Cause
		case sessions.Attached:
			of = d.Message
		case sessions.Fetched:
			of = d.Message
		}
		if (of != "" && said[of] || kept[r.N]) && r.N <= covers {
			numbers = append(numbers, r.N)
		}
	}
	return numbers
}

// FindClearable returns the number of the entry up to which tool results may be emptied so that the newest ones stay
// within a budget of tokens, and roughly how many tokens that saves. The results of the newest step always
// stay, because the model has not read them yet.
func FindClearable(records []journal.Record, own string, budget int) (upTo int64, saves int) {
	v := viewOf(records, own)
	if v.onlyTurn != "" {
		return 0, 0
	}
	kept, bytes, unread := 0, 0, newestStep(records, own)
	for _, r := range slices.Backward(records) {
		d, ok := r.Data.(sessions.ToolResult)
		if !ok || !v.shows(&r) {
			continue
		}
		if kept += sizeOf(r, v.summary.Cleared); kept <= budget*BytesPerToken || r.N > unread {
			continue
		}
		upTo = max(upTo, r.N)
		if r.N > v.summary.Cleared && isClearable(d.Content) {
			bytes += len(d.Content) - len(clearedResult)
		}
	}
	return upTo, bytes / BytesPerToken
}

// WithSummary returns the records as they would be with a summary appended, so that the caller can see what a
// request would save. It doesn't change the records themselves.
func WithSummary(records []journal.Record, s sessions.Summary) []journal.Record {
	n := int64(1)
	if len(records) > 0 {
		n = records[len(records)-1].N + 1
	}
	raw, err := plainjson.Marshal(s)
	if err != nil { // texts and numbers always marshal
		panic(err)
	}
	return append(slices.Clip(records), journal.NewRecord(sessions.Entry{N: n, Kind: sessions.KindSummary, Data: raw}, s))
}

// WithoutPast renders the log without its past: only what people say in the turn own, and its newest step. If
// these have more than limit tokens, TruncateResults shortens them.
func WithoutPast(records []journal.Record, own string, memory []Memory, limit int) []llm.Message {
	if s, ok := Cut(records, own, true, Budgets{Unread: math.MaxInt, OwnWords: math.MaxInt}); ok {
		records = WithSummary(records, s)
	}
	messages := Render(records, own, memory)
	TruncateResults(messages, limit)
	return messages
}
