package redact

import "strings"

// Bounds of what is held back of a text that is still being written.
const (
	maxHeld = 4096     // of what could become a token
	maxLine = 16 << 10 // of a line that a regular expression could match
)

// Stream takes a text in pieces and gives it on without its secrets. What could be the
// beginning of one is held back until it is clear whether it is, or until last.
func (r *Redactor) Stream() func(piece string, last bool) string {
	s := &stream{r: r}
	return s.next
}

type stream struct {
	r    *Redactor
	held string
	// inKey says that a private key has begun whose end has not come.
	inKey bool
}

func (s *stream) next(piece string, last bool) string {
	text := s.held + piece
	s.held = ""
	if s.inKey {
		text = s.skipKey(text, last)
		if s.inKey {
			return ""
		}
	}
	spans := s.r.spans(text)
	if last {
		return cut(text, spans)
	}
	from := s.r.pending(text)
	for _, one := range spans {
		if strings.HasPrefix(text[one.from:], keyBegin) {
			if _, open := matchKey(text, one.from); open {
				s.inKey = true
				return cut(text, spans)
			}
		}
		if one.from < from && one.to > from { // it may go on
			from = one.from
		}
	}
	var out []span
	for _, one := range spans {
		if one.to <= from {
			out = append(out, one)
		}
	}
	s.held = text[from:]
	return cut(text[:from], out)
}

// skipKey drops what belongs to a private key.
func (s *stream) skipKey(text string, last bool) string {
	at := strings.Index(text, keyEnd)
	if at >= 0 {
		if dashes := strings.Index(text[at+len(keyEnd):], "-----"); dashes >= 0 {
			s.inKey = false
			return text[at+len(keyEnd)+dashes+len("-----"):]
		}
		s.held = text[at:]
	} else {
		s.held = text[max(0, len(text)-len(keyEnd)):]
	}
	if last {
		s.held, s.inKey = "", false
		return ""
	}
	if len(s.held) > maxHeld { // an end that does not end
		s.held = keyEnd
	}
	return ""
}

// pending is from where on a text could still become a secret.
func (r *Redactor) pending(text string) int {
	from := len(text)
	if len(r.patterns) > 0 { // they match within a line
		from = max(strings.LastIndexByte(text, '\n')+1, len(text)-maxLine)
	}
	for i := max(0, len(text)-max(r.longest, maxHeld)); i < from; i++ {
		if r.mayBegin(text, i) {
			from = i
			break
		}
	}
	return from - digitsBefore(text, from) // of a token that begins with a number
}

// mayBegin tells whether a secret could begin there of which the end is still to come.
func (r *Redactor) mayBegin(text string, i int) bool {
	rest := text[i:]
	if !r.begins[rest[0]] {
		return false
	}
	if len(rest) == 1 {
		return true
	}
	list := r.lists[r.index[key(rest, 0)]]
	for _, secret := range list.known {
		if len(secret) > len(rest) && strings.HasPrefix(secret, rest) {
			return true
		}
	}
	for _, one := range list.rules {
		if _, open := one.match(text, i); open {
			return true
		}
	}
	return false
}
