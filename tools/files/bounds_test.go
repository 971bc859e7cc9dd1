package files

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/tools"
)

func TestGlobsAreBounded(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		strings.Repeat("{a,b}", 33):                                                           "too many alternatives",
		"{" + strings.Repeat("a,", 64) + "a}":                                                 "too many alternatives",
		strings.Repeat("{*,{*,{*,{*,{*,{*,{*,{*,{*,{*,{*,{*,{*,", 5):                          "too many alternatives",
		strings.Repeat("{**/*,*", 20) + strings.Repeat("}", 20) + strings.Repeat("{*,*}", 25): "too many alternatives",
		strings.Repeat("a", 1001):                                                             "1 to 1000 bytes",
		"":                                                                                    "1 to 1000 bytes",
		"[a":                                                                                  "not valid", "{a": "not valid", "a}": "not valid", "[]": "not valid", "[b-a]": "not valid", `a\`: "not valid",
	} {
		_, err := compileGlobArg("pattern", pattern, pattern)
		if wrong, ok := errors.AsType[*tools.Error](err); !ok || wrong.Code != tools.InvalidArgs || !strings.Contains(wrong.Message, want) {
			t.Errorf("%.40q gives %v, want %q", pattern, err, want)
		}
	}
	// Each byte of a pattern costs a few steps, however the pieces are nested.
	for _, piece := range []string{"*", "?a", "*/", "**/a/", "[!a-z]", "**"} {
		pattern := strings.Repeat(piece, 200/len(piece))
		compiled, err := compileGlob(pattern)
		if err != nil {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		if _, steps, err := tools.Pattern(compiled.String()); err != nil || steps > 6*len(pattern)+20 {
			t.Errorf("%.20q… of %d bytes takes %d steps for a character, %v", pattern, len(pattern), steps, err)
		}
	}
	deep := strings.Repeat("{a,{b,", 16) + "c" + strings.Repeat("}", 32)
	if compiled, err := compileGlob(deep); err != nil || !compiled.MatchString("c") || !compiled.MatchString("a") || compiled.MatchString("d") {
		t.Errorf("nested braces: %v, %v", compiled, err)
	}
}

func TestGlobsMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern  string
		yes, not string // separated by blanks
	}{
		{"*", "a abc .x ☺", "a/b"},
		{"a*/b", "abc/b", "a/c/b"},
		{"**", "a a/b a/b/c", ""},
		{"**/a", "a b/a c/b/a", "xa b/xa"},
		{"a/**", "a a/b a/b/c", "ab b/a"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb"},
		{"a/**/**/b", "a/b a/x/y/b", "axb"},
		{"a**b", "ab axb axyb", "a/b"},
		{"{*.go,doc/**/*.{md,txt}}", "x.go doc/a.md doc/x/y.txt", "doc/x.go x.md"},
		{"{**/,}x", "x a/x", "ax"},
		{"{a,b}/**", "a b/c", "c"},
		{"a?b", "a☺b axb", "ab a/b axxb"},
		{"[a-ζ]*", "α abc", "A"},
		{"[!a-c]x", "dx", "ax /x"},
		{"[^/]x", "dx", "/x"},
		{"[+-9]x", "+x 1x -x", "/x"},
		{"[x-]", "x -", "z"},
		{`[\]a]`, "] a", `\`},
		{`[\^&~[-]`, "^ & ~ [ -", "a"},
		{`\*\{a`, "*{a", "x{a"},
		{"a,b.c+(d)$", "a,b.c+(d)$", "a,bxc+(d)$"},
		{"[/]", "", "/ a"},
		{"x]", "x]", "x"},
		{"ä*", "ä.txt", "a.txt"},
	} {
		compiled, err := compileGlob(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		for name := range strings.FieldsSeq(c.yes) {
			if !compiled.MatchString(name) {
				t.Errorf("%q does not match %q (%s)", c.pattern, name, compiled)
			}
		}
		for name := range strings.FieldsSeq(c.not) {
			if compiled.MatchString(name) {
				t.Errorf("%q matches %q (%s)", c.pattern, name, compiled)
			}
		}
	}
	if compiled, err := compileGlob("*b"); err != nil || !compiled.MatchString("a\nb") {
		t.Errorf("a name with a line end: %v", err)
	}
}

// An endingContext is a context that ends when Err was called that many times.
type endingContext struct {
	context.Context
	left int
}

func (a *endingContext) Err() error {
	if a.left--; a.left < 0 {
		return context.Canceled
	}
	return nil
}

// A search ends soon after its call has ended, between two lines or within one.
func TestGrepEndsWithItsCall(t *testing.T) {
	t.Parallel()
	large := strings.Repeat(`(\pL?){9}`, 20) + "!"
	for name, c := range map[string]struct {
		pattern, text string
		looks         int // at least, to search all of the text
	}{
		"a long line":  {large, strings.Repeat("ä", 6_000), 8},
		"short lines":  {large, strings.Repeat("äääää\n", 1_500), 20},
		"a small one":  {"a.*b", strings.Repeat("x", 60_000) + "\n", 1},
		"a plain text": {"needle", strings.Repeat(strings.Repeat("y", 50_000)+"\n", 100), 4},
	} {
		s, err := newSearch(grepArgs{Pattern: c.pattern})
		if err != nil {
			t.Fatal(err)
		}
		const plenty = 1 << 30
		ctx := &endingContext{t.Context(), plenty}
		read := func() error {
			return s.searchLines(ctx, bufio.NewReaderSize(cancelableReader(ctx, strings.NewReader(c.text)), maxSearchedLine), "x")
		}
		if err := read(); err != nil || len(s.found) > 0 {
			t.Errorf("%s: found %v, %v", name, s.found, err)
		}
		looks := plenty - ctx.left
		if looks < c.looks {
			t.Errorf("%s: it was looked %d times whether the call is over, want %d", name, looks, c.looks)
		}
		for _, after := range []int{0, looks / 2, looks - 1} {
			ctx.left = after
			if err := read(); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: ended after %d looks it gives %v", name, after, err)
			}
		}
	}
}

// A long line and a short one are searched in different ways, and both give the same matches.
func TestGrepFindsInLongLines(t *testing.T) {
	t.Parallel()
	fill := strings.Repeat("ä", 4_000)
	for pattern, want := range map[string]bool{
		`(\pL?){200}!$`: true, `^` + `(\pL?){200}ä`: true, `(\d?){200}\?$`: false, `(\pL?){200}ä\z`: false,
	} {
		s, err := newScanner(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.matches(t.Context(), []byte(fill+"!")); got != want || err != nil {
			t.Errorf("%s: %v, %v", pattern, got, err)
		}
	}
}

func TestOccurrences(t *testing.T) {
	t.Parallel()
	for range 2000 {
		letters := func(n int) string {
			b := make([]byte, n)
			for i := range b {
				b[i] = "ab"[rand.IntN(2)]
			}
			return string(b)
		}
		in, text := letters(rand.IntN(60)), letters(1+rand.IntN(5))
		var want []int
		for i := range in {
			if strings.HasPrefix(in[i:], text) {
				want = append(want, i)
			}
		}
		if got := occurrences([]byte(in), text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, want %v", text, in, got, want)
		}
	}
	// Comparing anew at each place would take 3 × 10¹² steps.
	if got := len(occurrences([]byte(strings.Repeat("a", 4<<20)), strings.Repeat("a", 3<<20))); got != 1_000_000 {
		t.Errorf("%d occurrences", got)
	}
}
