package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/console"
)

// A screen takes out of what is written to it whatever a terminal would obey:
// most that a command prints was written by somebody else. In JSON, where such a
// character stands in a string, it becomes its escape, which means the same.
type screen struct {
	to   io.Writer
	json bool
	rest []byte // the beginning of a character
}

// Write writes what a terminal shows of b.
func (s *screen) Write(b []byte) (int, error) {
	text := append(s.rest, b...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case !console.Obeyed(r):
			out = utf8.AppendRune(out, r)
		case s.json && r <= 0xFFFF && r != '\r':
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	s.rest = append([]byte(nil), text...)
	if _, err := s.to.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// screened is a command's terminal. What is for programs goes through as it is,
// and so does what a command draws itself.
func (c *cli) screened(command string, tty terminal) terminal {
	name, _, _ := strings.Cut(command, " ")
	switch {
	case name == "chat", name == "serve": // what others say is cleaned where it is drawn or logged
		return tty
	case c.JSON, name == "backup" && c.Backup.File == "-":
		return terminal{in: tty.in, out: tty.out, err: &screen{to: tty.err}}
	}
	shows := strings.HasPrefix(command, "dead-letters show")
	return terminal{in: tty.in, out: &screen{to: tty.out, json: shows}, err: &screen{to: tty.err}}
}

// cell is a text for one cell of a table: on one line, and as wide as it looks.
func cell(text string) string {
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

// hanging sets the further lines of what somebody said apart from the lines that
// begin with who said it.
func hanging(text string) string {
	return strings.ReplaceAll(text, "\n", "\n                     ")
}
