package files

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"unicode/utf8"

	"parley/tools"
)

// maxSteps is the approximate number of matching steps after which a search checks again whether
// its call has ended.
const maxSteps = 1 << 20

// A scanner matches lines against a regular expression. It stops when its call ends, even within
// a long line.
type scanner struct {
	pattern         *regexp.Regexp
	literal         []byte // if set, the pattern is this plain text
	stepsPerChar    int    // the most steps that matching takes for each character of a line
	stepsSinceCheck int    // steps since the last check whether the call has ended
}

func newScanner(pattern string) (scanner, error) {
	if pattern == "" || len(pattern) > maxPattern {
		return scanner{}, tools.Errorf(tools.InvalidArgs, "pattern is a regular expression of 1 to %d bytes", maxPattern)
	}
	compiled, steps, err := tools.Pattern(pattern)
	if err != nil {
		return scanner{}, tools.Errorf(tools.InvalidArgs, "pattern is no regular expression that can be used (RE2, without lookaround and backreferences): %v", err)
	}
	s := scanner{pattern: compiled, stepsPerChar: steps}
	if literal, all := compiled.LiteralPrefix(); all { // searching for plain text is many times faster
		s.literal, s.stepsPerChar = []byte(literal), 1
	}
	return s, nil
}

// matches reports whether the expression matches in a line. It returns an error if ctx has ended, which it checks every
// maxSteps of work.
func (s *scanner) matches(ctx context.Context, line []byte) (bool, error) {
	cost := (len(line) + 1) * s.stepsPerChar
	if s.stepsSinceCheck += cost; s.stepsSinceCheck > maxSteps {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		s.stepsSinceCheck = cost
	}
	switch {
	case s.literal != nil:
		return bytes.Contains(line, s.literal), nil
	case cost <= maxSteps:
		return s.pattern.Match(line), nil
	}
	s.stepsSinceCheck = 0
	in := &interruptibleLine{line: line, ended: ctx.Err, every: max(1, maxSteps/s.stepsPerChar)}
	hit := s.pattern.MatchReader(in)
	return hit, in.err
}

// An interruptibleLine reads one line's characters, and ends early when the call ends.
type interruptibleLine struct {
	line      []byte
	ended     func() error
	every     int // how many characters it reads between two checks whether the call has ended
	charsRead int
	err       error
}

func (in *interruptibleLine) ReadRune() (r rune, size int, err error) {
	if in.charsRead++; in.charsRead%in.every == 0 {
		if in.err = in.ended(); in.err != nil {
			return 0, 0, in.err
		}
	}
	if len(in.line) == 0 {
		return 0, 0, io.EOF
	}
	r, size = utf8.DecodeRune(in.line)
	in.line = in.line[size:]
	return r, size, nil
}
