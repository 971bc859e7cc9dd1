package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/console"
)

// A Screen is a writer that removes control characters that a terminal would obey, because most of
// what a command prints was written by other people. In JSON, such a character in a string is
// replaced with its escape, which means the same.
type Screen struct {
	To   io.Writer
	JSON bool   // whether the output is JSON
	rest []byte // the beginning of a character whose rest was not written yet
}

// Write writes b to the terminal, without characters that the terminal would obey.
func (s *Screen) Write(b []byte) (int, error) {
	text := append(s.rest, b...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case !console.IsTerminalControl(r):
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

// Cell returns a text for one cell of a table: on one line, and without control
// characters.
func Cell(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case console.IsTerminalControl(r):
			return -1
		}
		return r
	}, text)
}

// Hanging indents all lines but the first of what somebody said, so that they stand out from the
// lines that begin with the speaker's name.
func Hanging(text string) string {
	return strings.ReplaceAll(text, "\n", "\n                     ")
}
