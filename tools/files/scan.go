package files

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"unicode/utf8"

	"parley/tools"
)

// maxSteps is about how many steps a search takes before it asks again whether its call
// has ended.
const maxSteps = 1 << 20

// A scanner looks for a regular expression, line by line. It ends when its call does,
// also within a long line.
type scanner struct {
	pattern *regexp.Regexp
	literal []byte // if set, the expression is this text and nothing more
	steps   int    // the most steps for each character
	taken   int    // steps since it last asked whether the call has ended
}

func newScanner(pattern string) (scanner, error) {
	if pattern == "" || len(pattern) > maxPattern {
		return scanner{}, tools.Errorf(tools.InvalidArgs, "pattern is a regular expression of 1 to %d bytes", maxPattern)
	}
	compiled, steps, err := tools.Pattern(pattern)
	if err != nil {
		return scanner{}, tools.Errorf(tools.InvalidArgs, "pattern is no regular expression that can be used (RE2, without lookaround and backreferences): %v", err)
	}
	s := scanner{pattern: compiled, steps: steps}
	if literal, all := compiled.LiteralPrefix(); all { // many times faster
		s.literal, s.steps = []byte(literal), 1
	}
	return s, nil
}

// hits tells whether the expression matches in a line.
func (s *scanner) hits(ctx context.Context, line []byte) (bool, error) {
	cost := (len(line) + 1) * s.steps
	if s.taken += cost; s.taken > maxSteps {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		s.taken = cost
	}
	switch {
	case s.literal != nil:
		return bytes.Contains(line, s.literal), nil
	case cost <= maxSteps:
		return s.pattern.Match(line), nil
	}
	s.taken = 0
	in := &interrupted{line: line, ended: ctx.Err, every: max(1, maxSteps/s.steps)}
	hit := s.pattern.MatchReader(in)
	return hit, in.err
}

// An interrupted reads a line character by character, and ends early when the call does.
type interrupted struct {
	line  []byte
	ended func() error
	every int // after how many characters it asks whether the call has ended
	given int
	err   error
}

func (in *interrupted) ReadRune() (r rune, size int, err error) {
	if in.given++; in.given%in.every == 0 {
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
