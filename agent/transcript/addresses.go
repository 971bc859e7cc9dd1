package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/agent/journal"
	"parley/sessions"
	"parley/tools"
)

// FindAddress looks for a URL in people's words or tools' results, among the records before entry n that a model is
// shown. The URL has to be a complete address there, not part of a longer one. Once that model has read untrusted text,
// a result counts only if brings returns true for its tool: the model can't make such tools print a text of its choice.
// Even such a result doesn't count if the address was in the arguments of its call. own is as for Untrusted. People's
// words take precedence over results.
func FindAddress(records []journal.Record, own string, n int64, address string, brings func(tool string) bool) tools.Sighting {
	var first tools.Sighting
	if address == "" {
		return first
	}
	newest, _ := NewestSummary(records)
	h := addressSearch{address: address, own: own, uses: map[string]sessions.ToolUse{}}
	for _, r := range records {
		if r.N >= n {
			break
		}
		if newest.Hides(r.N) && (own == "" || r.Turn != own) {
			continue
		}
		if at := h.findInEntry(r, brings); at.Found && (!first.Found || at.Source == "" && (first.Source != "" || at.AskedInThisTurn)) {
			first = at
		}
		h.influenced = h.influenced || isFromOthers(r, records)
	}
	return first
}

// An addressSearch is the state of the search for an address in a log.
type addressSearch struct {
	address    string
	own        string
	uses       map[string]sessions.ToolUse // by call
	influenced bool                        // the model has read untrusted text
}

// findInEntry returns where an entry contains the address, and remembers calls and untrusted summaries.
func (h *addressSearch) findInEntry(r journal.Record, brings func(tool string) bool) tools.Sighting {
	switch d := r.Data.(type) {
	case sessions.Summary:
		h.influenced = h.influenced || d.Untrusted
	case sessions.User:
		switch {
		case d.Untrusted:
		case holdsAddress(d.Text, h.address):
			return tools.Sighting{Found: true, AskedInThisTurn: h.own != "" && r.Turn == h.own}
		case h.isQuoted(d.Quotes):
			return tools.Sighting{Found: true, Source: r.Cause}
		}
	case sessions.Notice:
		return tools.Sighting{Found: h.isQuoted(d.Quotes), Source: r.Cause}
	case sessions.ToolUse:
		h.uses[r.Call] = d
	case sessions.ToolResult:
		use := h.uses[r.Call]
		return tools.Sighting{Found: (!h.influenced || brings(use.Name)) && h.mayContain(d.Content) && h.containsAddress(d.Content) && !h.containsAddress(use.Args), Source: r.Call}
	}
	return tools.Sighting{}
}

// mayContain reports whether a text in a JSON value may contain the address, by looking for the address's host in
// plain letters. This avoids decoding most results.
func (h *addressSearch) mayContain(content json.RawMessage) bool {
	_, host, found := strings.Cut(h.address, "://")
	if !found {
		host = h.address
	}
	if end := strings.IndexAny(host, "/?#\\"); end >= 0 {
		host = host[:end]
	}
	return bytes.Contains(content, []byte(host))
}

// containsAddress reports whether a text in a JSON value contains the address.
func (h *addressSearch) containsAddress(content json.RawMessage) bool {
	var value any
	if json.Unmarshal(content, &value) != nil {
		return holdsAddress(string(content), h.address)
	}
	return anyText(value, func(text string) bool { return holdsAddress(text, h.address) })
}

// anyText reports whether holds returns true for any string in a JSON value, including the names of its fields.
func anyText(value any, holds func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return holds(v)
	case []any:
		for _, one := range v {
			if anyText(one, holds) {
				return true
			}
		}
	case map[string]any:
		for name, one := range v {
			if holds(name) || anyText(one, holds) {
				return true
			}
		}
	}
	return false
}

// isQuoted reports whether any of the quotes contains the address.
func (h *addressSearch) isQuoted(quotes []sessions.Quote) bool {
	for _, q := range quotes {
		if holdsAddress(q.Text, h.address) {
			return true
		}
	}
	return false
}

// holdsAddress reports whether a text contains a URL as a complete address: the URL neither begins within
// another word nor continues after the match. A fragment may follow, because fragments are not sent.
func holdsAddress(text, address string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], address)
		if at < 0 {
			return false
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if (at == 0 || !continuesAddress(before)) && endsAddress(text[at+len(address):], before) {
			return true
		}
		from = at + 1
	}
}

// endsAddress reports whether an address ends before rest: at the end of the text, at a character that no
// address contains, at punctuation followed by one of these, or at the closing parenthesis that matches one
// before the address, as in Markdown.
func endsAddress(rest string, before rune) bool {
	rest, fragment := strings.CutPrefix(rest, "#")
	if fragment {
		rest = strings.TrimLeftFunc(rest, func(r rune) bool { return continuesAddress(r) && !strings.ContainsRune(")]", r) })
	}
	closing := map[rune]rune{'(': ')', '[': ']', '\'': '\''}[before]
	for _, r := range rest {
		switch {
		case r == closing && closing != 0, !continuesAddress(r) && !isClosing(r):
			return true
		case !isClosing(r):
			return false
		}
	}
	return true
}

// continuesAddress reports whether a character can be part of an address. Letters of all scripts can, so that
// the beginning of an address is never mistaken for all of it.
func continuesAddress(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) || strings.ContainsRune("-_~%/:@&=+$?#", r)
}

// isClosing reports whether a character ends an address if nothing more of the address follows it.
func isClosing(r rune) bool { return strings.ContainsRune(".,;:!?)]'*_~", r) }
