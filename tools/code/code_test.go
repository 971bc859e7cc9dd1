package code_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/code"
	"parley/tools/files"
	"parley/tools/guard"
	"parley/tools/knowledge"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write the golden files")

var args = toolstest.Args

// newCaller returns a caller of the tools for code and files over a session's real directory, and the directory.
func newCaller(t testing.TB) (c *toolstest.Caller, dir string) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "workspaces")})
	must(t, err)
	t.Cleanup(func() { must(t, all.Close()) })
	var held code.Indexes
	open := func(_ context.Context, call tools.Call) (files.Dir, error) {
		return all.Open(call.Session)
	}
	c = toolstest.New(append(code.New(open, &held), files.New(open, nil)...)...)
	d, err := all.Open(c.Call.Session)
	must(t, err)
	return c, d.Path()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t testing.TB, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

// searchMatches makes a search and returns its matches as PATH:LINE KIND.
func searchMatches(t testing.TB, c *toolstest.Caller, pairs ...any) string {
	t.Helper()
	var result struct {
		Matches []struct {
			Path, Kind string
			Line       int
		}
		Count int
	}
	must(t, json.Unmarshal([]byte(c.Want(t, "code_search", args(pairs...), "")), &result))
	var list []string
	for _, m := range result.Matches {
		list = append(list, fmt.Sprintf("%s:%d %s", m.Path, m.Line, m.Kind))
	}
	if result.Count != len(list) {
		t.Errorf("%v: the count is %d of %d", pairs, result.Count, len(list))
	}
	return strings.Join(list, ", ")
}

