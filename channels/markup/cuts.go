package markup

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// plainStart is the text of spans, no more of it than could fit, and a little.
func plainStart(spans []span, room int) string {
	var b strings.Builder
	n := 0
	for _, s := range spans {
		for i, r := range s.text {
			if n += utf16.RuneLen(r); n > room+8 {
				b.WriteString(s.text[:i])
				return b.String()
			}
		}
		b.WriteString(s.text)
	}
	return b.String()
}

func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return min(i, len(s))
}

// niceCut is where to cut s at most at byte at: behind a line, a sentence or a
// word if that does not waste half of the room, else behind what is seen as one
// character.
func niceCut(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	half := at / 2
	if i := strings.LastIndexByte(s[half:at+1], '\n'); i > 0 {
		return half + i
	}
	space := 0
	for i := at; i > half; {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		next, _ := utf8.DecodeRuneInString(s[i:])
		switch {
		case strings.ContainsRune("。！？", r), strings.ContainsRune(".!?…:;", r) && unicode.IsSpace(next):
			return i
		case space == 0 && unicode.IsSpace(next):
			space = i
		}
		i -= n
	}
	if space > 0 {
		return space
	}
	return lastCharacter(s, at)
}

// lastCharacter is the last bound between what is seen as one character each;
// where a single one is longer, it has to be cut.
func lastCharacter(s string, at int) int {
	start := 0
	for i := at - 1; i > 0; i-- {
		if s[i] == ' ' || isWord(s[i]) {
			start = i
			break
		}
	}
	end, state := start, -1
	for rest := s[start:]; rest != ""; {
		var c string
		c, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if end+len(c) > at {
			break
		}
		end += len(c)
	}
	if end == 0 {
		return at
	}
	return end
}

// headSpans are the spans before a byte of their text.
func headSpans(spans []span, at int) []span {
	for i, s := range spans {
		if at <= len(s.text) {
			s.text = s.text[:at]
			return append(spans[:i:i], s)
		}
		at -= len(s.text)
	}
	return spans
}

// tailSpans are the spans from there on. They take the place of the spans that
// are cut: a long text is cut many times.
func tailSpans(spans []span, at int) []span {
	for i, s := range spans {
		if at <= len(s.text) {
			spans[i].text = s.text[at:]
			return spans[i:]
		}
		at -= len(s.text)
	}
	return nil
}

func trimEnd(spans []span) []span {
	for n := len(spans); n > 0; n = len(spans) {
		last := spans[n-1]
		last.text = strings.TrimRightFunc(last.text, unicode.IsSpace)
		spans = spans[: n-1 : n-1]
		if last.text != "" {
			return append(spans, last)
		}
	}
	return nil
}

func trimStart(spans []span) []span {
	for len(spans) > 0 {
		spans[0].text = strings.TrimLeftFunc(spans[0].text, unicode.IsSpace)
		if spans[0].text != "" {
			return spans
		}
		spans = spans[1:]
	}
	return nil
}

// codeCut is where to cut a line of code at most at byte at: behind blanks, else
// behind what parts words, if that does not waste half of the room.
func codeCut(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	half := at / 2
	if i := strings.LastIndexAny(s[half:at], " \t"); i >= 0 {
		return half + i + 1
	}
	if i := strings.LastIndexAny(s[half:at], ",;)]}>|&/"); i >= 0 {
		return half + i + 1
	}
	for i := at; i > half; i-- {
		if s[i] < utf8.RuneSelf && s[i-1] < utf8.RuneSelf && !isWord(s[i-1]) {
			return i
		}
	}
	return lastCharacter(s, at)
}
