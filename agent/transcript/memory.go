package transcript

import (
	"hash/crc32"
	"strings"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

// A Memory is something that the agent remembers, as it was when the work on the turn began.
//
// What is remembered stands in the conversation, and not in the prompt before it, so that a change costs only
// what follows it: where a turn begins that reads something new for the first time, a notice in the log marks
// how much of it the model has been shown up to there, and the next turns show that at the same place. What is
// added stands at the next mark. If anything before a mark is no longer as it was, because it was changed or
// forgotten, the mark counts no more, and the words stand at a newer one.
//
// A turn that has begun to answer is told of no additions, just as if nobody had resumed it: a message that
// comes after its calls could pass for a new request.
type Memory struct {
	Scope string // identifies the memory in marks
	Of    string // what it is a memory of, for the model
	File  string // the file in the workspace in which it is; "" if it is in none
	Text  string
}

// textMemory is what a release reads of a mark that does not know marks: it has the memory in its prompt.
const textMemory = "What you remember has changed. What stands above of it is up to date."

// MarkMemory returns the notice that marks what the model is to be shown of its memory from the turn own on;
// false if all of it stands at earlier marks, or if the turn has begun to answer.
func MarkMemory(records []journal.Record, own string, memory []Memory) (sessions.Notice, bool) {
	n := sessions.Notice{Code: sessions.NoticeMemory, Text: textMemory}
	if hasAnswered(records, own) {
		return n, false
	}
	p := placeMemory(records, viewOf(records, own), own, memory)
	for i, m := range memory {
		if len(m.Text) > p.shown[i] {
			n.Memory = append(n.Memory, sessions.MemoryMark{Scope: m.Scope, Bytes: len(m.Text), Sum: crc32.ChecksumIEEE([]byte(m.Text))})
		}
	}
	return n, len(n.Memory) > 0
}

// EstimateMemory returns roughly how many tokens of a request's messages are memory.
func EstimateMemory(memory []Memory) int {
	n := 0
	for _, m := range memory {
		if m.Text != "" {
			n += len(m.Text) + frameBytes
		}
	}
	return n / BytesPerToken
}

// A memoryPlacement says what of the memory stands where.
type memoryPlacement struct {
	before map[int64]string // by the entry before which it stands
	first  string           // stands before everything else
	shown  []int            // how many bytes of each memory stand at marks
	holds  []bool           // whether each memory begins with all that it was at its newest mark
}

// placeMemory finds the places of the memory in a view of the log, for the turn own. What stands at no mark
// comes first, or where the turn begins if it has begun to answer, when additions are left to the next turn.
func placeMemory(records []journal.Record, v view, own string, memory []Memory) memoryPlacement {
	p := memoryPlacement{shown: make([]int, len(memory)), holds: make([]bool, len(memory))}
	if len(memory) == 0 {
		return p
	}
	places := placesOfMarks(records, v)
	for i := range records {
		r := &records[i]
		n, ok := r.Data.(sessions.Notice)
		if !ok || len(n.Memory) == 0 {
			continue
		}
		switch at := places[r.N]; {
		case v.keeps(r):
			p.first += p.framesAt(n, memory)
		case at > 0:
			p.putBefore(at, p.framesAt(n, memory))
		}
	}
	answered := hasAnswered(records, own)
	for i, m := range memory {
		if answered && p.holds[i] {
			continue
		}
		rest, at := frameMemory(m, p.shown[i], len(m.Text)), int64(0)
		if answered && rest != "" {
			at = beginningOf(records, v, own)
		}
		if at > 0 {
			p.putBefore(at, rest)
		} else {
			p.first += rest
		}
	}
	return p
}

// putBefore puts frames before an entry, after those that are there.
func (p *memoryPlacement) putBefore(at int64, framed string) {
	if p.before == nil {
		p.before = map[int64]string{}
	}
	p.before[at] += framed
}

// hasAnswered reports whether the log has a part of the model's answer in a turn.
func hasAnswered(records []journal.Record, turn string) bool {
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		switch r.Data.(type) {
		case sessions.Thinking, sessions.Text, sessions.ToolUse:
			if r.Turn == turn {
				return true
			}
		case sessions.TurnStarted, journal.Over:
			if r.Turn == turn {
				return false
			}
		}
	}
	return false
}

