package files_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/toolstest"
)

// readTree returns the files of a directory, by path, except those that the tools keep for themselves.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || d.IsDir() || strings.HasPrefix(rel, ".agent/") {
			return err
		}
		raw, err := os.ReadFile(path)
		all[rel] = string(raw)
		return err
	}))
	return all
}

func wantSame(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s: there is\n%q\nwant\n%q", what, got, want)
	}
}

func TestApplyPatch(t *testing.T) {
	for name, tc := range map[string]struct {
		before  map[string]string
		patch   string
		after   map[string]string
		told    string
		changes bool
	}{
		"one line": {
			before: map[string]string{"a.txt": "one\ntwo\nthree\n"},
			patch:  "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
			after:  map[string]string{"a.txt": "one\n2\nthree\n"},
			told:   `{"files":[{"path":"a.txt","added":1,"removed":1}]}`,
		},
		"several files: changed, added, removed, renamed": {
			before: map[string]string{"a": "1\n2\n", "gone": "x\n", "old name": "k\nl\n"},
			patch: "diff --git a/a b/a\nindex 1..2 100644\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n 1\n+1.5\n 2\n" +
				"diff --git a/new/b b/new/b\nnew file mode 100644\n--- /dev/null\n+++ b/new/b\n@@ -0,0 +1,2 @@\n+b\n+c\n\\ No newline at end of file\n" +
				"diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" +
				"diff --git a/old name b/new name\nsimilarity index 50%\nrename from old name\nrename to new name\n--- a/old name\n+++ b/new name\n@@ -1,2 +1,2 @@\n k\n-l\n+m\n",
			after: map[string]string{"a": "1\n1.5\n2\n", "new/b": "b\nc", "new name": "k\nm\n"},
			told:  `{"files":[{"path":"a","added":1,"removed":0},{"path":"new/b","added":2,"removed":0},{"path":"gone","added":0,"removed":1},{"path":"new name","added":1,"removed":1}]}`,
		},
		"wrong numbers, an empty line without its blank, no a/ and b/": {
			before: map[string]string{"x.go": "package x\n\nfunc a() {}\n\nfunc b() {}\n"},
			patch:  "--- x.go\n+++ x.go\n@@ -40,9 +41,2 @@ func\n func a() {}\n\n-func b() {}\n+func c() {}",
			after:  map[string]string{"x.go": "package x\n\nfunc a() {}\n\nfunc c() {}\n"},
		},
		"no numbers at all": {
			before: map[string]string{"a": "1\n2\n3\n"},
			patch:  "--- a/a\n+++ b/a\n@@\n-2\n+two\n@@\n-3\n+three\n",
			after:  map[string]string{"a": "1\ntwo\nthree\n"},
		},
		"the numbers choose among equal places": {
			before: map[string]string{"a": "x\n-\nx\n-\nx\n"},
			patch:  "--- a/a\n+++ b/a\n@@ -3,1 +3,1 @@\n-x\n+y\n",
			after:  map[string]string{"a": "x\n-\ny\n-\nx\n"},
		},
		"line ends of the file": {
			before: map[string]string{"a": "one\r\ntwo\r\n"},
			patch:  "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
			after:  map[string]string{"a": "one\r\n2\r\n"},
		},
		"a file without an end": {
			before: map[string]string{"a": "one\ntwo"},
			patch:  "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
			after:  map[string]string{"a": "one\n2"},
		},
		"an end is added, and taken": {
			before: map[string]string{"a": "one", "b": "two\n"},
			patch:  "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+one\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-two\n+two\n\\ No newline at end of file\n",
			after:  map[string]string{"a": "one\n", "b": "two"},
		},
		"lines added behind one that is named": {
			before: map[string]string{"a": "1\n2\n3\n"},
			patch:  "--- a/a\n+++ b/a\n@@ -2,0 +3,1 @@\n+2.5\n",
			after:  map[string]string{"a": "1\n2\n2.5\n3\n"},
		},
		"lines that look like headers": {
			before: map[string]string{"q.sql": "a\n-- b\nc\n"},
			patch:  "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n a\n--- b\n+++ d\n c\n",
			after:  map[string]string{"q.sql": "a\n++ d\nc\n"},
		},
		"only a rename, an empty file and one removed": {
			before: map[string]string{"a": "1\n", "e": ""},
			patch:  "diff --git a/a b/z\nrename from a\nrename to z\ndiff --git a/f b/f\nnew file mode 100644\ndiff --git a/e b/e\ndeleted file mode 100644\n",
			after:  map[string]string{"z": "1\n", "f": ""},
		},
		"words around it, a quoted name, a time": {
			before: map[string]string{"ä b": "1\n"},
			patch:  "Here is the patch:\n\n--- \"a/\\303\\244 b\"\t2026-01-01\n+++ \"b/\\303\\244 b\"\t2026-01-02\n@@ -1 +1 @@\n-1\n+2\n-- \n2.50.1\n",
			after:  map[string]string{"ä b": "2\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := newCaller(t)
			for path, content := range tc.before {
				writeFile(t, dir, path, content)
			}
			c.Want(t, "apply_patch", args("patch", tc.patch), tc.told)
			wantSame(t, "after", readTree(t, dir), tc.after)
		})
	}
}

