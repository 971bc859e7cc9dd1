package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// Untrusted reports whether a model that was shown the records before entry n has read
// text from strangers, or a summary of such text. That is a result that is marked
// untrusted, or a quote of somebody else's words. It holds until the past is dropped,
// because the model's own words may repeat what it has read. own is the turn for which
// the model was asked; nothing of that turn is dropped.
func Untrusted(records []journal.Record, own string, n int64) bool {
	var newest sessions.Summary
	for i := len(records) - 1; i >= 0; i-- {
		if s, ok := records[i].Data.(sessions.Summary); ok && records[i].N < n {
			if s.Untrusted && s.Text != "" {
				return true
			}
			newest = s
			break
		}
	}
	for _, r := range records {
		if (!newest.Hides(r.N) || own != "" && r.Turn == own) && r.N < n && isFromOthers(r, records) {
			return true
		}
	}
	return false
}

// isFromOthers reports whether an entry holds text that strangers may have written.
func isFromOthers(r journal.Record, records []journal.Record) bool {
	var quotes []sessions.Quote
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		return d.Untrusted
	case sessions.Fetched:
		return d.Picture != nil || d.Untrusted // a picture is shown; of another file the model sees nothing
	case sessions.User:
		if d.Untrusted {
			return true
		}
		quotes = d.Quotes
	case sessions.Notice:
		quotes = d.Quotes
	}
	return slices.ContainsFunc(quotes, func(q sessions.Quote) bool {
		own := (r.Kind == sessions.KindUser || q.Kind == bus.Edited) && q.Person != "" && q.Person == r.Person
		return !own && !(q.Kind == bus.Answered && wasSaidByModel(records, q.Text))
	})
}

// wasSaidByModel reports whether a text is part of what the model itself has said in this session.
// A message that the bot has posted here is no proof, because the bot also posts what others asked
// it to tell.
func wasSaidByModel(records []journal.Record, text string) bool {
	text = lettersOf(text)
	return text != "" && slices.ContainsFunc(records, func(r journal.Record) bool {
		d, ok := r.Data.(sessions.Text)
		return ok && strings.Contains(lettersOf(d.Text), text)
	})
}

// lettersOf returns the letters and digits of a text, which are the same in each way of
// showing its Markdown.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// Holds reports whether a text stands word for word in what people said or in a tool's
// result, among the records before entry n that a model is shown. Once that model has
// read untrusted text, only the results of tools count for which brings returns true:
// tools that the model cannot make say what it likes. Even such a result does not count
// if the text stood in the arguments of its call. own is as for Untrusted.
func Holds(records []journal.Record, own string, n int64, text string, brings func(tool string) bool) bool {
	if text == "" {
		return false
	}
	newest, _ := NewestSummary(records)
	h := textSearch{text: text, inJSON: strings.Trim(asJSON(text), `"`), uses: map[string]sessions.ToolUse{}}
	for _, r := range records {
		if r.N >= n {
			break
		}
		if newest.Hides(r.N) && (own == "" || r.Turn != own) {
			continue
		}
		if h.entryHolds(r, brings) {
			return true
		}
		h.influenced = h.influenced || isFromOthers(r, records)
	}
	return false
}

// A textSearch is the state of the search of Holds for a text in a log.
type textSearch struct {
	text, inJSON string
	uses         map[string]sessions.ToolUse // by call
	influenced   bool                        // the model has read untrusted text
}

// entryHolds reports whether one entry holds the text, and remembers calls and untrusted
// summaries.
func (h *textSearch) entryHolds(r journal.Record, brings func(tool string) bool) bool {
	switch d := r.Data.(type) {
	case sessions.Summary:
		h.influenced = h.influenced || d.Untrusted
	case sessions.User:
		return !d.Untrusted && (strings.Contains(d.Text, h.text) || h.isQuoted(d.Quotes))
	case sessions.Notice:
		return h.isQuoted(d.Quotes)
	case sessions.ToolUse:
		h.uses[r.Call] = d
	case sessions.ToolResult:
		use := h.uses[r.Call]
		return (!h.influenced || brings(use.Name)) && h.isIn(d.Content) && !h.isIn(use.Args)
	}
	return false
}

// isIn reports whether JSON contains the text.
func (h *textSearch) isIn(content json.RawMessage) bool {
	return bytes.Contains(content, []byte(h.text)) || bytes.Contains(content, []byte(h.inJSON))
}

// isQuoted reports whether one of the quotes contains the text.
func (h *textSearch) isQuoted(quotes []sessions.Quote) bool {
	return slices.ContainsFunc(quotes, func(q sessions.Quote) bool { return strings.Contains(q.Text, h.text) })
}

// asJSON returns a text as a JSON string.
func asJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(raw)
}