// wantMatches checks the matches of a search.
func wantMatches(t testing.TB, c *toolstest.Caller, want string, pairs ...any) {
	t.Helper()
	if got := searchMatches(t, c, pairs...); got != want {
		t.Errorf("%v finds\n%s\nwant\n%s", pairs, got, want)
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	held := &code.Indexes{}
	c := toolstest.New(code.New(func(context.Context, tools.Call) (files.Dir, error) { return nil, fs.ErrNotExist }, held)...)
	c.Golden(t, "testdata/specs.json")
}

func TestTheBestMatchComesFirst(t *testing.T) {
	t.Parallel()
	c, dir := newCaller(t)
	writeFile(t, dir, "a.go", "package a\n\n// read it\ntype reader struct{}\n\nfunc (r reader) Read() {}\nfunc readAll() {}\nfunc forRead() {}\nfunc spread() {}\nvar read = 1\n")
	writeFile(t, dir, "a_test.go", "package a\n\nfunc Read() {}\n")
	writeFile(t, dir, "b.py", "class Reader:\n    def read(self): pass\n\ndef read_all(): pass\n# Read\n")
	writeFile(t, dir, "notes.txt", "how to read\nREAD me\n")
	wantMatches(t, c, "b.py:2 method, a.go:10 var, a.go:6 method, a_test.go:3 func, a.go:4 struct, b.py:1 class, a.go:7 func, b.py:4 func, a.go:8 func, a.go:9 func",
		"query", "read", "kind", "symbol")
	wantMatches(t, c, "a.go:6 method, a_test.go:3 func, b.py:2 method, a.go:10 var, a.go:4 struct, b.py:1 class, a.go:7 func, b.py:4 func, a.go:8 func, a.go:9 func, b.py:5 text",
		"query", "Read")
	wantMatches(t, c, "b.py:2 method", "query", "Reader.read", "language", "py", "kind", "symbol")
	wantMatches(t, c, "a.go:6 method", "query", "(*reader).Read", "kind", "symbol", "language", "golang")
	wantMatches(t, c, "a.go:7 func, b.py:4 func", "query", "readAll", "kind", "symbol")
	wantMatches(t, c, "a.go:7 func, b.py:4 func", "query", "^read_?[aA]ll$", "regexp", true, "kind", "symbol")
	wantMatches(t, c, "notes.txt:1 text", "query", `how.*read$`, "regexp", true)
	wantMatches(t, c, "notes.txt:1 text, notes.txt:2 text", "query", "read", "kind", "text", "path", "notes.txt")
	wantMatches(t, c, "notes.txt:2 text", "query", "READ", "kind", "text", "path", "notes.txt")
	wantMatches(t, c, "", "query", "nowhere")
	writeFile(t, dir, "deeply/nested/c.rb", "def Only; end\n")
	writeFile(t, dir, "c_test.go", "package a\n\nfunc Only() {}\n")
	wantMatches(t, c, "deeply/nested/c.rb:1 func, c_test.go:3 func", "query", "only", "kind", "symbol")
	c.Want(t, "code_search", args("query", "readAll", "limit", 1),
		`{"matches":[{"path":"a.go","line":7,"kind":"func","name":"readAll","text":"func readAll() {}"}],"count":1,"truncated":"1 more symbols match: narrow the search, or raise limit"}`)
	c.Want(t, "code_search", args("query", "spread"),
		`{"matches":[{"path":"a.go","line":9,"kind":"func","name":"spread","text":"func spread() {}"}],"count":1}`)
	c.Want(t, "code_search", args("query", "Reader.Read", "language", "python", "kind", "symbol"),
		`{"matches":[{"path":"b.py","line":2,"kind":"method","name":"read","container":"Reader","text":"def read(self): pass"}],"count":1}`)
}

func TestInvalidSearches(t *testing.T) {
	t.Parallel()
	c, dir := newCaller(t)
	writeFile(t, dir, "a.go", "package a\n")
	c.WantError(t, "code_search", args("query", " "), tools.InvalidArgs, "query")
	c.WantError(t, "code_search", args("query", strings.Repeat("x", 501)), tools.InvalidArgs, "500")
	c.WantError(t, "code_search", args("query", "(", "regexp", true), tools.InvalidArgs, "RE2")
	c.WantError(t, "code_search", args("query", "x", "language", "cobol"), tools.InvalidArgs, "python")
	c.WantError(t, "code_search", args("query", "x", "kind", "file"), tools.InvalidArgs, "kind")
	c.WantError(t, "code_search", args("query", "x", "path", "missing"), tools.FileNotFound)
	for _, tool := range []string{"code_search", "code_map"} {
		given := args("path", "../other")
		if tool == "code_search" {
			given = args("path", "../other", "query", "x")
		}
		c.WantError(t, tool, given, tools.InvalidPath)
	}
	c.WantError(t, "code_map", args("depth", -1), tools.InvalidArgs, "depth")
}

func TestIgnoredFilesAreLeftOut(t *testing.T) {
	t.Parallel()
	c, dir := newCaller(t)
	outside := t.TempDir()
	writeFile(t, outside, "secret.go", "package secret\n\nfunc Wanted() {}\n")
	writeFile(t, dir, ".gitignore", "/gen/\n")
	writeFile(t, dir, "gen/a.go", "package gen\n\nfunc Wanted() {}\n")
	writeFile(t, dir, "node_modules/p/a.js", "function Wanted() {}\n")
	writeFile(t, dir, ".git/a.go", "package git\n\nfunc Wanted() {}\n")
	writeFile(t, dir, "binary.c", "int Wanted(void) { return 0; }\n\x00")
	writeFile(t, dir, "huge.c", "int Wanted(void) { return 0; }\n"+strings.Repeat("// x\n", 250_000))
	writeFile(t, dir, "linked.c", "int Wanted(void) { return 0; }\n")
	must(t, os.Link(filepath.Join(dir, "linked.c"), filepath.Join(outside, "linked.c")))
	must(t, os.Symlink(outside, filepath.Join(dir, "out")))
	must(t, os.Symlink(filepath.Join(outside, "secret.go"), filepath.Join(dir, "out.go")))
	c.Want(t, "code_search", args("query", "Wanted"),
		`{"matches":[],"count":0,"truncated":"files of more than 1 MB (1 of them) were not searched: use grep","ignored":"ignored files were not searched: pass ignored=true"}`)
	wantMatches(t, c, "gen/a.go:3 func, node_modules/p/a.js:1 func", "query", "Wanted", "ignored", true)
	wantMatches(t, c, "gen/a.go:3 func", "query", "Wanted", "path", "gen")
	c.WantError(t, "code_search", args("query", "Wanted", "path", "out"), tools.InvalidPath)
}

func TestTheIndexFollowsTheFiles(t *testing.T) {
	t.Parallel()
	c, dir := newCaller(t)
	writeFile(t, dir, "a.go", "package a\n\nfunc One() {}\n")
	writeFile(t, dir, "b/b.go", "package b\n\nfunc Same() {}\n")
	wantMatches(t, c, "a.go:3 func", "query", "One")
	writeFile(t, dir, "a.go", "package a\n\nfunc Two() {}\n") // as long, and perhaps written at the same time
	wantMatches(t, c, "a.go:3 func", "query", "Two")
	wantMatches(t, c, "", "query", "One", "kind", "symbol")
	long := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, "a.go"), long, long))
	wantMatches(t, c, "a.go:3 func", "query", "Two")
	c.Want(t, "write_file", args("path", "./b/../a.go", "content", "package a\n\nfunc Six() {}\n"), "")
	must(t, os.Chtimes(filepath.Join(dir, "a.go"), long, long)) // its size and time are as before
	wantMatches(t, c, "a.go:3 func", "query", "Six", "kind", "symbol")
	c.Want(t, "edit_file", args("path", "a.go", "old_text", "Six", "new_text", "Ten"), "")
	must(t, os.Chtimes(filepath.Join(dir, "a.go"), long, long))
	wantMatches(t, c, "a.go:3 func", "query", "Ten", "kind", "symbol")
	now := time.Now() // a command may write twice within the file system's resolution
	must(t, os.Chtimes(filepath.Join(dir, "a.go"), now, now))
	wantMatches(t, c, "a.go:3 func", "query", "Ten", "kind", "symbol")
	writeFile(t, dir, "a.go", "package a\n\nfunc Two() {}\n")
	must(t, os.Chtimes(filepath.Join(dir, "a.go"), now, now))
	wantMatches(t, c, "a.go:3 func", "query", "Two", "kind", "symbol")
	must(t, os.Remove(filepath.Join(dir, "a.go")))
	wantMatches(t, c, "", "query", "Ten")
	wantMatches(t, c, "b/b.go:3 func", "query", "Same", "path", "b")
	must(t, os.RemoveAll(filepath.Join(dir, "b")))
	wantMatches(t, c, "", "query", "Same")
	writeFile(t, dir, "new/c.rb", "def same; end\n")
	wantMatches(t, c, "new/c.rb:1 func", "query", "Same", "kind", "symbol")
}

