package ignore_test

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"parley/tools/ignore"
)

// kept returns what a walk from a folder on shows; folders end with a slash.
func kept(t testing.TB, dir fs.FS, from string) ([]string, *ignore.Filter) {
	t.Helper()
	var names []string
	f := ignore.New(dir, from)
	err := fs.WalkDir(dir, from, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == from {
			return err
		}
		switch {
		case f.Skips(name, e.IsDir()) && e.IsDir():
			return fs.SkipDir
		case f.Skips(name, e.IsDir()):
			return nil
		case e.IsDir():
			name += "/"
		}
		names = append(names, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, f
}

// tree makes files of texts: each line is a path, with the file's content behind a colon if it has some. In a
// content | stands for a line's end.
func tree(lines string) fstest.MapFS {
	dir := fstest.MapFS{}
	for line := range strings.FieldsSeq(lines) {
		name, content, _ := strings.Cut(line, ":")
		dir[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(content, "|", "\n"))}
	}
	return dir
}

func TestFoldersThatProgramsFill(t *testing.T) {
	t.Parallel()
	dir := tree(`a/node_modules/x a/target/x b/Cargo.toml b/target/x vendor/x c/composer.json c/vendor/x d/dist/x e/package.json e/dist/x
		env/x v/venv/pyvenv.cfg .git/x .agent/x f/.gitignore:!dist/ f/package.json f/dist/x src/__pycache__/x.pyc`)
	got, _ := kept(t, dir, ".")
	got = slices.DeleteFunc(got, func(name string) bool { return !strings.HasSuffix(name, "/x") })
	if want := []string{"a/target/x", "d/dist/x", "env/x", "f/dist/x", "vendor/x"}; !slices.Equal(got, want) {
		t.Errorf("a walk shows %q, want %q", got, want)
	}
}

func TestWhereASearchBegins(t *testing.T) {
	t.Parallel()
	dir := tree(`.gitignore:*.log|out/|/only a/.gitignore:!keep.log a/keep.log a/b.log a/b/c.log a/only out/x.log out/deep/y
		repo/.git/HEAD repo/x.log repo/.gitignore:y repo/y a/node_modules/p/x a/node_modules/p/node_modules/z`)
	for from, want := range map[string][]string{
		"a":                {"a/.gitignore", "a/b/", "a/keep.log", "a/only"},
		"out":              {"out/deep/", "out/deep/y", "out/x.log"}, // it was asked for
		"out/deep":         {"out/deep/y"},
		"repo":             {"repo/.gitignore", "repo/x.log"}, // another repository has its own rules
		"a/node_modules/p": {"a/node_modules/p/node_modules/", "a/node_modules/p/node_modules/z", "a/node_modules/p/x"},
	} {
		got, f := kept(t, dir, from)
		if !slices.Equal(got, want) {
			t.Errorf("from %s a walk shows %q, want %q", from, got, want)
		}
		if left := from == "a" || from == "repo"; f.Skipped() != left {
			t.Errorf("from %s: left something out is %v", from, f.Skipped())
		}
	}
	if f := ignore.Off(); f.Skips("a/node_modules", true) || !f.Skips("x/.git", true) || f.Skips("x/.git", false) {
		t.Error("a filter that is off leaves out the wrong things")
	}
}

// paths are those of the tree on which git and the filter are compared.
func paths() []string {
	var all []string
	for _, a := range []string{"a", "b.go", "foo", "foo.txt", "x y", "[z]", "#h", "!n", `k\l`, "é", "A1"} {
		all = append(all, a+"_file", a)
		for _, b := range []string{"a", "foo", "bar.txt", "b.go", "c1"} {
			all = append(all, a+"/"+b+"/foo", a+"/"+b+"/b.go", a+"/"+b+"/deep/a", a+"/"+b+"/deep/c1.txt")
		}
	}
	return all
}

// write makes the tree in a folder: a path that others begin with is a folder.
func write(t testing.TB, root string, names []string) {
	t.Helper()
	for _, name := range names {
		full := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			continue
		}
		if err := os.WriteFile(full, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// git runs git in a folder, without the settings of whoever runs the test.
func git(t *testing.T, root, stdin string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", args...)
	c.Dir, c.Stdin = root, strings.NewReader(stdin)
	c.Env = append(os.Environ(), "HOME="+root, "XDG_CONFIG_HOME="+root, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := c.Output()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 1) { //nolint:errorlint // 1 says that nothing is ignored
		t.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}

// A patterns makes lines of .gitignore files at random.
type patterns struct{ *rand.Rand }

func (r patterns) line() string {
	words := []string{
		"a", "foo", "*", "**", "*.go", "b.go", "foo*", "*o", "f?o", "[a-f]oo", "[!a]oo", "[^b].go", "c[0-9]", "[[:alpha:]]1", "deep", "*.txt", "bar.*",
		`\#h`, "#h", `\!n`, `x\ y`, "x y", `k\\l`, "[[]z]", `\[z]`, "[]z]", "[a", `a\`, "é", "?", "??", "***", "a**", "**o", "[a-]", "[/]", "a[!/]b", `\a`, "[[:nope:]]a", "A?",
		"_file", "*_file", "[\\a]", "c1.txt", "[z-a]", "*[1]*", "*e*p*", "f*o*_*e", "o**", "[:alpha:]1", "[[:digit:]a]", "[a-c-z]",
	}
	n := 1 + r.IntN(3)
	var b strings.Builder
	if r.IntN(5) == 0 {
		b.WriteString("!")
	}
	if r.IntN(5) == 0 {
		b.WriteString("/")
	}
	for i := range n {
		if i > 0 {
			b.WriteString("/")
		}
		b.WriteString(words[r.IntN(len(words))])
	}
	if r.IntN(5) == 0 {
		b.WriteString("/")
	}
	b.WriteString([]string{"", "", "", " ", "  ", `\ `, "\r", "\t"}[r.IntN(8)])
	return b.String()
}

func (r patterns) file() string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(r.line() + "\n")
	}
	return b.String()
}

func TestGitAgrees(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: whether git ignores the same files, for want of git")
	}
	root := t.TempDir()
	names := paths()
	write(t, root, names)
	git(t, root, "", "init", "-q")
	every := everything(t, root)
	r := patterns{rand.New(rand.NewPCG(7, 2))} //nolint:gosec // of a test
	for range 200 {
		files := map[string]string{".gitignore": r.file()}
		for _, in := range []string{"foo", "a/foo", "a"} {
			if r.IntN(2) == 0 {
				files[in+"/.gitignore"] = r.file()
			}
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out := git(t, root, strings.Join(every, "\x00")+"\x00", "check-ignore", "--no-index", "-z", "--stdin")
		want := map[string]bool{}
		for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
			want[name] = true
		}
		shown, _ := kept(t, os.DirFS(root), ".")
		for _, name := range every {
			ours := !slices.Contains(shown, name) && !slices.Contains(shown, name+"/")
			if ours != want[name] {
				t.Errorf("%q: ignored is %v, git says %v, with %q", name, ours, want[name], files)
				break
			}
		}
		for name := range maps.Keys(files) {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// everything returns all files and folders but git's own.
func everything(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if e.Name() == ".git" {
			return fs.SkipDir
		}
		if name != "." {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPatternsTakeBoundedTime(t *testing.T) {
	t.Parallel()
	star := strings.Repeat("*a", 450)
	folders := strings.Repeat("**/a*/", 150) + "b"
	long := strings.Repeat("a", 250)
	deep := strings.Repeat("aaaaaaaa/", 400) + "c"
	began := time.Now()
	f := ignore.New(fstest.MapFS{".gitignore": {Data: []byte(strings.Repeat(star+"b\n"+folders+"\n", 20))}}, ".")
	if f.Skips(long, false) || f.Skips(deep, false) {
		t.Error("what does not match is ignored")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("*.log\n!a\n/b/", "a/b.log")
	f.Add("[a-\n**/[!b]/**\n\\", "x/y")
	f.Fuzz(func(_ *testing.T, rules, name string) {
		if !fs.ValidPath(name) || name == "." {
			return
		}
		ignore.New(fstest.MapFS{".gitignore": {Data: []byte(rules)}}, ".").Skips(name, len(rules)%2 == 0)
	})
}
