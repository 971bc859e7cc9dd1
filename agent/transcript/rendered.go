package transcript

import (
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

// What the model is shown of a message without files, of a text or of a notice depends only on its record. It
// is made once and cached with the record, because each request shows all of it again. What depends on anything
// else is made each time: results, which may be emptied or still be missing, messages with files, pictures, and
// the memory.

// A renderedRecord is what the model is shown of one record, whatever else the log contains. Messages share its
// list of one block. Nobody changes that list, and appending to it makes a copy.
type renderedRecord struct{ block [1]llm.Block }

// renderedBlocks returns what the model is shown of the record of a message without files, a text or a notice.
func renderedBlocks(rec *journal.Record) []llm.Block {
	if s, ok := rec.Cached().(*renderedRecord); ok {
		return s.block[:]
	}
	s := &renderedRecord{block: [1]llm.Block{{Kind: llm.BlockText}}}
	b := &s.block[0]
	switch d := rec.Data.(type) {
	case sessions.User:
		b.Text = frameMessage(rec.Person, d, nil)
	case sessions.Notice:
		b.Text = frameNotice(d)
	case sessions.Text:
		b.Text, b.Provider = d.Text, d.Provider
	}
	rec.Cache(s)
	return s.block[:]
}
