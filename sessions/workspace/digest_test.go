package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/sessions/workspace"
)

// Each of these changes is visible to commands, and changes one or both digests.
func TestADigestChangesWithEverythingInADirectory(t *testing.T) {
	tests := map[string]struct {
		change   func(path string) error
		contents bool // whether the digest of the contents changes too
	}{
		"nothing":         {func(string) error { return nil }, false},
		"another content": {func(p string) error { return os.WriteFile(p+"/sub/a.sh", []byte("echo 2"), 0o600) }, true},
		"content with the old times": {func(p string) error {
			was, err := os.Stat(p + "/sub/a.sh")
			if err != nil {
				return err
			}
			if err := os.WriteFile(p+"/sub/a.sh", []byte("echo 2"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(p+"/sub/a.sh", was.ModTime(), was.ModTime())
		}, true},
		"a file more":              {func(p string) error { return os.WriteFile(p+"/sub/b.sh", nil, 0o600) }, true},
		"a file less":              {func(p string) error { return os.Remove(p + "/sub/a.sh") }, true},
		"another name":             {func(p string) error { return os.Rename(p+"/sub/a.sh", p+"/sub/c.sh") }, true},
		"a file in another folder": {func(p string) error { return os.Rename(p+"/sub/a.sh", p+"/a.sh") }, true},
		"an empty folder":          {func(p string) error { return os.Mkdir(p+"/new", 0o700) }, true},
		"who may run it":           {func(p string) error { return os.Chmod(p+"/sub/a.sh", 0o700) }, true},
		"where a link leads":       {func(p string) error { return errors.Join(os.Remove(p+"/link"), os.Symlink("sub/none", p+"/link")) }, true},
		"a hidden file":            {func(p string) error { return os.WriteFile(p+"/.agent", nil, 0o600) }, true},
		"a file with two names":    {func(p string) error { return os.WriteFile(p+"/twice", []byte("echo 2"), 0o600) }, true},
		"a pipe":                   {func(p string) error { return os.Remove(p + "/sub/socket") }, true},
		"the same content, written again": {func(p string) error {
			return os.WriteFile(p+"/sub/a.sh", []byte("echo 1"), 0o600)
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			for _, file := range []string{"sub/a.sh", "sub/socket", "once"} {
				if err := dir.Write(file, []byte("echo 1")); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Symlink("sub/a.sh", filepath.Join(dir.Path(), "link")), os.Link(filepath.Join(dir.Path(), "once"), filepath.Join(dir.Path(), "twice"))); err != nil {
				t.Fatal(err)
			}
			sums := func() (contents, times string) {
				contents, err := dir.Digest(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if times, err = dir.DigestTimes(t.Context()); err != nil {
					t.Fatal(err)
				}
				return contents, times
			}
			contents, times := sums()
			if err := test.change(dir.Path()); err != nil {
				t.Fatal(err)
			}
			newContents, newTimes := sums()
			if (newContents != contents) != test.contents || (newTimes != times) != (name != "nothing") {
				t.Errorf("by content %t, by times %t", newContents != contents, newTimes != times)
			}
		})
	}
}

// Moving a name out of a folder to a place next to it changes the digest.
func TestADigestDistinguishesNestedNames(t *testing.T) {
	sum := func(files ...string) string {
		dir := newDir(t)
		for _, file := range files {
			if err := dir.Write(file, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		got, err := dir.Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if sum("a/b", "c") == sum("a/b", "a/c") || sum("a/b", "c") == sum("a/c", "b") {
		t.Error("different folders have the same digest")
	}
}

func TestTheDepthOfADigestIsLimited(t *testing.T) {
	dir := newDir(t)
	var deep strings.Builder
	deep.WriteString(dir.Path())
	for range 300 {
		deep.WriteString("/d")
	}
	if err := os.MkdirAll(deep.String(), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Digest(t.Context()); err == nil || !strings.Contains(err.Error(), "nested") {
		t.Errorf("300 folders within each other gave %v", err)
	}
	ended, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if _, err := dir.Digest(ended); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without time left it gave %v", err)
	}
}

// A write to a file that was already read, during the walk, is noticed.
func TestADigestOfChangingFilesFails(t *testing.T) {
	dir := newDir(t)
	for n := range 200 {
		if err := dir.Write(fmt.Sprintf("f%03d", n), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := os.WriteFile(filepath.Join(dir.Path(), "f000"), fmt.Append(nil, n), 0o600); err != nil {
				done <- err
				return
			}
		}
	}()
	var err error
	for range 50 { // a walk may happen to fit between two writes
		if _, err = dir.Digest(t.Context()); err != nil {
			break
		}
	}
	close(stop)
	if wrote := <-done; wrote != nil {
		t.Fatal(wrote)
	}
	if !errors.Is(err, workspace.ErrChanging) {
		t.Errorf("got %v", err)
	}
	if _, err := dir.Digest(t.Context()); err != nil {
		t.Errorf("once it is quiet: %v", err)
	}
}
