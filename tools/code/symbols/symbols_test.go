package symbols_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/tools/code/symbols"
)

var update = flag.Bool("update", false, "write the golden files")

// ctagsFixtures are the fixtures that are compared with ctags, one of each language. allFixtures are those and the ones
// that ctags does not understand.
const ctagsFixtures, allFixtures = "testdata/*apes.*", "testdata/*.*"

// fixtures returns files of source code.
func fixtures(t testing.TB, which string) []string {
	t.Helper()
	list, err := filepath.Glob(which)
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return slices.DeleteFunc(list, func(name string) bool { return strings.HasSuffix(name, ".tags") })
}

func read(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name) //nolint:gosec // of the test's own
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestFixturesHaveTheirTags(t *testing.T) {
	t.Parallel()
	finder := symbols.NewFinder()
	seen := map[string]bool{}
	for _, name := range fixtures(t, allFixtures) {
		seen[finder.Language(name)] = true
		var b strings.Builder
		for _, s := range finder.Find(name, read(t, name)) {
			fmt.Fprintf(&b, "%d %s %s %s\n", s.Line, s.Kind, s.Name, s.Container)
		}
		got := strings.ReplaceAll(b.String(), " \n", "\n")
		if *update {
			if err := os.WriteFile(name+".tags", []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want := read(t, name+".tags"); got != want {
			t.Errorf("%s has other symbols; see the difference and run the test with -update:\n%s", name, got)
		}
	}
	for _, language := range symbols.Languages() {
		if !seen[language] {
			t.Errorf("no fixture is of %s", language)
		}
	}
}

// ctagsKinds returns the kinds of ctags that are compared, by language, and the kinds of this package that ctags does
// not have.
func ctagsKinds() map[string][2]string {
	return map[string][2]string{
		"go": {"cfsitvna"}, "python": {"cfmv"}, "javascript": {"fcmgGSCv"}, "typescript": {"cfimngaCv"}, "rust": {"nsigtfPMv", symbols.Const},
		"java": {"acgim", symbols.Const}, "c": {"dgfsutvep"}, "c++": {"cdgfnsutvep"}, "ruby": {"cmfSC"}, "php": {"cfidtn"},
	}
}

// TestCtagsAgrees compares the names and lines that are found with those that universal-ctags finds.
func TestCtagsAgrees(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "ctags", "--version").Output(); err != nil || !strings.Contains(string(out), "Universal Ctags") {
		t.Skip("NOT TESTED: whether universal-ctags finds the same symbols, for want of it")
	}
	finder := symbols.NewFinder()
	for _, name := range fixtures(t, ctagsFixtures) {
		language := finder.Language(name)
		ours := map[string]bool{}
		for _, s := range finder.Find(name, read(t, name)) {
			if s.Kind == ctagsKinds()[language][1] {
				continue
			}
			ours[fmt.Sprintf("%d %s", s.Line, s.Name)] = true
		}
		theirs := ctags(t, name, language)
		agreed := 0
		var missing, more []string
		for tag := range theirs {
			if ours[tag] {
				agreed++
			} else {
				missing = append(missing, tag)
			}
		}
		for tag := range ours {
			if !theirs[tag] {
				more = append(more, tag)
			}
		}
		slices.Sort(missing)
		slices.Sort(more)
		part := float64(agreed) / float64(agreed+max(len(missing), len(more)))
		t.Logf("%s: %d of %d names agree (%.0f %%); only ctags has %q, only we have %q", language, agreed, agreed+len(missing), part*100, missing, more)
		if part < 0.95 || agreed < 10 {
			t.Errorf("%s: only %.0f %% of the names agree", language, part*100)
		}
	}
}

// ctags returns the lines and names that universal-ctags finds in a file.
func ctags(t *testing.T, name, language string) map[string]bool {
	t.Helper()
	option := map[string]string{"c": "C", "c++": "C++", "go": "Go"}[language]
	if option == "" {
		option = language
	}
	c := exec.CommandContext(t.Context(), "ctags", "--options=NONE", "-x", "--_xformat=%n %N", "--kinds-"+option+"="+ctagsKinds()[language][0], name) //nolint:gosec // of the test's own
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		number, symbol, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, err := strconv.Atoi(number); err != nil || strings.HasPrefix(symbol, "__anon") || strings.HasPrefix(symbol, "anonymous") || strings.HasPrefix(symbol, "Anonymous") {
			continue
		}
		symbol = strings.ReplaceAll(symbol, `\\`, `\`)
		if operator, ok := strings.CutPrefix(symbol, "operator "); ok && (operator[0] < 'A' || operator[0] == '[') {
			symbol = "operator" + operator
		}
		tags[number+" "+symbol] = true
	}
	return tags
}

func TestBrokenFiles(t *testing.T) {
	t.Parallel()
	finder := symbols.NewFinder()
	for name, c := range map[string]struct{ src, want string }{
		"a.go":   {"package a\n\nfunc One() {}\n\nfunc Two( {\n\ntype Three struct{}\n", "One Two"},
		"a.py":   {"def one(:\n    x = [\ndef two(): pass\n", "one two"},
		"a.js":   {"function one() { if (\nfunction two() {}\n", "one"},
		"a.c":    {"int one(void) { }}}\nint two(void) { return 0; }\n", "one two"},
		"a.java": {"class One { void two() { \"unclosed\n } void three() {} }", "One two three"},
		"a.rb":   {"class One\n  def two\n", "One two"},
		"a.txt":  {"class One {}", ""},
		"a.rs":   {strings.Repeat("/*", 1000) + "fn one() {}", ""},
	} {
		var got []string
		for _, s := range finder.Find(name, c.src) {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q has %q, want %q", name, c.src, got, c.want)
		}
	}
}

// slowTexts returns texts that a scanner may take long for.
func slowTexts() []string {
	var all []string
	for _, piece := range []string{"{", "a(", "([/", "/", "`${", "<<A\n", "a<", "#if a\n", "x(a) {", "const a = {", "'", "\"", "%w[", "/*", "R\"(", "r#", "class A {", "[[", "@a(", "enum A {", "def a\n", " class A\n", "<?php <<<A\n", "a,", "template <", "=>", "(*"} {
		all = append(all, strings.Repeat(piece, symbols.MaxFile/4/len(piece)))
	}
	return all
}

func TestScannersTakeBoundedTime(t *testing.T) {
	t.Parallel()
	finder := symbols.NewFinder()
	for _, name := range fixtures(t, ctagsFixtures) {
		for _, src := range slowTexts() {
			began := time.Now()
			finder.Find(name, src)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: %.10q… takes %v", name, src, took)
			}
		}
	}
}

func FuzzFind(f *testing.F) {
	finder := symbols.NewFinder()
	names := []string{"a.py", "a.js", "a.ts", "a.rs", "a.java", "a.c", "a.cpp", "a.rb", "a.php", "a.go"}
	for _, name := range fixtures(f, allFixtures) {
		f.Add(read(f, name), uint8(0))
	}
	for which := range names {
		f.Add("echo `date", uint8(which))
	}
	f.Fuzz(func(t *testing.T, src string, which uint8) {
		name := names[int(which)%len(names)]
		lines := strings.Count(src, "\n") + 1
		for _, s := range finder.Find(name, src) {
			if s.Name == "" || s.Line < 1 || s.Line > lines {
				t.Errorf("%s: %+v of %d lines", name, s, lines)
			}
		}
	})
}
