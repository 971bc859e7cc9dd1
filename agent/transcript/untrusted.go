package transcript

import (
	"slices"
	"strings"
	"unicode"

	"parley/agent/journal"
	"parley/bus"
	"parley/sessions"
)

// Untrusted reports whether a model that was shown the records before entry n has read text from strangers, or
// a summary of such text. Text from strangers is, for example, a result marked as untrusted, a quote of
// somebody else's words, or a picture that came with a message. It counts until the past is dropped, because
// the model's own words may repeat what it has read. own is the turn that the model was asked for; nothing in
// that turn is dropped.
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

// isFromOthers reports whether an entry contains text that strangers may have written.
func isFromOthers(r journal.Record, records []journal.Record) bool {
	var quotes []sessions.Quote
	switch d := r.Data.(type) {
	case sessions.ToolResult:
		return d.Untrusted
	case sessions.Fetched:
		return d.Picture != nil || d.Untrusted // a picture is shown; other files' contents are not
	case sessions.User:
		if d.Untrusted {
			return true
		}
		quotes = d.Quotes
	case sessions.Notice:
		quotes = d.Quotes
	}
	return slices.ContainsFunc(quotes, func(q sessions.Quote) bool {
		return q.MayBeFromStrangers(r.Kind, r.Person) && !(q.Kind == bus.Answered && wasSaidByModel(records, q.Text))
	})
}

// wasSaidByModel reports whether a text is part of what the model itself has said in this session. A message
// that the bot posted here proves nothing, because the bot also posts other people's messages.
func wasSaidByModel(records []journal.Record, text string) bool {
	text = lettersOf(text)
	return text != "" && slices.ContainsFunc(records, func(r journal.Record) bool {
		d, ok := r.Data.(sessions.Text)
		return ok && strings.Contains(lettersOf(d.Text), text)
	})
}

// lettersOf returns the letters and digits of a text, which stay the same however its Markdown is displayed.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}
