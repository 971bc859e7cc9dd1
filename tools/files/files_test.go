package files_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write the golden files")

var args = toolstest.Args

// newCaller returns a caller of the tools over a session's real directory, and the directory.
func newCaller(t testing.TB) (c *toolstest.Caller, dir string) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "workspaces")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	})
	c = toolstest.New(files.New(func(_ context.Context, call tools.Call) (files.Dir, error) { return all.Open(call.Session) }, nil)...)
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

func TestGolden(t *testing.T) {
	c, _ := newCaller(t)
	c.Golden(t, "testdata/specs.json")
}

func TestReadFile(t *testing.T) {
	c, dir := newCaller(t)
	writeFile(t, dir, "a.txt", "one\ntwo\nthree\nfour")
	writeFile(t, dir, "ends.txt", "one\ntwo\n")
	writeFile(t, dir, "empty", "")
	writeFile(t, dir, "odd.txt", "caf\xe9 <&>\r\n")
	writeFile(t, dir, "late.txt", strings.Repeat("x", 10_000)+"\x00end")
	writeFile(t, dir, "wide.txt", strings.Repeat("w", 64<<10)+"\nnext\n")
	for given, want := range map[string]string{
		args("path", "a.txt"):                                     "one\ntwo\nthree\nfour",
		args("path", "./sub/../a.txt", "offset", 0):               "one\ntwo\nthree\nfour",
		args("path", dir+"/a.txt", "offset", 1, "limit", 1):       "one\n",
		args("path", "a.txt", "offset", 2, "limit", 2):            "two\nthree\n",
		args("path", "a.txt", "offset", 4):                        "four",
		args("path", "a.txt", "offset", 4, "limit", int64(1<<62)): "four",
		args("path", "a.txt", "offset", "3", "limit", "1"):        "three\n",
		args("path", "ends.txt", "offset", 2):                     "two\n",
		args("path", "empty"):                                     "",
		args("path", "odd.txt"):                                   "caf\uFFFD <&>\r\n",
		args("path", "late.txt"):                                  strings.Repeat("x", 10_000) + "\uFFFDend",
		args("path", "wide.txt", "offset", 2):                     "next\n",
		args("path", "wide.txt", "limit", 1):                      strings.Repeat("w", 64<<10) + "\n",
		args("path", "a.txt", "offset", nil, "limit", nil):        "one\ntwo\nthree\nfour",
		"```json\n" + args("path", "a.txt", "limit", 1) + "```":   "one\n",
	} {
		raw := c.Want(t, "read_file", given, "")
		var got struct{ Content string }
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got.Content != want {
			t.Errorf("read_file %s gave %.200q, %v; want %.200q", given, got.Content, err, want)
		}
	}
	c.WantError(t, "read_file", args("path", "missing"), tools.FileNotFound, "missing", "list_directory")
	c.WantError(t, "read_file", args("path", "a.txt", "offset", 5), tools.InvalidArgs, "4 lines")
	c.WantError(t, "read_file", args("path", "ends.txt", "offset", 3), tools.InvalidArgs, "2 lines")
	c.WantError(t, "read_file", args("path", "a.txt", "offset", -1), tools.InvalidArgs, "from 1")
	c.WantError(t, "read_file", args("path", "."), tools.InvalidPath, "directory")
	c.WantError(t, "read_file", args("file", "a.txt"), tools.InvalidArgs, "path")
	c.WantError(t, "read_file", args(), tools.InvalidArgs, `"path" is missing`)
}

