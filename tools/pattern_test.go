package tools

import (
	"encoding/json"
	"regexp/syntax"
	"strings"
	"testing"
)

func TestPatternsAreBounded(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"a", "", "func [A-Z]", `(?i)todo|fixme`, `^\s*\w+\([^)]*\) \{$`, `[0-9a-f]{64}`, `(?:\d{1,3}\.){3}\d{1,3}`, `x{2,}y{0,3}?z{5}`, `(a|bc|def)*`,
		strings.Repeat("abc|", 200) + "x", `(?:)*`, `\pL{100}`, `(((a?)+)*)?`, `(?:a*)*`, `(?m)^$|\b\B\A\z`, `((x{5}){5}){5}`, `((((a{7}){3}b)?){2})+`,
	} {
		compiled, steps, err := Pattern(text)
		if err != nil || compiled == nil {
			t.Errorf("%.40q is refused: %v", text, err)
			continue
		}
		parsed, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		// A program has two instructions beyond those of the expression: to fail, and to match.
		if len(program.Inst) > steps+2 {
			t.Errorf("%.40q has %d instructions, and is said to have %d", text, len(program.Inst), steps)
		}
	}
	for _, text := range []string{`(\pL?){999}`, strings.Repeat(`(\pL?){99}`, 20), `((a{30}){30}){30}`, `a{1000}b{1000}c{1000}`, `(x+x+){500,}`} {
		if _, _, err := Pattern(text); err == nil || !strings.Contains(err.Error(), "too large") && !strings.Contains(err.Error(), "repeat count") {
			t.Errorf("%.40q is taken: %v", text, err)
		}
	}
	if _, _, err := Pattern("("); err == nil || !strings.Contains(err.Error(), "missing closing )") {
		t.Errorf("what is wrong with ( is said so: %v", err)
	}
}

// Patterns in the schema of a foreign tool are bounded, too.
func TestPatternsOfSchemasAreBounded(t *testing.T) {
	t.Parallel()
	for pattern, fine := range map[string]bool{`^[a-z]{2,40}$`: true, `(\\pL?){999}`: false} {
		_, err := compileSchema(json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","pattern":"` + pattern + `"}}}`))
		if (err == nil) != fine {
			t.Errorf("a schema with the pattern %s: %v", pattern, err)
		}
	}
}