// A memoryDir is a directory of files in memory that counts how many are opened.
type memoryDir struct {
	fstest.MapFS
	opened *atomic.Int64
	slow   time.Duration
}

func (d memoryDir) Name(path string) (string, error) { return path, nil }

func (d memoryDir) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, ".go") {
		d.opened.Add(1)
		time.Sleep(d.slow)
	}
	return d.MapFS.Open(name)
}

func newMemoryCaller(t *testing.T, d memoryDir) *toolstest.Caller {
	t.Helper()
	return toolstest.New(code.New(func(context.Context, tools.Call) (memoryDir, error) { return d, nil }, &code.Indexes{})...)
}

func TestAFileIsReadOnce(t *testing.T) {
	t.Parallel()
	d := memoryDir{fstest.MapFS{}, &atomic.Int64{}, 0}
	for i := range 50 {
		d.MapFS[fmt.Sprintf("p%d/a.go", i)] = &fstest.MapFile{Data: []byte("package p\n\nfunc Same() {}\n"), ModTime: time.Now().Add(-time.Hour)}
	}
	c := newMemoryCaller(t, d)
	wantMatches(t, c, "", "query", "other", "kind", "symbol")
	wantMatches(t, c, "", "query", "other", "kind", "symbol")
	if n := d.opened.Load(); n != 50 {
		t.Errorf("50 files were opened %d times", n)
	}
}

func TestWhenTheIndexIsCut(t *testing.T) {
	t.Parallel()
	many := memoryDir{fstest.MapFS{}, &atomic.Int64{}, 0}
	for i := range 20_001 {
		many.MapFS[fmt.Sprintf("%d.txt", i)] = &fstest.MapFile{}
	}
	if got := newMemoryCaller(t, many).Want(t, "code_search", args("query", "x", "kind", "symbol"), ""); !strings.Contains(got, "only 20000 files were searched: there are more than 20000 files; give a path") {
		t.Errorf("of 20,001 files it says %s", got)
	}
	large := memoryDir{fstest.MapFS{}, &atomic.Int64{}, 0}
	text := []byte(strings.Repeat("// nothing\n", 46_000))
	for i := range 140 {
		large.MapFS[fmt.Sprintf("%d.php", i)] = &fstest.MapFile{Data: text}
	}
	synctest.Test(t, func(t *testing.T) { // where reading takes no time
		if got := newMemoryCaller(t, large).Want(t, "code_search", args("query", "x", "kind", "symbol"), ""); !strings.Contains(got, "there is more than 64 MB of source code; give a path") {
			t.Errorf("of 70 MB it says %s", got)
		}
		time.Sleep(time.Hour)
	})
}