func TestBinary(t *testing.T) {
	c, dir := newCaller(t)
	writeFile(t, dir, "logo.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	writeFile(t, dir, "noise", strings.Repeat("\xfe\xfd\xfca", 1000))
	writeFile(t, dir, "cut.txt", strings.Repeat("x", 8191)+"ä and more")
	c.WantError(t, "read_file", args("path", "logo.png"), tools.ExecutionFailed, "image/png", "16 bytes")
	c.WantError(t, "read_file", args("path", "noise"), tools.ExecutionFailed, "isn't text")
	c.Want(t, "read_file", args("path", "cut.txt"), "")
	c.Want(t, "grep", args("pattern", "IHDR|a"), `{"matches":[{"path":"cut.txt","line":1,"text":"`+strings.Repeat("x", 400)+`…"}],"count":1}`)
}

// TestHuge reads files that are far larger than memory: a sparse one of a tebibyte, and a log of 200 MB.
func TestHuge(t *testing.T) {
	c, dir := newCaller(t)
	writeFile(t, dir, "sparse", "")
	must(t, os.Truncate(filepath.Join(dir, "sparse"), 1<<40))
	log, err := os.Create(filepath.Join(dir, "log.txt"))
	must(t, err)
	line := strings.Repeat("x", 199) + "\n"
	chunk := strings.Repeat(line, 5000)
	for range 200 { // 200 MB
		_, err := log.WriteString(chunk)
		must(t, err)
	}
	must(t, log.Close())

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	c.WantError(t, "read_file", args("path", "sparse"), tools.ExecutionFailed, "1099511627776", "offset and limit", "grep")
	c.WantError(t, "read_file", args("path", "sparse", "limit", 10), tools.ExecutionFailed, "isn't text")
	c.WantError(t, "edit_file", args("path", "sparse", "old_text", "a", "new_text", "b"), tools.ExecutionFailed, "1099511627776")
	if took := time.Since(start); took > time.Second {
		t.Errorf("the sparse file took %v", took)
	}
	c.Want(t, "grep", args("pattern", "y"), `{"matches":[],"count":0}`)
	c.Want(t, "read_file", args("path", "log.txt", "offset", 900_000, "limit", 1), `{"content":"`+strings.Repeat("x", 199)+`\n"}`)
	c.WantError(t, "read_file", args("path", "log.txt"), tools.ExecutionFailed, "200000000 bytes")
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
		t.Errorf("%d MB were allocated on the way", grown>>20)
	}
	c.WantError(t, "read_file", args("path", "log.txt", "limit", 500_000), tools.ExecutionFailed, "lower limit")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range [][2]string{{"grep", args("pattern", "y")}, {"glob", args("pattern", "*")}, {"read_file", args("path", "log.txt", "limit", 1)}} {
		if _, err := c.Try(ctx, call[0], call[1]); err == nil || !strings.Contains(err.Error(), "canceled") {
			t.Errorf("%s goes on after the turn was stopped: %v", call[0], err)
		}
	}
}

func TestWriteFile(t *testing.T) {
	c, dir := newCaller(t)
	c.Want(t, "write_file", args("path", "a/b/c.txt", "content", "häh"), `{"message":"Successfully wrote 4 bytes to a/b/c.txt"}`)
	c.Want(t, "write_file", args("path", "a/b/c.txt", "content", ""), `{"message":"Successfully wrote 0 bytes to a/b/c.txt"}`)
	if got, err := os.ReadFile(filepath.Join(dir, "a/b/c.txt")); err != nil || len(got) != 0 {
		t.Errorf("the file holds %q, %v", got, err)
	}
	c.WantError(t, "write_file", args("path", "a/b", "content", ""), tools.InvalidPath, "directory")
	c.WantError(t, "write_file", args("path", "a/b/c.txt/d", "content", ""), tools.InvalidPath, "not a directory")
	c.WantError(t, "write_file", args("path", "x"), tools.InvalidArgs, "content")
	c.WantError(t, "write_file", args("path", "", "content", ""), tools.InvalidPath, "empty")
}

