// Package redact removes secrets from texts: the secrets that it is given, in any encoding, and whatever looks like
// a token of a well-known service.
//
// redact.go finds and replaces secrets; tokens.go knows what tokens look like; forms.go lists the ways in which a
// secret can be encoded; stream.go redacts a text that comes in pieces; log.go redacts log records.
package redact

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/tools"
	"parley/tools/plainjson"
)

// Redacted replaces a secret.
const Redacted = "[redacted]"

// A Redactor removes secrets from texts. It may be used by several goroutines at once.
type Redactor struct {
	// index maps the first two bytes of a secret to the list in lists of all secrets that begin with them; list 0
	// is empty.
	index [1 << 16]uint16
	lists []candidates
	// pairBits says for two bytes whether a secret begins with them (firstPair), or has them as its second and
	// third byte (secondPair). In any three consecutive bytes, one such pair begins at an odd index, so a search
	// checks only every second index.
	pairBits [1 << 16]uint8
	begins   [256]bool // the bytes with which a secret begins
	longest  int       // the length of the longest known secret, in bytes
	patterns []*regexp.Regexp
}

// candidates are the secrets, and the rules for tokens, that begin with the same two bytes.
type candidates struct {
	known []string // secrets in all their encodings, the longest first
	rules []rule
}

// New makes a Redactor for secrets and regular expressions. It ignores secrets that are too short to be distinguished
// from ordinary words, and returns an error if tools.Pattern refuses a regular expression.
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
		for _, form := range encodedForms(secret) {
			list := r.candidatesFor(form)
			if !slices.Contains(list.known, form) {
				list.known = append(list.known, form)
			}
			r.longest = max(r.longest, len(form))
		}
	}
	for i := range r.lists {
		slices.SortFunc(r.lists[i].known, func(a, b string) int { return len(b) - len(a) })
	}
	for _, one := range tokenRules() {
		list := r.candidatesFor(one.prefix)
		list.rules = append(list.rules, one)
	}
	return r, nil
}

// pairKey returns the two bytes of s at i as one number, which is an index into the Redactor's tables.
func pairKey(s string, i int) int { return int(s[i]) | int(s[i+1])<<8 }

// The bits of Redactor.pairBits.
const firstPair, secondPair = 1, 2

// candidatesFor returns the list for everything that begins with the same two bytes as text, so that the caller can
// add to it. The text has at least three bytes.
func (r *Redactor) candidatesFor(text string) *candidates {
	k := pairKey(text, 0)
	r.pairBits[k] |= firstPair
	r.pairBits[pairKey(text, 1)] |= secondPair
	if r.index[k] == 0 {
		r.index[k] = uint16(len(r.lists))
		r.lists = append(r.lists, candidates{})
		r.begins[text[0]] = true
	}
	return &r.lists[r.index[k]]
}

// A span is a part of a text to be replaced: from the byte at from up to, but not including, the byte at to.
type span struct{ from, to int }

// Text returns a text without its secrets.
func (r *Redactor) Text(text string) string { return replaceSpans(text, r.spans(text)) }

// replaceSpans replaces parts of a text with Redacted. Parts that overlap or touch become one.
func replaceSpans(text string, spans []span) string {
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

// spans returns all parts of a text that contain secrets, and so have to be replaced.
func (r *Redactor) spans(text string) []span {
	found := r.findSecrets(text)
	for _, p := range r.patterns {
		for _, m := range p.FindAllStringIndex(text, -1) {
			if s := (span{m[0], m[1]}).aroundRedacted(text); s.to > s.from {
				found = append(found, s)
			}
		}
	}
	return found
}

// aroundRedacted adjusts a match of a regular expression to the markers Redacted in the text, so that what was
// redacted before stays as it is: it returns nothing if the whole match is within one marker, or else the match
// extended to the whole of each marker that it touches.
func (s span) aroundRedacted(text string) span {
	const size = len(Redacted)
	if s.to == s.from {
		return s
	}
	first, last := max(0, s.from-size+1), max(0, s.to-size+1)
	if i := strings.Index(text[first:min(len(text), s.from+size)], Redacted); i >= 0 {
		if s.from = first + i; s.to <= s.from+size {
			return span{}
		}
	}
	if i := strings.Index(text[last:min(len(text), s.to+size-1)], Redacted); i >= 0 {
		s.to = last + i + size
	}
	return s
}

// findSecrets finds known secrets and tokens, but not matches of the regular expressions.
func (r *Redactor) findSecrets(text string) []span {
	var found []span
	for i := 1; i+1 < len(text); i += 2 {
		pair := r.pairBits[pairKey(text, i)]
		if pair == 0 {
			continue
		}
		var s span
		if pair&secondPair != 0 {
			s = r.secretAt(text, i-1)
		}
		if s.to == 0 && pair&firstPair != 0 {
			s = r.secretAt(text, i)
		}
		if s.to > 0 {
			found = append(found, s)
			i = s.to - 1 // the next pair to check is the second pair of the secret that begins there
		}
	}
	return found
}

// secretAt returns the secret or token that begins at i; the empty span if there is none.
func (r *Redactor) secretAt(text string, i int) span {
	list := r.index[pairKey(text, i)]
	if list == 0 {
		return span{}
	}
	return r.lists[list].secretAt(text, i)
}

// secretAt returns the secret or token that begins at i; the empty span if there is none.
func (c candidates) secretAt(text string, i int) span {
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

// mayContainSecret reports whether a known secret, or the prefix of a token, occurs anywhere in a text. If not,
// only matches of regular expressions have to be replaced. It is faster than findSecrets because it doesn't copy
// the text.
func (r *Redactor) mayContainSecret(raw []byte) bool {
	for i := 1; i+1 < len(raw); i += 2 {
		pair := r.pairBits[int(raw[i])|int(raw[i+1])<<8]
		if pair&secondPair != 0 && r.startsWithSecret(raw[i-1:]) || pair&firstPair != 0 && r.startsWithSecret(raw[i:]) {
			return true
		}
	}
	return false
}

// startsWithSecret reports whether a text begins with a known secret or with the prefix of a token.
func (r *Redactor) startsWithSecret(raw []byte) bool {
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

// JSON returns a valid JSON value without its secrets, still as valid JSON. The names of an object's members are
// redacted, too.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if len(r.patterns) == 0 && !r.mayContainSecret(raw) {
		return raw
	}
	text := string(raw)
	spans := r.findSecrets(text)
	if len(spans) == 0 && len(r.patterns) == 0 {
		return raw
	}
	if made := json.RawMessage(replaceSpans(text, spans)); len(spans) > 0 && json.Valid(made) {
		raw = made
		if len(r.patterns) == 0 {
			return raw
		}
	}
	// Removing a secret that began within an escape, or was a number, broke the JSON: then each string is redacted
	// alone. The same is done for regular expressions, which would match across strings.
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		made, err := plainjson.Marshal(r.Text(string(raw)))
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
	made, err := plainjson.Marshal(value)
	if err != nil { // it was decoded a moment ago
		panic(err)
	}
	return made
}

// value returns a decoded JSON value without secrets, and sets changed if there was one.
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
