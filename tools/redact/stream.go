package redact

import (
	"encoding/json"
	"strings"
)

// Limits of how much is held back of a text that is still being written.
const (
	maxHeldBack = 4096     // bytes that could become a token when more text comes
	maxLine     = 16 << 10 // bytes of a line that a regular expression could match when more of it comes
)

// Stream returns a function that takes a text in pieces and returns it without its secrets; last says that a piece
// is the last one. The function holds back what could be the beginning of a secret until it is clear whether it is
// one.
func (r *Redactor) Stream() func(piece string, last bool) string {
	s := &stream{r: r}
	return s.redactPiece
}

// JSONStream is like Stream for a JSON value in pieces. Regular expressions match within the strings of the value,
// which are escaped in the JSON. So if there are any, the function holds back the whole value until its last piece,
// and then redacts it as JSON does.
func (r *Redactor) JSONStream() func(piece string, last bool) string {
	if len(r.patterns) == 0 {
		return r.Stream()
	}
	var whole strings.Builder
	return func(piece string, last bool) string {
		whole.WriteString(piece)
		if !last {
			return ""
		}
		return string(r.JSON(json.RawMessage(whole.String())))
	}
}

// A stream redacts one text that comes in pieces.
type stream struct {
	r        *Redactor
	heldBack string // text that is held back until the next piece
	// inPrivateKey says that a private key has begun and its end has not come yet.
	inPrivateKey bool
}

// redactPiece takes another piece of the text, and returns what can be passed on now.
func (s *stream) redactPiece(piece string, last bool) string {
	text := s.heldBack + piece
	s.heldBack = ""
	if s.inPrivateKey {
		text = s.skipKey(text, last)
		if s.inPrivateKey {
			return ""
		}
	}
	spans := s.r.spans(text)
	if last {
		return replaceSpans(text, spans)
	}
	from := s.r.pendingFrom(text)
	for _, one := range spans {
		if strings.HasPrefix(text[one.from:], keyBegin) {
			if _, open := matchKey(text, one.from); open {
				s.inPrivateKey = true
				return replaceSpans(text, spans)
			}
		}
		if one.from < from && one.to > from { // the secret may continue
			from = one.from
		}
	}
	var out []span
	for _, one := range spans {
		if one.to <= from {
			out = append(out, one)
		}
	}
	s.heldBack = text[from:]
	return replaceSpans(text[:from], out)
}

// skipKey drops the rest of a private key that began in an earlier piece, and returns the text after the key.
func (s *stream) skipKey(text string, last bool) string {
	at := strings.Index(text, keyEnd)
	if at >= 0 {
		if dashes := strings.Index(text[at+len(keyEnd):], "-----"); dashes >= 0 {
			s.inPrivateKey = false
			return text[at+len(keyEnd)+dashes+len("-----"):]
		}
		s.heldBack = text[at:]
	} else {
		s.heldBack = text[max(0, len(text)-len(keyEnd)):]
	}
	if last {
		s.heldBack, s.inPrivateKey = "", false
		return ""
	}
	if len(s.heldBack) > maxHeldBack { // text that looks like an end mark but doesn't finish
		s.heldBack = keyEnd
	}
	return ""
}

// pendingFrom returns the index from which the text may belong to a secret that is not complete yet. It is the
// length of the text if nothing does.
func (r *Redactor) pendingFrom(text string) int {
	from := len(text)
	if len(r.patterns) > 0 { // a regular expression may match anything in the last line
		from = max(strings.LastIndexByte(text, '\n')+1, len(text)-maxLine)
	}
	for i := max(0, len(text)-max(r.longest, maxHeldBack)); i < from; i++ {
		if r.mayBegin(text, i) {
			from = i
			break
		}
	}
	return from - digitsBefore(text, from) // the token may begin with a number
}

// mayBegin reports whether a secret could begin at i whose end has not come yet.
func (r *Redactor) mayBegin(text string, i int) bool {
	rest := text[i:]
	if !r.begins[rest[0]] {
		return false
	}
	if len(rest) == 1 {
		return true
	}
	list := r.lists[r.index[pairKey(rest, 0)]]
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