func TestQuota(t *testing.T) {
	all, err := workspace.New(workspace.Config{Root: t.TempDir(), MaxBytes: 8192})
	must(t, err)
	defer all.Close()
	c := toolstest.New(files.New(func(_ context.Context, call tools.Call) (files.Dir, error) { return all.Open(call.Session) }, nil)...)
	c.WantError(t, "write_file", args("path", "a", "content", strings.Repeat("x", 8193)), tools.ExecutionFailed, "full", "8192")
	c.Want(t, "write_file", args("path", "a", "content", strings.Repeat("x", 8192)), "")
	c.WantError(t, "edit_file", args("path", "a", "old_text", strings.Repeat("x", 8192), "new_text", strings.Repeat("y", 8193)), tools.ExecutionFailed, "full")
	c.WantError(t, "write_file", args("path", strings.Repeat("d/", 32)+"a", "content", ""), tools.InvalidPath, "33 names", "at most 32")
}

// TestEscapes tries to get out of the workspace with every tool, or to block on a file in it.
func TestEscapes(t *testing.T) {
	c, dir := newCaller(t)
	outside := t.TempDir()
	writeFile(t, outside, "secret", "secret")
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Symlink(filepath.Join(outside, "secret"), in("file")))
	must(t, os.Symlink(outside, in("dir")))
	must(t, os.Symlink(filepath.Join(outside, "new"), in("dangling")))
	must(t, os.Link(filepath.Join(outside, "secret"), in("hard")))
	must(t, syscall.Mkfifo(in("pipe"), 0o600))
	t.Chdir(dir)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "socket")
	must(t, err)
	defer l.Close()
	paths := []string{
		"../secret", "..", "a/../../secret", "/etc/passwd", dir + "-evil/x", "file", "file/", "dir/secret", "dir/new/deep", "dangling",
		"hard", "pipe", "socket", "a\x00b", strings.Repeat("n", 300), strings.Repeat("d/", 5000) + "x", "~/x",
	}
	for _, path := range paths {
		c.WantError(t, "read_file", args("path", path), tools.InvalidPath)
		c.WantError(t, "write_file", args("path", path, "content", "evil"), tools.InvalidPath)
		c.WantError(t, "edit_file", args("path", path, "old_text", "secret", "new_text", "evil"), tools.InvalidPath)
		c.WantError(t, "list_directory", args("path", path), tools.InvalidPath)
	}
	for _, path := range []string{"..", "../x", "/etc", "dir", "dir/", "a\x00b"} {
		c.WantError(t, "glob", args("path", path, "pattern", "*"), tools.InvalidPath)
		c.WantError(t, "grep", args("path", path, "pattern", "secret"), tools.InvalidPath)
	}
	c.WantError(t, "glob", args("pattern", "../*"), tools.InvalidPath)
	c.WantError(t, "glob", args("pattern", "/etc/*"), tools.InvalidPath)
	c.Want(t, "glob", args("pattern", "**/secret"), `{"matches":[],"count":0}`)
	c.Want(t, "grep", args("pattern", "secret"), `{"matches":[],"count":0}`)
	c.Want(t, "list_directory", args("path", "."), `{"entries":[{"name":"dangling","is_dir":false,"size":0},{"name":"dir","is_dir":false,"size":0},`+
		`{"name":"file","is_dir":false,"size":0},{"name":"hard","is_dir":false,"size":6},{"name":"pipe","is_dir":false,"size":0},{"name":"socket","is_dir":false,"size":0}]}`)
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("something was made outside: %v, %v", entries, err)
	}
	if got, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(got) != "secret" {
		t.Errorf("the file outside became %q, %v", got, err)
	}
}

