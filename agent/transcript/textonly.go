package transcript

import (
	"strings"
	"unicode/utf8"

	"parley/agent/frames"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
	"parley/tools"
)

// Limits on the texts that Retell and split return.
const (
	minPiece   = 2048 // the smallest size of a group, in bytes
	maxPieces  = 16   // groups
	maxArgs    = 500  // bytes of a call's arguments
	maxOutcome = 2000 // bytes of a call's result
	// maxCleared limits a result that was emptied, in bytes. The model read it long ago and has continued
	// without it. In a small window, nearly all results are emptied, and longer ones would split the summary
	// into many pieces.
	maxCleared = 200
)

// A Past is the text from which a summary is made.
type Past struct {
	Summary  string      // the earlier summary, or "" if there is none
	OwnWords []llm.Block // what people said in the current turn
	Events   []llm.Block // everything else that happened, in order
}

// Retell retells the entries up to upTo that the model is shown, each text as a block. People's words in the
// turn own are returned separately, and completely even if an earlier summary covers some of them.
func Retell(records []journal.Record, own string, upTo int64) Past {
	r := newRendering(records)
	v := viewOf(records, own)
	past := Past{Summary: v.summary.Text}
	said := newRendering(records)
	for i := range records {
		rec := &records[i]
		toOwn := isSaid(*rec) && own != "" && rec.Turn == own
		switch d, isMessage := rec.Data.(sessions.User); {
		case rec.N > upTo || !toOwn && !v.shows(rec) && !v.keeps(rec):
		case toOwn && isMessage:
			said.add(llm.RoleUser, llm.Block{Kind: llm.BlockText, Text: frameMessage(rec.Person, d, said.files.filesOf(rec.Cause))})
		case toOwn:
			said.addKept(rec)
		case v.keeps(rec):
			r.addKept(rec)
		default:
			r.addEntry(rec)
		}
	}
	r.addResults()
	cleared := func(call string) bool { return r.numbers[call] <= v.summary.Cleared }
	past.OwnWords, past.Events = textOnly(said.messages, cleared), textOnly(r.messages, cleared)
	return past
}

// textOnly retells messages as texts without calls and results. Many providers refuse these in a request that
// doesn't offer their tools. cleared reports whether a call's result was emptied for the model.
func textOnly(messages []llm.Message, cleared func(call string) bool) []llm.Block {
	var told []llm.Block
	tell := func(text string) { told = append(told, llm.Block{Kind: llm.BlockText, Text: text}) }
	for _, m := range messages {
		for _, b := range m.Blocks {
			switch {
			case b.Kind == llm.BlockText && m.Role == llm.RoleUser:
				tell(b.Text) // already in a frame
			case b.Kind == llm.BlockText:
				tell(framePast("your answer", b.Text))
			case b.Kind == llm.BlockToolUse:
				tell(framePast("your call of "+b.Name, tools.Clip(string(b.Args), maxArgs)))
			case b.Kind == llm.BlockToolResult && cleared(b.Call):
				tell(framePast("what came of it", tools.Clip(string(b.Content), maxCleared)))
			case b.Kind == llm.BlockToolResult:
				tell(framePast("what came of it", tools.Clip(string(b.Content), maxOutcome)))
			}
		}
	}
	return told
}

// framePast returns the frame of something that the model did.
func framePast(what, text string) string {
	var b strings.Builder
	b.WriteString("<" + frames.Past)
	frames.WriteAttribute(&b, "of", what)
	b.WriteString(">\n" + frames.Escape(text) + "\n</" + frames.Past + ">")
	return b.String()
}

// shortenWithin shortens a text to its beginning and its end, each cut between characters. It keeps the end
// because people often say there what they want.
func shortenWithin(text string, most int) string {
	if len(text) <= most {
		return text
	}
	begin := tools.Clip(text, most/2)
	end := len(text) - most/2
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	return begin + text[end:]
}

// split divides blocks into groups of about size bytes. It shortens a longer block to its beginning and its
// end. If there are too many groups, it leaves out the oldest, and adds a note that says so.
func split(blocks []llm.Block, size int) [][]llm.Block {
	var all [][]llm.Block
	room := 0
	for _, b := range blocks {
		b.Text = shortenWithin(b.Text, size)
		if len(all) == 0 || room < len(b.Text) {
			all = append(all, nil)
			room = size
		}
		all[len(all)-1] = append(all[len(all)-1], b)
		room -= len(b.Text)
	}
	if extra := len(all) - maxPieces; extra > 0 {
		all = all[extra:]
		note := framePast("the beginning", "[what was said first is left out: there was no room for it]")
		all[0] = append([]llm.Block{{Kind: llm.BlockText, Text: note}}, all[0]...)
	}
	return all
}

// shortenAll shortens each block to its beginning and its end, so that together they have about size bytes.
func shortenAll(blocks []llm.Block, size int) []llm.Block {
	shorter := make([]llm.Block, len(blocks))
	for i, b := range blocks {
		b.Text = shortenWithin(b.Text, max(size/len(blocks), maxArgs))
		shorter[i] = b
	}
	return shorter
}

// textLength returns the total length of all texts, in bytes.
func textLength(blocks []llm.Block) int {
	n := 0
	for _, b := range blocks {
		n += len(b.Text)
	}
	return n
}
