package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFingerprintChangesWithTheNamedFiles(t *testing.T) {
	dir := newDir(t)
	write := func(name, content string) {
		if err := dir.Write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	write("run.sh", "echo 1")
	write("sub/other", "x")
	sum := func() string {
		got, err := dir.Fingerprint(t.Context(), []string{"run.sh", "./run.sh", "new.sh", "../out", "/etc/passwd", "sub", "", "no\x00"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	last := sum()
	same := func(want bool, what string) {
		t.Helper()
		now := sum()
		if (now == last) != want {
			t.Errorf("%s: changed %v", what, now != last)
		}
		last = now
	}
	same(true, "nothing happened")
	write("unnamed", "x")
	same(true, "a file that is not named")
	write("run.sh", "echo 2")
	same(false, "another content")
	write("run.sh", "echo 2")
	same(true, "the same content, written again")
	write("new.sh", "echo")
	same(false, "a named file that was not there")
	old := dir.Path() + ".old"
	if err := os.Rename(dir.Path(), old); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir.Path(), os.DirFS(old)); err != nil {
		t.Fatal(err)
	}
	same(false, "another directory in its place, with the same files")
}

// Files that a command may name after changing to a folder are included too.
func TestAFingerprintFollowsFolders(t *testing.T) {
	tests := map[string]struct {
		words  []string
		change string // the file that is overwritten
		seen   bool
	}{
		"after cd":                        {[]string{"cd", "sub", "run.sh"}, "sub/run.sh", true},
		"after cd twice":                  {[]string{"sub", "deep", "run.sh"}, "sub/deep/run.sh", true},
		"back up":                         {[]string{"sub/deep", "../run.sh"}, "sub/run.sh", true},
		"out of a folder of the line's":   {[]string{"mkdir", "new", "../run.sh"}, "run.sh", true},
		"out of one below another":        {[]string{"sub/new", "../run.sh"}, "sub/run.sh", true},
		"through a link":                  {[]string{"link", "run.sh"}, "sub/deep/run.sh", true},
		"back up through a link":          {[]string{"link/../run.sh"}, "sub/run.sh", true},
		"back up before a link":           {[]string{"link/../run.sh"}, "run.sh", true},
		"below a path":                    {[]string{"./sub/", "deep/run.sh"}, "sub/deep/run.sh", true},
		"by the path that commands know":  {[]string{"/workspace/sub", "run.sh"}, "sub/run.sh", true},
		"in a folder that is not named":   {[]string{"sub", "run.sh"}, "sub/deep/run.sh", false},
		"under a name that is not named":  {[]string{"sub", "other.sh"}, "sub/run.sh", false},
		"where only a circle leads to it": {[]string{"sub", "loop", "run.sh"}, "sub/run.sh", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := newDir(t)
			for _, file := range []string{"run.sh", "sub/run.sh", "sub/deep/run.sh"} {
				if err := dir.Write(file, []byte("echo")); err != nil {
					t.Fatal(err)
				}
			}
			for link, to := range map[string]string{"link": "sub/deep", "sub/loop": "../sub"} {
				if err := os.Symlink(to, filepath.Join(dir.Path(), link)); err != nil {
					t.Fatal(err)
				}
			}
			before, err := dir.Fingerprint(t.Context(), test.words, test.words)
			if err != nil {
				t.Fatal(err)
			}
			if err := dir.Write(test.change, []byte("changed")); err != nil {
				t.Fatal(err)
			}
			after, err := dir.Fingerprint(t.Context(), test.words, test.words)
			if err != nil || (before != after) != test.seen {
				t.Errorf("seen: %t, %v, want %t", before != after, err, test.seen)
			}
		})
	}
}

// A different folder with the same name and content changes the fingerprint.
func TestAFingerprintDistinguishesFolders(t *testing.T) {
	dir := newDir(t)
	if err := dir.Write("sub/run.sh", []byte("echo")); err != nil {
		t.Fatal(err)
	}
	words := []string{"cd", "sub", "ls"}
	before, err := dir.Fingerprint(t.Context(), words, words)
	if err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(dir.Path(), "sub")
	if err := os.Rename(sub, sub+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(sub, os.DirFS(sub+".old")); err != nil {
		t.Fatal(err)
	}
	if after, err := dir.Fingerprint(t.Context(), words, words); err != nil || after == before {
		t.Errorf("a folder that was exchanged is the same (%v)", err)
	}
}

func TestTheLookupsOfAFingerprintAreLimited(t *testing.T) {
	dir := newDir(t)
	var words []string
	for i := range 400 {
		name := fmt.Sprint("d", i)
		words = append(words, name)
		if err := os.Mkdir(filepath.Join(dir.Path(), name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dir.Fingerprint(t.Context(), words, words); err == nil || !strings.Contains(err.Error(), "could name more than") {
		t.Errorf("400 names in 400 folders gave %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dir.Fingerprint(over, words[:1], nil); !errors.Is(err, context.Canceled) {
		t.Errorf("with a call that is over it gave %v", err)
	}
}
