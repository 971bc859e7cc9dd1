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

// Untrusted tells whether a model that was shown the records before entry n has read
// what nobody here vouches for, or a summary of it: a result that is marked so, and
// what people quote that is not their own. It holds until the past is dropped: the
// model's own words may repeat what it has read. Own is the turn that it was shown,
// of which nothing is dropped.
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
		if (!newest.Hides(r.N) || own != "" && r.Turn == own) && r.N < n && fromOthers(r, records) {
			return true
		}
	}
	return false
}

// fromOthers tells whether an entry holds what strangers may have written.
func fromOthers(r journal.Record, records []journal.Record) bool {
	var quotes []sessions.Quote
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		return d.Untrusted
	case sessions.Fetched:
		return d.Picture != nil || d.Untrusted // it was shown; of another file nothing is
	case sessions.User:
		quotes = d.Quotes
	case sessions.Notice:
		quotes = d.Quotes
	}
	return slices.ContainsFunc(quotes, func(q sessions.Quote) bool {
		own := (r.Kind == sessions.KindUser || q.Kind == bus.Edited) && q.Person != "" && q.Person == r.Person
		return !own && !(q.Kind == bus.Answered && saidByModel(records, q.Text))
	})
}

// saidByModel tells whether a text is part of what the model itself has said here. Not
// all that a bot has posted is: it also tells what others asked it to.
func saidByModel(records []journal.Record, text string) bool {
	text = lettersOf(text)
	return text != "" && slices.ContainsFunc(records, func(r journal.Record) bool {
		d, ok := r.Data.(sessions.Text)
		return ok && strings.Contains(lettersOf(d.Text), text)
	})
}

// lettersOf is what is left of a text however its Markdown was shown.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// Holds tells whether a text stands word for word in what people said, or in a result,
// among the records before entry n that a model is shown. Once that model has read what
// is untrusted, only the results of those tools count that it cannot make say what it
// likes, and of these none whose call had the text in its own arguments. Own is as for
// Untrusted.
func Holds(records []journal.Record, own string, n int64, text string, brings func(tool string) bool) bool {
	if text == "" {
		return false
	}
	newest, _ := NewestSummary(records)
	h := holding{text: text, inJSON: strings.Trim(asJSON(text), `"`), uses: map[string]sessions.ToolUse{}}
	for _, r := range records {
		if r.N >= n {
			break
		}
		if newest.Hides(r.N) && (own == "" || r.Turn != own) {
			continue
		}
		if h.entry(r, brings) {
			return true
		}
		h.influenced = h.influenced || fromOthers(r, records)
	}
	return false
}

// holding is a search for a text in a log.
type holding struct {
	text, inJSON string
	uses         map[string]sessions.ToolUse // by call
	influenced   bool                        // the model has read what is untrusted
}

func (h *holding) entry(r journal.Record, brings func(tool string) bool) bool {
	switch d := r.Data.(type) {
	case sessions.Summary:
		h.influenced = h.influenced || d.Untrusted
	case sessions.User:
		return strings.Contains(d.Text, h.text) || h.quoted(d.Quotes)
	case sessions.Notice:
		return h.quoted(d.Quotes)
	case sessions.ToolUse:
		h.uses[r.Call] = d
	case sessions.ToolResult:
		use := h.uses[r.Call]
		return (!h.influenced || brings(use.Name)) && h.in(d.Content) && !h.in(use.Args)
	}
	return false
}

func (h *holding) in(content json.RawMessage) bool {
	return bytes.Contains(content, []byte(h.text)) || bytes.Contains(content, []byte(h.inJSON))
}

func (h *holding) quoted(quotes []sessions.Quote) bool {
	return slices.ContainsFunc(quotes, func(q sessions.Quote) bool { return strings.Contains(q.Text, h.text) })
}

func asJSON(text string) string {
	raw, err := json.Marshal(text)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(raw)
}