func TestEditFile(t *testing.T) {
	c, dir := newCaller(t)
	edit := func(content, from, to string) string {
		writeFile(t, dir, "f", content)
		return args("path", "f", "old_text", from, "new_text", to)
	}
	c.Want(t, "edit_file", edit("a\xffb $1 c", "b", "$0"), `{"message":"Successfully edited f"}`)
	if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != "a\xff$0 $1 c" {
		t.Errorf("the file became %q, %v", got, err)
	}
	c.WantError(t, "edit_file", edit("abc", "x", "y"), tools.InvalidArgs, "does not occur")
	c.WantError(t, "edit_file", edit("a b a b a", "a", "y"), tools.InvalidArgs, "3 times")
	c.WantError(t, "edit_file", edit("aaa", "aa", "y"), tools.InvalidArgs, "2 times")
	c.WantError(t, "edit_file", edit("a\r\nb", "a\nb", "y"), tools.InvalidArgs, `\r\n`)
	c.WantError(t, "edit_file", edit("abc", "", "y"), tools.InvalidArgs, "empty")
	c.WantError(t, "edit_file", edit("abc", "b", "b"), tools.InvalidArgs, "same")
	c.WantError(t, "edit_file", args("path", "missing", "old_text", "a", "new_text", "b"), tools.FileNotFound, "write_file")
	c.WantError(t, "edit_file", args("path", "f", "old_text", "a"), tools.InvalidArgs, "new_text")
}

// TestEditIsFoundAgain asks, after an interruption, whether an edit was made. The file before the edit must never be
// taken for the one after it, or the other way round.
func TestEditIsFoundAgain(t *testing.T) {
	c, dir := newCaller(t)
	for _, edit := range []struct{ content, from, to string }{
		{"one two three", "two", "2"},
		{"one two three", "two", "two and a half"}, // new_text contains old_text
		{"one two three", "two ", ""},
		{"f(x)", "x", "x, x"},
		{"aabb", "ab", "b a"},
		{"xaby", "ab", "aab"}, // after the edit, old_text occurs again because of the text around it
		{"x = 1; y = 2", "x = 1", "y = 2"},
		{"line\nline2\n", "line2\n", "line2\nline3\n"},
	} {
		writeFile(t, dir, "f", edit.content)
		given := args("path", "f", "old_text", edit.from, "new_text", edit.to)
		if _, done, err := c.Reconcile(t, "edit_file", given); done || err != nil {
			t.Errorf("%q: before the edit it counts as made: %v, %v", edit, done, err)
		}
		want := c.Want(t, "edit_file", given, "")
		got, done, err := c.Reconcile(t, "edit_file", given)
		if err == nil && !done {
			t.Errorf("%q: after the edit it would be made again", edit)
		}
		if done && got != want {
			t.Errorf("%q: found again it gives %s, want %s", edit, got, want)
		}
	}
	writeFile(t, dir, "f", "one 2 three")
	if _, done, err := c.Reconcile(t, "edit_file", args("path", "f", "old_text", "two", "new_text", "2")); !done || err != nil {
		t.Errorf("a plain edit is not found again: %v, %v", done, err)
	}
	for _, wrong := range []string{args("path", "missing", "old_text", "a", "new_text", "b"), args("path", "f", "old_text", "nine", "new_text", "9"), args("path", "../f", "old_text", "a", "new_text", "b")} {
		if _, done, err := c.Reconcile(t, "edit_file", wrong); done || err != nil {
			t.Errorf("what can never have been made is to be run and to fail: %s: %v, %v", wrong, done, err)
		}
	}
}

func TestEffects(t *testing.T) {
	c, _ := newCaller(t)
	for name, given := range map[string]string{
		"read_file": args("path", "a"), "list_directory": args("path", "a"), "glob": args("pattern", "a"), "grep": args("pattern", "a"),
	} {
		if got := c.Effect(t, name, given); got != tools.Pure {
			t.Errorf("%s is %s", name, got)
		}
	}
	if got := c.Effect(t, "write_file", args("path", "a", "content", "")); got != tools.Idempotent {
		t.Errorf("write_file is %s", got)
	}
	if got := c.Effect(t, "edit_file", args("path", "a", "old_text", "a", "new_text", "b")); got != tools.Reconcilable {
		t.Errorf("edit_file is %s", got)
	}
}