// Files that only an earlier call has searched make room for those of the next call.
func TestAFullIndexMakesRoom(t *testing.T) {
	t.Parallel()
	dir := memoryDir{fstest.MapFS{"src/kettle.php": {Data: []byte("<?php\nfunction kettle() {}\n")}}, &atomic.Int64{}, 0}
	var text strings.Builder
	text.WriteString("<?php\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "function pot%d() {}\n", i)
	}
	for i := range 45 {
		dir.MapFS[fmt.Sprintf("large/%d.php", i)] = &fstest.MapFile{Data: []byte(text.String())}
	}
	synctest.Test(t, func(t *testing.T) { // where reading takes no time
		c := newMemoryCaller(t, dir)
		if got := c.Want(t, "code_search", args("query", "kettle", "kind", "symbol"), ""); !strings.Contains(got, "they declare more than 200000 symbols") {
			t.Errorf("of 225,000 symbols it says %s", got)
		}
		if got := c.Want(t, "code_search", args("query", "kettle", "kind", "symbol", "path", "src"), ""); !strings.Contains(got, "kettle.php") || strings.Contains(got, "were searched") {
			t.Errorf("of one file, after many, it says %s", got)
		}
		time.Sleep(time.Hour)
	})
}

func TestASlowIndexGoesOnWithTheNextCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := memoryDir{fstest.MapFS{}, &atomic.Int64{}, 50 * time.Millisecond}
		for i := range 60 {
			d.MapFS[fmt.Sprintf("a%02d.go", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "package p\n\nfunc F%02d() {}\n", i), ModTime: time.Now().Add(-time.Hour)}
		}
		c := newMemoryCaller(t, d)
		if got := c.Want(t, "code_search", args("query", "F59", "kind", "symbol"), ""); !strings.Contains(got, `"matches":[],"count":0,"truncated":"only 41 files were searched: reading the source code takes longer than 2s`) {
			t.Errorf("the first call says %s", got)
		}
		wantMatches(t, c, "a59.go:3 func", "query", "F59", "kind", "symbol")
		time.Sleep(time.Hour) // the timer has dropped the index, and nothing is left
		synctest.Wait()
		if got := c.Want(t, "code_search", args("query", "F59", "kind", "symbol"), ""); !strings.Contains(got, "only 41 files") {
			t.Errorf("after an hour it says %s", got)
		}
		time.Sleep(time.Hour)
	})
}

func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	c, dir := newCaller(t)
	for i := range 20 {
		writeFile(t, dir, fmt.Sprintf("a%d.go", i), "package a\n\nfunc Same() {}\n")
	}
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			own := *c
			own.Call.Session = fmt.Sprintf("main:telegram:%d", 42+i%30)
			if i%30 == 0 {
				wantMatches(t, &own, "a0.go:3 func", "query", "Same", "limit", 1)
			}
			own.Want(t, "write_file", args("path", fmt.Sprintf("b%d.go", i), "content", "package a\n"), "")
			own.Want(t, "code_map", args(), "")
		})
	}
	group.Wait()
}

func TestKnowledgeFilesAreSearched(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFile(t, folder, "tool.py", "def deploy(): pass\n")
	base, err := knowledge.Open(folder)
	must(t, err)
	t.Cleanup(func() { must(t, base.Close()) })
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, all.Close()) })
	c := toolstest.New(code.New(func(_ context.Context, call tools.Call) (code.Dir, error) {
		d, err := all.Open(call.Session)
		return base.Overlay(d), err
	}, &code.Indexes{})...)
	wantMatches(t, c, "knowledge/tool.py:1 func", "query", "deploy")
	wantMatches(t, c, "knowledge/tool.py:1 func", "query", "deploy", "path", "knowledge")
}

