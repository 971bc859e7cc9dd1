package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/console"
)

// A Screen takes out of what is written to it whatever a terminal would obey:
// most that a command prints was written by somebody else. In JSON, where such a
// character stands in a string, it becomes its escape, which means the same.
type Screen struct {
	To   io.Writer
	JSON bool   // what is written is JSON
	rest []byte // the beginning of a character
}

// Write writes what a terminal shows of b.
func (s *Screen) Write(b []byte) (int, error) {
	text := append(s.rest, b...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case !console.Obeyed(r):
			out = utf8.AppendRune(out, r)
		case s.JSON && r <= 0xFFFF && r != '\r':
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	s.rest = append([]byte(nil), text...)
	if _, err := s.To.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Cell is a text for one cell of a table: on one line, and as wide as it looks.
func Cell(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case console.Obeyed(r):
			return -1
		}
		return r
	}, text)
}

// Hanging sets the further lines of what somebody said apart from the lines that
// begin with who said it.
func Hanging(text string) string {
	return strings.ReplaceAll(text, "\n", "\n                     ")
}