// A patch that does not apply changes nothing, and the error says which hunk failed and why.
func TestAPatchIsAppliedWholeOrNotAtAll(t *testing.T) {
	before := map[string]string{"a": "1\n2\n3\n", "b": "x\ny\nx\n", "c/d": "k\n"}
	first := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n"
	for name, tc := range map[string]struct {
		patch string
		code  tools.Code
		words []string
	}{
		"another line":      {first + "--- a/b\n+++ b/b\n@@ -1,2 +1,2 @@\n x\n-z\n+Z\n", tools.InvalidArgs, []string{`hunk 1 of "b"`, `line 2 of the file is "y"`, `it has "z"`, "nothing was changed"}},
		"the second hunk":   {"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n@@ -9 +9 @@\n-9\n+nine\n", tools.InvalidArgs, []string{`hunk 2 of "a"`}},
		"the wrong order":   {"--- a/a\n+++ b/a\n@@ -3 +3 @@\n-3\n+three\n@@ -1 +1 @@\n-1\n+one\n", tools.InvalidArgs, []string{`hunk 2 of "a"`}},
		"several places":    {first + "--- a/b\n+++ b/b\n@@ -7 +7 @@\n-x\n+z\n", tools.InvalidArgs, []string{`hunk 1 of "b"`, "2 places"}},
		"part of a line":    {"--- a/c/d\n+++ b/c/d\n@@ -1 +1 @@\n-\n+z\n", tools.InvalidArgs, []string{`hunk 1 of "c/d"`}},
		"no such file":      {first + "--- a/n\n+++ b/n\n@@ -1 +1 @@\n-1\n+2\n", tools.FileNotFound, []string{`"n"`}},
		"exists already":    {first + "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+z\n", tools.InvalidArgs, []string{`"b" exists`}},
		"not all removed":   {first + "--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", tools.InvalidArgs, []string{`"b"`, "does not take out all"}},
		"outside":           {first + "--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-1\n+2\n", tools.InvalidPath, []string{"workspace"}},
		"an absolute path":  {first + "--- /dev/null\n+++ /etc/cron.d/x\n@@ -0,0 +1 @@\n+z\n", tools.InvalidPath, []string{"outside"}},
		"twice":             {first + "--- a/./a\n+++ b/./a\n@@ -2 +2 @@\n-2\n+two\n", tools.InvalidArgs, []string{"twice"}},
		"a folder":          {first + "--- a/c\n+++ b/c\n@@ -1 +1 @@\n-1\n+2\n", tools.InvalidPath, []string{"directory"}},
		"a binary one":      {"diff --git a/a b/a\nGIT binary patch\nliteral 1\n", tools.InvalidArgs, []string{"only texts"}},
		"nothing":           {"hello", tools.InvalidArgs, []string{"--- a/PATH"}},
		"a hunk alone":      {"@@ -1 +1 @@\n-1\n+2\n", tools.InvalidArgs, []string{"before the lines"}},
		"no hunk":           {"--- a/a\n+++ b/a\n", tools.InvalidArgs, []string{"no hunk"}},
		"a mode":            {"diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", tools.InvalidArgs, []string{"changes nothing"}},
		"an unending file":  {"--- /dev/null\n+++ b/big\n@@ -0,0 +1 @@\n+" + strings.Repeat("z", 5<<20), tools.InvalidArgs, []string{"at most"}},
		"a name of a write": {"--- /dev/null\n+++ b/.parley-" + strings.Repeat("a", 26) + ".tmp\n@@ -0,0 +1 @@\n+z\n", tools.InvalidPath, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir := newCaller(t)
			for path, content := range before {
				writeFile(t, dir, path, content)
			}
			c.WantError(t, "apply_patch", args("patch", tc.patch), tc.code, tc.words...)
			wantSame(t, "after", readTree(t, dir), before)
		})
	}
}

// A failingDir is a session's directory in which the nth change fails.
type failingDir struct {
	*workspace.Dir
	left *int
}

var errCut = errors.New("cut off")

func (f failingDir) Update(name string, limit int64, change func([]byte) ([]byte, error)) error {
	if *f.left--; *f.left == 0 {
		return errCut
	}
	return f.Dir.Update(name, limit, change)
}

func (f failingDir) Remove(name string) error {
	if *f.left--; *f.left == 0 {
		return errCut
	}
	return f.Dir.Remove(name)
}

// A dyingDir is a directory that can't be written to anymore after some changes, as if the process had died.
type dyingDir struct {
	*workspace.Dir
	left *int
}

func (d dyingDir) Write(name string, content []byte) error {
	if *d.left--; *d.left < 0 {
		return errCut
	}
	return d.Dir.Write(name, content)
}

func (d dyingDir) Update(name string, limit int64, change func([]byte) ([]byte, error)) error {
	if *d.left--; *d.left < 0 {
		return errCut
	}
	return d.Dir.Update(name, limit, change)
}

func (d dyingDir) Remove(name string) error {
	if *d.left--; *d.left < 0 {
		return errCut
	}
	return d.Dir.Remove(name)
}