func TestMarkedFilesGiveUntrustedResults(t *testing.T) {
	t.Parallel()
	all, err := workspace.New(workspace.Config{Root: t.TempDir()})
	must(t, err)
	t.Cleanup(func() { must(t, all.Close()) })
	d, err := all.Open("main:telegram:42")
	must(t, err)
	marker := guard.Marker{Open: func(context.Context, tools.Call) (guard.Dir, error) { return d, nil }}
	list := marker.Watch(code.New(func(context.Context, tools.Call) (*workspace.Dir, error) { return d, nil }, &code.Indexes{}))
	must(t, d.Write("a.py", []byte("def one(): pass\n")))
	for _, want := range []bool{false, true} {
		for _, tool := range list {
			call := tools.Call{Session: "main:telegram:42", Name: tool.Spec().Name, Args: []byte(`{"query":"one"}`), Touches: tool.Spec().Touches}
			if call.Name == "code_map" {
				call.Args = []byte(`{}`)
			}
			result, err := tool.Run(t.Context(), call)
			if err != nil || result.Untrusted != want || tool.Spec().Effect != tools.Pure || call.Touch().MayWrite() {
				t.Errorf("%s: untrusted is %v, want %v, %v", call.Name, result.Untrusted, want, err)
			}
		}
		must(t, guard.ChangeMarks(d, false, []string{"a.py"}, nil))
	}
}

func TestMap(t *testing.T) {
	t.Parallel()
	c, dir := newCaller(t)
	writeFile(t, dir, "README.md", "<p>\n\n# Tea *house*\n\nMore.\n")
	writeFile(t, dir, "go.mod", "module tea\n")
	writeFile(t, dir, "cmd/tea/main.go", "package main\n\nfunc main() {}\n")
	writeFile(t, dir, "pot/pot.go", "package pot\n\nfunc helper() {}\n\nfunc Brew() {}\n\ntype Lid struct{}\n\ntype Pot struct{}\n\nfunc (Pot) Fill() {}\n")
	writeFile(t, dir, "pot/pot_test.go", "package pot\n\nfunc TestPot() {}\n")
	writeFile(t, dir, "pot/deep/er/still.go", "package still\n\ntype Deepest int\n")
	writeFile(t, dir, "web/index.ts", "export class View { render() {} }\n")
	writeFile(t, dir, "node_modules/x/index.js", "class Hidden {}\n")
	c.Want(t, "code_map", args(), `{"map":"README.md: Tea *house*\nStarts in: web/index.ts, cmd/tea/main.go\n`+
		`. 7 files (4 go, 1 typescript)\n  cmd/ 1 file (1 go)\n    tea/ 1 file (1 go): main\n  pot/ 3 files (3 go): Pot, Lid, Brew, helper\n    deep/ 1 file (1 go): Deepest\n  web/ 1 file (1 typescript): View\n"}`)
	c.Want(t, "code_map", args("path", "pot", "depth", 1), `{"map":". 3 files (3 go): Pot, Lid, Brew, helper\n  deep/ 1 file (1 go): Deepest\n"}`)
	for i := range 300 {
		writeFile(t, dir, fmt.Sprintf("big/folder%03d/sub/a.py", i), strings.Repeat("class LongNameOfAClass:\n    pass\n", 3))
	}
	for _, depth := range []int{1, 2, 6} {
		got := c.Want(t, "code_map", args("depth", depth), "")
		var result struct{ Map string }
		must(t, json.Unmarshal([]byte(got), &result))
		if len(result.Map) > 4096 || !strings.Contains(result.Map, "big/ 300 files (300 python)") {
			t.Errorf("with depth %d the map has %d bytes:\n%s", depth, len(result.Map), result.Map)
		}
	}
	for i := range 300 {
		writeFile(t, dir, fmt.Sprintf("folder%03d/a.py", i), "")
	}
	var result struct{ Map string }
	must(t, json.Unmarshal([]byte(c.Want(t, "code_map", args(), "")), &result))
	if lines := strings.Split(result.Map, "\n"); len(result.Map) > 4096 || !slices.Contains(lines, "…") {
		t.Errorf("a map of 300 folders has %d bytes:\n%s", len(result.Map), result.Map)
	}
}
