package transcript

import (
	"hash/crc32"
	"strings"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

// A Memory is one part of what the agent remembers, as it was when the work on the turn began.
//
// The memory is in the conversation, and not in the prompt before it, so that a change of it invalidates only
// the part of a provider's cache that follows. When a turn begins and reads something new in the memory, a
// notice in the log (a mark) records how much of the memory the model has been shown up to there, and later
// turns show that part in the same place. Anything added later is shown at the next mark. If the part before a
// mark has been changed or forgotten, the mark no longer counts, and the text is shown at a newer one.
//
// A turn that has begun to answer is not shown any additions, just as if nobody had resumed it: a message that
// comes after its calls could be mistaken for a new request.
type Memory struct {
	Scope string // identifies the memory in marks
	Whose string // for the model: whose memory it is, or about what
	File  string // the file in the workspace that contains it; "" if there is none
	Text  string
}

// textMemory is the text that an older release, which doesn't know marks, reads in a mark: it has the memory in
// its prompt.
const textMemory = "What you remember has changed. What stands above of it is up to date."

// MarkMemory returns the notice by which a turn, and all later ones, show the model the memory as it is now. It returns false if
// earlier marks already show all of it, or if the turn has begun to answer: then the next turn gets the mark.
func MarkMemory(records []journal.Record, turn string, memory []Memory) (sessions.Notice, bool) {
	n := sessions.Notice{Code: sessions.NoticeMemory, Text: textMemory}
	if hasAnswered(records, turn) {
		return n, false
	}
	p := placeMemory(records, viewOf(records, turn), turn, memory)
	for i, m := range memory {
		if len(m.Text) > p.shownBytes[i] {
			n.Memory = append(n.Memory, sessions.MemoryMark{Scope: m.Scope, Bytes: len(m.Text), Sum: crc32.ChecksumIEEE([]byte(m.Text))})
		}
	}
	return n, len(n.Memory) > 0
}

// EstimateMemory returns roughly how many tokens of a request's messages the memory takes.
func EstimateMemory(memory []Memory) int {
	n := 0
	for _, m := range memory {
		if m.Text != "" {
			n += len(m.Text) + entryFrameBytes
		}
	}
	return n / BytesPerToken
}

// A memoryPlacement says where each piece of the memory is shown.
type memoryPlacement struct {
	before      map[int64]string // by the entry before which it is shown
	atStart     string           // shown before everything else
	shownBytes  []int            // how many bytes of each memory are shown at marks
	prefixHolds []bool           // whether each memory still begins with the part that its newest mark covers
}

// placeMemory determines where the memory is shown in a view of the log, for a turn. The part that no
// mark covers comes first. If the turn has begun to answer, that part is left to the next turn if it was only
// added; otherwise it is shown where the turn begins.
func placeMemory(records []journal.Record, v view, turn string, memory []Memory) memoryPlacement {
	p := memoryPlacement{shownBytes: make([]int, len(memory)), prefixHolds: make([]bool, len(memory))}
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
			p.atStart += p.framesAt(n, memory)
		case at > 0:
			p.putBefore(at, p.framesAt(n, memory))
		}
	}
	answered := hasAnswered(records, turn)
	for i, m := range memory {
		if answered && p.prefixHolds[i] {
			continue
		}
		rest, at := frameMemory(m, p.shownBytes[i], len(m.Text)), int64(0)
		if answered && rest != "" {
			at = beginningOf(records, v, turn)
		}
		if at > 0 {
			p.putBefore(at, rest)
		} else {
			p.atStart += rest
		}
	}
	return p
}

// putBefore puts frames before an entry, after those already there.
func (p *memoryPlacement) putBefore(at int64, framed string) {
	if p.before == nil {
		p.before = map[int64]string{}
	}
	p.before[at] += framed
}

// hasAnswered reports whether the log contains a part of the model's answer in a turn.
func hasAnswered(records []journal.Record, turn string) bool {
	for i := len(records) - 1; i >= 0; i-- {
		r := &records[i]
		switch r.Data.(type) {
		case sessions.Thinking, sessions.Text, sessions.ToolUse:
			if r.Turn == turn {
				return true
			}
		case sessions.TurnStarted, journal.FinishedTurn:
			if r.Turn == turn {
				return false
			}
		}
	}
	return false
}

// beginningOf returns the number of a turn's first entry; 0 if the view doesn't show it.
func beginningOf(records []journal.Record, v view, turn string) int64 {
	for i := range records {
		r := &records[i]
		switch r.Data.(type) {
		case sessions.TurnStarted, journal.FinishedTurn:
			if r.Turn == turn && v.shows(r) {
				return r.N
			}
		}
	}
	return 0
}

// placesOfMarks returns, by the numbers of the marks that a view shows, the entries before which their text is
// shown. Each is the beginning of the mark's turn, because the memory comes before what people say.
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
		case sessions.TurnStarted, journal.FinishedTurn:
			if v.shows(r) {
				for _, n := range marks[r.Turn] {
					places[n] = r.N
				}
			}
		}
	}
	return places
}

// framesAt returns the text that is shown at a mark, in frames, and records that it is shown.
func (p *memoryPlacement) framesAt(n sessions.Notice, memory []Memory) string {
	var b strings.Builder
	for _, mark := range n.Memory {
		for i, m := range memory {
			if m.Scope != mark.Scope {
				continue
			}
			if p.prefixHolds[i] = m.hasPrefix(mark); p.prefixHolds[i] && mark.Bytes > p.shownBytes[i] {
				b.WriteString(frameMemory(m, p.shownBytes[i], mark.Bytes))
				p.shownBytes[i] = mark.Bytes
			}
		}
	}
	return b.String()
}

// hasPrefix reports whether the memory still starts with the text that a mark covers, with no line of it extended
// since.
func (m Memory) hasPrefix(mark sessions.MemoryMark) bool {
	if mark.Bytes > len(m.Text) || mark.Bytes < len(m.Text) && m.Text[mark.Bytes] != '\n' {
		return false
	}
	return crc32.ChecksumIEEE([]byte(m.Text[:mark.Bytes])) == mark.Sum
}

// frameMemory returns a part of a memory in its frame, followed by an empty line; "" if the part has no text.
func frameMemory(m Memory, from, to int) string {
	text := strings.TrimSpace(m.Text[from:to])
	if text == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("<" + frames.Remembered)
	frames.WriteAttribute(&b, "of", m.Whose)
	frames.WriteAttribute(&b, "file", m.File)
	if from > 0 {
		frames.WriteAttribute(&b, "added", "later")
	}
	b.WriteString(">\n" + frames.Escape(text) + "\n</" + frames.Remembered + ">\n\n")
	return b.String()
}

// addMemory adds text from the memory, which is already in frames.
func (r *rendering) addMemory(framed string) {
	if framed == "" {
		return
	}
	r.addResults()
	r.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: strings.TrimSpace(framed)})
}

// newestMarks returns the number of the newest covered entry that marks the memory, for each scope. These
// entries alone are enough to show everything that was shown before.
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