func newPatchCaller(t *testing.T, wrap func(*workspace.Dir) files.Dir) (c *toolstest.Caller, dir string) {
	t.Helper()
	all, err := workspace.New(workspace.Config{Root: filepath.Join(t.TempDir(), "workspaces")})
	must(t, err)
	t.Cleanup(func() { all.Close() })
	c = toolstest.New(files.New(func(_ context.Context, call tools.Call) (files.Dir, error) {
		d, err := all.Open(call.Session)
		if err != nil {
			return nil, err
		}
		return wrap(d), nil
	}, nil)...)
	d, err := all.Open(c.Call.Session)
	must(t, err)
	return c, d.Path()
}

const fourFiles = "--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n 1\n+2\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n" +
	"diff --git a/r b/s\nrename from r\nrename to s\n--- a/r\n+++ b/s\n@@ -1 +1 @@\n-r\n+s\n"

func unpatchedFiles() map[string]string {
	return map[string]string{"a": "1\n", "gone": "g\n", "r": "r\n"}
}

func TestAFailedPatchIsUndone(t *testing.T) {
	for n := 1; n <= 5; n++ {
		left := n
		c, dir := newPatchCaller(t, func(d *workspace.Dir) files.Dir { return failingDir{d, &left} })
		for path, content := range unpatchedFiles() {
			writeFile(t, dir, path, content)
		}
		c.WantError(t, "apply_patch", args("patch", fourFiles), tools.ExecutionFailed, "nothing was changed")
		wantSame(t, fmt.Sprintf("after %d", n), readTree(t, dir), unpatchedFiles())
	}
}

// Wherever a process dies in a patch, its successor can tell which changes were made, and makes the others.
func TestAPatchThatWasCutOffIsFinished(t *testing.T) {
	patched := map[string]string{"a": "1\n2\n", "new": "n\n", "s": "s\n"}
	for n := range 8 {
		left := n
		c, dir := newPatchCaller(t, func(d *workspace.Dir) files.Dir { return dyingDir{d, &left} })
		for path, content := range unpatchedFiles() {
			writeFile(t, dir, path, content)
		}
		_, err := c.Try(t.Context(), "apply_patch", args("patch", fourFiles))
		if whole := n > 5; whole != (err == nil) {
			t.Fatalf("with %d changes: %v", n, err)
		}
		left = 1000 // the successor
		result, done, err := c.Reconcile(t, "apply_patch", args("patch", fourFiles))
		if err != nil || done != (n > 5) {
			t.Errorf("after %d changes it is done: %t %v", n, done, err)
		}
		if !done {
			result, err = c.Try(t.Context(), "apply_patch", args("patch", fourFiles))
		}
		if err != nil || !strings.Contains(result, `"path":"s"`) {
			t.Errorf("after %d changes the successor gives %s, %v", n, result, err)
		}
		wantSame(t, fmt.Sprintf("after %d", n), readTree(t, dir), patched)
	}
}

func TestAFileChangedByOthersIsUnclear(t *testing.T) {
	left := 2 // the intent and the first file
	c, dir := newPatchCaller(t, func(d *workspace.Dir) files.Dir { return dyingDir{d, &left} })
	for path, content := range unpatchedFiles() {
		writeFile(t, dir, path, content)
	}
	_, _ = c.Try(t.Context(), "apply_patch", args("patch", fourFiles))
	writeFile(t, dir, "a", "neither\n")
	if _, done, err := c.Reconcile(t, "apply_patch", args("patch", fourFiles)); err == nil || done {
		t.Errorf("it is done: %t %v", done, err)
	}
	// Another call's record doesn't count for this call.
	c.Call.Key = "turn-1/call-2"
	if _, done, err := c.Reconcile(t, "apply_patch", args("patch", fourFiles)); err != nil || done {
		t.Errorf("another call is done: %t %v", done, err)
	}
}

// Applying git's diff of two files turns one into the other.
func TestDiffsFromGitAreApplied(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var lines []string
		for range random.IntN(30) {
			lines = append(lines, string(rune('a'+random.IntN(4))))
		}
		return strings.Join(lines, "\n") + strings.Repeat("\n", random.IntN(2))
	}
	c, dir := newCaller(t)
	for n := range 40 {
		old, now := text(), text()
		made := gitDiff(t, old, now)
		if made == "" {
			continue
		}
		c.Call.Key = fmt.Sprint(n)
		writeFile(t, dir, "a", old)
		c.Want(t, "apply_patch", args("patch", made), "")
		if got := readTree(t, dir)["a"]; got != now {
			t.Errorf("%q and\n%s\ngive %q, want %q", old, made, got, now)
		}
	}
}

// gitDiff returns git's diff of two texts.
func gitDiff(t testing.TB, old, now string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, "a/a", old)
	writeFile(t, dir, "b/a", now)
	cmd := exec.Command("git", "diff", "--no-index", "--no-color", "--text", "--no-prefix", "a/a", "b/a")
	cmd.Dir = dir
	out, _ := cmd.Output() // git exits with 1 if they differ
	return string(out)
}
