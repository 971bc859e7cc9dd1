package tools

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// maxPatternSteps limits the size of a regular expression, in steps, after its repetitions are
// expanded: matching takes at most that many steps for each character of a text.
const maxPatternSteps = 2000

// Pattern compiles a regular expression that a model or another program wrote. It refuses a large
// one before compiling it: (\pL?){999} is ten characters long, but costs a thousand times as much
// as a small one. It also returns the size in steps: matching takes at most that many for each
// character of a text.
func Pattern(text string) (compiled *regexp.Regexp, steps int, err error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	if steps = stepsOf(parsed); steps > maxPatternSteps {
		return nil, 0, fmt.Errorf("it is too large: %d steps when its repetitions are written out, at most %d are allowed; give smaller counts in {…}, or * and +", steps, maxPatternSteps)
	}
	compiled, err = regexp.Compile(text)
	return compiled, steps, err
}

// stepsOf returns an upper limit for the number of instructions that an expression compiles to. The
// parser already limits its depth and its repetitions.
func stepsOf(re *syntax.Regexp) int {
	const plenty = 1 << 30 // the sum stops growing here, so that it doesn't overflow
	sum := 2
	if re.Op == syntax.OpLiteral {
		sum = len(re.Rune)
	}
	for _, sub := range re.Sub {
		sum = min(sum+stepsOf(sub), plenty)
	}
	if re.Op == syntax.OpRepeat {
		sum = min(sum*max(re.Max, re.Min+1), plenty)
	}
	return sum
}