// beginningOf returns the entry with which a turn begins; 0 if the view does not show it.
func beginningOf(records []journal.Record, v view, turn string) int64 {
	for i := range records {
		r := &records[i]
		switch r.Data.(type) {
		case sessions.TurnStarted, journal.Over:
			if r.Turn == turn && v.shows(r) {
				return r.N
			}
		}
	}
	return 0
}

// placesOfMarks returns the entries before which the marks that a view shows stand, by the marks' numbers: each
// where its turn begins, because what is remembered precedes what people say.
func placesOfMarks(records []journal.Record, v view) map[int64]int64 {
	var places map[int64]int64
	marks := map[string][]int64{} // by turn
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		switch d := r.Data.(type) {
		case sessions.Notice:
			if len(d.Memory) > 0 && v.shows(r) {
				if places == nil {
					places = map[int64]int64{}
				}
				places[r.N] = r.N
				marks[r.Turn] = append(marks[r.Turn], r.N)
			}
		case sessions.TurnStarted, journal.Over:
			if v.shows(r) {
				for _, n := range marks[r.Turn] {
					places[n] = r.N
				}
			}
		}
	}
	return places
}

// framesAt returns what stands at a mark, in its frames, and notes that it is shown.
func (p *memoryPlacement) framesAt(n sessions.Notice, memory []Memory) string {
	var b strings.Builder
	for _, mark := range n.Memory {
		for i, m := range memory {
			if m.Scope != mark.Scope {
				continue
			}
			if p.holds[i] = m.begins(mark); p.holds[i] && mark.Bytes > p.shown[i] {
				b.WriteString(frameMemory(m, p.shown[i], mark.Bytes))
				p.shown[i] = mark.Bytes
			}
		}
	}
	return b.String()
}

// begins reports whether the memory begins with what a mark was made of, and no line has become longer since.
func (m Memory) begins(mark sessions.MemoryMark) bool {
	if mark.Bytes > len(m.Text) || mark.Bytes < len(m.Text) && m.Text[mark.Bytes] != '\n' {
		return false
	}
	return crc32.ChecksumIEEE([]byte(m.Text[:mark.Bytes])) == mark.Sum
}

// frameMemory returns a part of a memory in its frame, and an empty line after it.
func frameMemory(m Memory, from, to int) string {
	text := strings.TrimSpace(m.Text[from:to])
	if text == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("<" + frames.Remembered)
	frames.WriteAttribute(&b, "of", m.Of)
	frames.WriteAttribute(&b, "file", m.File)
	if from > 0 {
		frames.WriteAttribute(&b, "added", "later")
	}
	b.WriteString(">\n" + frames.Escape(text) + "\n</" + frames.Remembered + ">\n\n")
	return b.String()
}

// addMemory adds what is remembered, in its frames.
func (r *rendering) addMemory(framed string) {
	if framed == "" {
		return
	}
	r.addResults()
	r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: strings.TrimSpace(framed)})
}

// newestMarks returns the numbers of the covered entries that mark the memory last, for each scope. With
// them alone all that was shown before stands at their place.
func newestMarks(records []journal.Record, v view, covers int64) map[int64]bool {
	newest := map[string]int64{}
	for _, r := range records {
		if n, ok := r.Data.(sessions.Notice); ok && r.N <= covers && (v.shows(&r) || v.keeps(&r)) {
			for _, mark := range n.Memory {
				newest[mark.Scope] = r.N
			}
		}
	}
	kept := map[int64]bool{}
	for _, n := range newest {
		kept[n] = true
	}
	return kept
}
