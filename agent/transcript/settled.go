package transcript

import (
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/sessions"
)

// What the model is shown of a message without files, of a text or of a notice depends on nothing but its
// record. It is made once, and kept with the record: each request shows all of them again. What depends on more
// is made each time: results, which may be emptied or are still to come, messages with files, pictures, and
// what is remembered.

// A settled is what the model is shown of one record, whatever else is in the log. Messages share its list of one
// block: nobody changes that, and who appends to it gets another.
type settled struct{ block [1]llm.Block }

// settledOf returns what the model is shown of a record of a message without files, a text or a notice.
func settledOf(rec *journal.Record) []llm.Block {
	if s, ok := rec.Made().(*settled); ok {
		return s.block[:]
	}
	s := &settled{block: [1]llm.Block{{Kind: llm.BlockText}}}
	b := &s.block[0]
	switch d := rec.Data.(type) {
	case sessions.User:
		b.Text = frameMessage(rec.Person, d, nil)
	case sessions.Notice:
		b.Text = frameNotice(d)
	case sessions.Text:
		b.Text, b.Provider = d.Text, d.Provider
	}
	rec.Keep(s)
	return s.block[:]
}