func TestListDirectory(t *testing.T) {
	c, dir := newCaller(t)
	c.Want(t, "list_directory", args("path", "."), `{"entries":[]}`)
	writeFile(t, dir, "b.txt", "12345")
	writeFile(t, dir, "a/c.txt", "")
	must(t, os.Symlink("a", filepath.Join(dir, "link")))
	want := `{"entries":[{"name":"a","is_dir":true,"size":0},{"name":"b.txt","is_dir":false,"size":5},{"name":"link","is_dir":true,"size":0}]}`
	for _, path := range []string{".", "", "./", "a/..", dir} {
		c.Want(t, "list_directory", args("path", path), want)
	}
	c.Want(t, "list_directory", args("path", "link"), `{"entries":[{"name":"c.txt","is_dir":false,"size":0}]}`)
	c.WantError(t, "list_directory", args("path", "b.txt"), tools.InvalidPath, "not a directory")
	c.WantError(t, "list_directory", args("path", "z"), tools.FileNotFound)
	c.WantError(t, "list_directory", args(), tools.InvalidArgs, "path")
}

func TestListDirectoryOfMany(t *testing.T) {
	c, dir := newCaller(t)
	for i := range 3000 {
		writeFile(t, dir, fmt.Sprintf("f%05d", i), "")
	}
	raw := c.Want(t, "list_directory", args("path", "."), "")
	cut, was := tools.Truncate(json.RawMessage(raw), 65_536, ".agent/out/1")
	if !was || len(cut) > 65_536 || !strings.HasPrefix(string(cut), `{"entries":[{"name":"f00000"`) || !strings.Contains(string(cut), `"total":3000`) {
		t.Errorf("the long list is cut to %d bytes: %.200s", len(cut), cut)
	}
}

func TestGlob(t *testing.T) {
	c, dir := newCaller(t)
	for _, name := range []string{"a.go", "b.txt", "sub/c.go", "sub/deep/d.go", ".hidden.go", ".git/x.go", ".agent/out/y.go", "ä b.go"} {
		writeFile(t, dir, name, "")
	}
	for given, want := range map[string]string{
		args("pattern", "*.go"):                      `[".hidden.go","a.go","ä b.go"]`,
		args("pattern", "./*.go"):                    `[".hidden.go","a.go","ä b.go"]`,
		args("pattern", "**/*.go"):                   `[".hidden.go","a.go","sub/c.go","sub/deep/d.go","ä b.go"]`,
		args("pattern", "sub/**/*.go"):               `["sub/c.go","sub/deep/d.go"]`,
		args("pattern", "*.go", "path", "sub"):       `["sub/c.go"]`,
		args("pattern", "deep/*", "path", "./sub"):   `["sub/deep/d.go"]`,
		args("pattern", dir+"/sub/*.go"):             `["sub/c.go"]`,
		args("pattern", "{a,b}.*"):                   `["a.go","b.txt"]`,
		args("pattern", "su[ab]"):                    `["sub/"]`,
		args("pattern", ".git/*"):                    `[".git/x.go"]`,
		args("pattern", "a.go"):                      `["a.go"]`,
		args("pattern", "a.go/*"):                    `[]`,
		args("pattern", "nothing/*"):                 `[]`,
		args("pattern", "*", "path", ".agent/out"):   `[".agent/out/y.go"]`,
		args("pattern", "**", "path", "sub"):         `["sub/c.go","sub/deep/","sub/deep/d.go"]`,
		args("pattern", "**/*.go", "path", "sub/"):   `["sub/c.go","sub/deep/d.go"]`,
		args("pattern", "*/", "path", dir+"/sub/./"): `["sub/c.go","sub/deep/"]`,
	} {
		var list []string
		must(t, json.Unmarshal([]byte(want), &list))
		c.Want(t, "glob", given, fmt.Sprintf(`{"matches":%s,"count":%d}`, want, len(list)))
	}
	c.WantError(t, "glob", args("pattern", "["), tools.InvalidArgs, "pattern")
	c.WantError(t, "glob", args("pattern", ""), tools.InvalidArgs, "pattern")
	c.WantError(t, "glob", args("pattern", "*", "path", "missing"), tools.FileNotFound)
	for i := range 1001 {
		writeFile(t, dir, fmt.Sprintf("many/%d", i), "")
	}
	if got := c.Want(t, "glob", args("pattern", "many/*"), ""); !strings.Contains(got, `"count":1000,"truncated":"there is more`) {
		t.Errorf("too many paths gave ...%s", got[len(got)-200:])
	}
}

