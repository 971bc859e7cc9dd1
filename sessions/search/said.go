package search

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"parley/sessions"
)

// How many bytes at the beginning and at the end of a long text are indexed. For a tool's result, these
// are fewer: most of it was read for one turn, and the model's answer contains what mattered.
const (
	headTextBytes, tailTextBytes     = 48 << 10, 8 << 10
	headResultBytes, tailResultBytes = 12 << 10, 4 << 10
)

// content is the searchable content of an entry.
type content struct {
	name        string // what the platform calls the person who said it
	text        string
	untrusted   bool
	fromEpisode bool   // the text sums up a turn
	message     string // the id of the message that says it, or that it came with; "" for text from the agent and tools
}

// mayHaveWords lists, in SQL, the kinds of the entries that have words. A new kind also needs a migration
// that creates the triggers again: those of [SQLite] and [Postgres] never change.
const mayHaveWords = "('user', 'text', 'summary', 'tool_result', 'notice', 'attached', 'fetched')"

// contentOf returns the searchable content of an entry, of a long text only the beginning and the end. It returns
// nothing if the entry cannot be decoded, for example because a newer release wrote it.
func contentOf(e sessions.Entry) (s content) {
	switch e.Kind {
	case sessions.KindUser:
		if d, err := sessions.Decode[sessions.User](e); err == nil && !d.Deleted {
			s = content{name: d.Name, text: d.Text, untrusted: d.Untrusted || quotesOthers(e, d.Quotes), message: e.Cause}
			s.quote(d.Quotes)
		}
	case sessions.KindText:
		if d, err := sessions.Decode[sessions.Text](e); err == nil {
			s.text = d.Text
		}
	case sessions.KindSummary:
		if d, err := sessions.Decode[sessions.Summary](e); err == nil {
			s = content{text: d.Text, untrusted: d.Untrusted}
		}
	case sessions.KindToolResult:
		if d, err := sessions.Decode[sessions.ToolResult](e); err == nil && !d.IsPlaceholder {
			return content{text: bothEnds(textsIn(d.Content), headResultBytes, tailResultBytes), untrusted: d.Untrusted}
		}
	case sessions.KindNotice:
		if d, err := sessions.Decode[sessions.Notice](e); err == nil {
			s = contentOfNotice(e, d)
		}
	case sessions.KindAttached:
		if d, err := sessions.Decode[sessions.Attached](e); err == nil {
			s.text, s.message = d.Name, d.Message
		}
	case sessions.KindFetched:
		if d, err := sessions.Decode[sessions.Fetched](e); err == nil {
			s = content{text: d.SpokenWords, untrusted: d.Untrusted, message: d.Message}
		}
	}
	s.text = bothEnds(s.text, headTextBytes, tailTextBytes)
	return s
}

// contentOfNotice returns the searchable content of a notice. Its own text comes from the system, and is not
// searchable.
func contentOfNotice(e sessions.Entry, d sessions.Notice) (s content) {
	if d.Episode != nil {
		return content{text: d.Episode.OneLine(), untrusted: d.Episode.Untrusted, fromEpisode: true, message: d.MessageID}
	}
	s.untrusted, s.message = quotesOthers(e, d.Quotes), cmp.Or(d.MessageID, e.Cause)
	s.quote(d.Quotes)
	if len(d.Quotes) > 0 {
		s.name = d.Quotes[0].Name
	}
	return s
}

// quote adds quotes to the text.
func (s *content) quote(quotes []sessions.Quote) {
	for _, q := range quotes {
		if q.Text == "" {
			continue
		}
		if s.text != "" {
			s.text += "\n\n"
		}
		if q.Name != "" {
			s.text += q.Name + ": "
		}
		s.text += q.Text
	}
}

// quotesOthers reports whether a quote may have been written by somebody whom the bot does not know.
func quotesOthers(e sessions.Entry, quotes []sessions.Quote) bool {
	return slices.ContainsFunc(quotes, func(q sessions.Quote) bool { return q.MayBeFromStrangers(e.Kind, e.Person) })
}

// textsIn returns the texts in a JSON value, without the names of fields.
func textsIn(content json.RawMessage) string {
	var one string
	if json.Unmarshal(content, &one) == nil {
		return one
	}
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(content))
	var open []json.Delim // the objects and lists that contain the current position
	name := false         // whether the next text is the name of a field
	for {
		t, err := dec.Token()
		if err != nil {
			return b.String()
		}
		inObject := len(open) > 0 && open[len(open)-1] == '{'
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				open = append(open, t)
			default:
				open = open[:len(open)-1]
			}
			name = len(open) > 0 && open[len(open)-1] == '{'
			continue
		case string:
			if !name && t != "" {
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString(t)
			}
		}
		name = inObject && !name
	}
}

// bothEnds returns the beginning and the end of a text that is longer than most bytes, and any other text
// unchanged.
func bothEnds(text string, most, last int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-last], "") + "\n…\n" + strings.ToValidUTF8(text[len(text)-last:], "")
}
