// Package redact takes secrets out of texts: those that it was given, however they are encoded, and what looks like a token of a well-known service.
//
// redact.go finds and replaces; tokens.go knows what tokens look like; forms.go how a
// secret can be written; stream.go takes a text that comes in pieces; log.go stands
// before a log.
package redact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/tools"
)

// Redacted stands where a secret was.
const Redacted = "[redacted]"

// A Redactor takes secrets out of texts. It may be used from many goroutines.
type Redactor struct {
	// index gives for the first two bytes of a secret where in lists those stand that
	// begin so; the first list is empty.
	index [1 << 16]uint16
	lists []candidates
	// stands says of two bytes whether a secret begins with them, or has them behind its
	// first: of every three bytes in a row one such pair is at an odd place.
	stands   [1 << 16]uint8
	begins   [256]bool // the bytes with which one of them begins
	longest  int       // of the known, in bytes
	patterns []*regexp.Regexp
}

// candidates are what can begin with the same two bytes.
type candidates struct {
	known []string // secrets in all their forms, the longest first
	rules []rule
}

// New makes a Redactor of secrets and of regular expressions. Secrets that are too short
// to be told from ordinary words are left out.
func New(secrets, patterns []string) (*Redactor, error) {
	r := &Redactor{lists: make([]candidates, 1)}
	for _, text := range patterns {
		compiled, _, err := tools.Pattern(text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
		r.patterns = append(r.patterns, compiled)
	}
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			list := r.beginningLike(form)
			if !slices.Contains(list.known, form) {
				list.known = append(list.known, form)
			}
			r.longest = max(r.longest, len(form))
		}
	}
	for i := range r.lists {
		slices.SortFunc(r.lists[i].known, func(a, b string) int { return len(b) - len(a) })
	}
	for _, one := range tokens() {
		list := r.beginningLike(one.prefix)
		list.rules = append(list.rules, one)
	}
	return r, nil
}

func key(s string, i int) int { return int(s[i]) | int(s[i+1])<<8 }

// The bits of Redactor.stands.
const first, second = 1, 2

// beginningLike is the list of what begins like a text of three bytes or more, for adding
// to it.
func (r *Redactor) beginningLike(text string) *candidates {
	k := key(text, 0)
	r.stands[k] |= first
	r.stands[key(text, 1)] |= second
	if r.index[k] == 0 {
		r.index[k] = uint16(len(r.lists))
		r.lists = append(r.lists, candidates{})
		r.begins[text[0]] = true
	}
	return &r.lists[r.index[k]]
}

// A span is a part of a text that is taken out.
type span struct{ from, to int }

// Text is a text without its secrets.
func (r *Redactor) Text(text string) string { return cut(text, r.spans(text)) }

// cut replaces parts of a text. Those that overlap, or touch, become one.
func cut(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, s := range spans {
		if s.to <= at {
			continue
		}
		if s.from >= at {
			b.WriteString(text[at:s.from])
			b.WriteString(Redacted)
		}
		at = s.to
	}
	b.WriteString(text[at:])
	return b.String()
}

// spans finds what is taken out of a text.
func (r *Redactor) spans(text string) []span {
	found := r.secrets(text)
	for _, p := range r.patterns {
		for _, m := range p.FindAllStringIndex(text, -1) {
			if m[1] > m[0] {
				found = append(found, span{m[0], m[1]})
			}
		}
	}
	return found
}

// secrets finds secrets that are known, and tokens.
func (r *Redactor) secrets(text string) []span {
	var found []span
	for i := 1; i+1 < len(text); i += 2 {
		pair := r.stands[key(text, i)]
		if pair == 0 {
			continue
		}
		var s span
		if pair&second != 0 {
			s = r.at(text, i-1)
		}
		if s.to == 0 && pair&first != 0 {
			s = r.at(text, i)
		}
		if s.to > 0 {
			found = append(found, s)
			i = s.to - 1 // the next pair is the second of what begins there
		}
	}
	return found
}

// at is the secret that begins there; the empty span if none does.
func (r *Redactor) at(text string, i int) span {
	list := r.index[key(text, i)]
	if list == 0 {
		return span{}
	}
	return r.lists[list].at(text, i)
}

// at is the secret that begins there; the empty span if none does.
func (c candidates) at(text string, i int) span {
	for _, secret := range c.known {
		if strings.HasPrefix(text[i:], secret) {
			return span{i, i + len(secret)}
		}
	}
	for _, one := range c.rules {
		if s, _ := one.match(text, i); s.to > 0 {
			return s
		}
	}
	return span{}
}

// mayHold tells whether something of what is looked for begins anywhere in a text. It is
// secrets without a copy of the text, which would take longer than the search.
func (r *Redactor) mayHold(raw []byte) bool {
	for i := 1; i+1 < len(raw); i += 2 {
		pair := r.stands[int(raw[i])|int(raw[i+1])<<8]
		if pair&second != 0 && r.begun(raw[i-1:]) || pair&first != 0 && r.begun(raw[i:]) {
			return true
		}
	}
	return false
}

// begun tells whether a text begins with a secret, or as tokens do.
func (r *Redactor) begun(raw []byte) bool {
	list := r.lists[r.index[int(raw[0])|int(raw[1])<<8]]
	for _, secret := range list.known {
		if len(raw) >= len(secret) && string(raw[:len(secret)]) == secret {
			return true
		}
	}
	for _, one := range list.rules {
		if len(raw) >= len(one.prefix) && string(raw[:len(one.prefix)]) == one.prefix {
			return true
		}
	}
	return false
}

// JSON is a JSON value without its secrets, and still one.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if len(r.patterns) == 0 && !r.mayHold(raw) {
		return raw
	}
	text := string(raw)
	spans := r.secrets(text)
	if len(spans) == 0 && len(r.patterns) == 0 {
		return raw
	}
	if made := json.RawMessage(cut(text, spans)); len(spans) > 0 && json.Valid(made) {
		raw = made
		if len(r.patterns) == 0 {
			return raw
		}
	}
	// Where it began within an escape, or was a number, each text is looked at alone. So
	// it is with expressions, which would match across texts.
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		made, err := json.Marshal(r.Text(string(raw)))
		if err != nil { // a string always marshals
			panic(err)
		}
		return made
	}
	changed := false
	value = r.value(value, &changed)
	if !changed {
		return raw
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil { // it was decoded a moment ago
		panic(err)
	}
	return json.RawMessage(strings.TrimSuffix(b.String(), "\n"))
}

func (r *Redactor) value(v any, changed *bool) any {
	switch v := v.(type) {
	case string:
		text := r.Text(v)
		*changed = *changed || text != v
		return text
	case json.Number:
		if text := r.Text(v.String()); text != v.String() {
			*changed = true
			return text
		}
	case []any:
		for i := range v {
			v[i] = r.value(v[i], changed)
		}
	case map[string]any:
		for name, inner := range v {
			plain := r.Text(name)
			if plain != name {
				*changed = true
				delete(v, name)
			}
			v[plain] = r.value(inner, changed)
		}
	}
	return v
}