func TestGrep(t *testing.T) {
	c, dir := newCaller(t)
	writeFile(t, dir, "a.go", "package a\n\nfunc A() {}\n// end\n")
	writeFile(t, dir, "sub/b.go", "func b() {}\r\nfunc B() {}")
	writeFile(t, dir, "sub/c.txt", "func <c> \xff")
	writeFile(t, dir, ".git/d.go", "func d")
	for given, want := range map[string]string{
		args("pattern", `func [A-Z]`):                                `[{"path":"a.go","line":3,"text":"func A() {}"},{"path":"sub/b.go","line":2,"text":"func B() {}"}]`,
		args("pattern", `(?i)FUNC B`):                                `[{"path":"sub/b.go","line":1,"text":"func b() {}"},{"path":"sub/b.go","line":2,"text":"func B() {}"}]`,
		args("pattern", `^func.*\}$`, "glob", "*.go", "path", "sub"): `[{"path":"sub/b.go","line":1,"text":"func b() {}"},{"path":"sub/b.go","line":2,"text":"func B() {}"}]`,
		args("pattern", "func", "glob", "sub/*.txt"):                 `[{"path":"sub/c.txt","line":1,"text":"func <c> ` + "\uFFFD" + `"}]`,
		args("pattern", "func", "path", "a.go"):                      `[{"path":"a.go","line":3,"text":"func A() {}"}]`,
		args("pattern", "func A", "context", 1):                      `[{"path":"a.go","line":3,"text":"func A() {}","before":[""],"after":["// end"]}]`,
		args("pattern", "func", "path", "sub/b.go", "context", 1):    `[{"path":"sub/b.go","line":1,"text":"func b() {}","after":["func B() {}"]},{"path":"sub/b.go","line":2,"text":"func B() {}","before":["func b() {}"]}]`,
		args("pattern", "func", "path", ".git"):                      `[{"path":".git/d.go","line":1,"text":"func d"}]`,
		args("pattern", "nowhere"):                                   `[]`,
	} {
		var list []any
		must(t, json.Unmarshal([]byte(want), &list))
		c.Want(t, "grep", given, fmt.Sprintf(`{"matches":%s,"count":%d}`, want, len(list)))
	}
	// A backslash that the model forgot to write twice is still a backslash.
	c.Want(t, "grep", `{"pattern":"\(\) \{","path":"a.go"}`, `{"matches":[{"path":"a.go","line":3,"text":"func A() {}"}],"count":1}`)
	c.WantError(t, "grep", args("pattern", "("), tools.InvalidArgs, "RE2")
	c.WantError(t, "grep", args("pattern", "(?=x)"), tools.InvalidArgs, "lookaround")
	c.WantError(t, "grep", args("pattern", ""), tools.InvalidArgs)
	c.WantError(t, "grep", args("pattern", strings.Repeat("x", 2000)), tools.InvalidArgs)
	c.WantError(t, "grep", args("pattern", "x", "glob", "["), tools.InvalidArgs, "glob")
	c.WantError(t, "grep", args("pattern", "x", "path", "missing"), tools.FileNotFound)
	writeFile(t, dir, "many.txt", strings.Repeat("func\n", 300))
	if got := c.Want(t, "grep", args("pattern", "func", "path", "many.txt"), ""); !strings.Contains(got, `"count":200,"truncated":"there is more`) {
		t.Errorf("too many matches gave ...%s", got[len(got)-200:])
	}
	writeFile(t, dir, "long.txt", strings.Repeat("l", 100_000)+"\nafter\n")
	c.Want(t, "grep", args("pattern", "after", "path", "long.txt"), `{"matches":[{"path":"long.txt","line":2,"text":"after"}],"count":1}`)
}
