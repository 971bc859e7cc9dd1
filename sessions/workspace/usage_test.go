package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/sessions/workspace"
)

// Empty files and folders count too: each takes a block of the disk and an inode.
func TestFoldersAndEmptyFilesCount(t *testing.T) {
	d := openSession(t, newWorkspaces(t, workspace.Config{MaxBytes: 10 * 4096}), "main:a:b")
	requireNoError(t, d.Write("a/b/c/d", nil)) // four blocks
	requireNoError(t, d.Write("a/b/e", []byte("x")))
	if err := d.Write("f/g/h/i/j/k", nil); !errors.Is(err, workspace.ErrQuota) {
		t.Errorf("six more in five blocks: %v", err)
	}
	if _, err := d.Stat("f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was refused left a folder: %v", err)
	}
	requireNoError(t, d.Write("f/g/h/i/j", nil)) // ten blocks
	for _, name := range []string{"one", "f/one"} {
		if err := d.Write(name, nil); !errors.Is(err, workspace.ErrQuota) || !strings.Contains(err.Error(), "blocks of 4096") {
			t.Errorf("the eleventh block: %v", err)
		}
	}
	requireNoError(t, d.Write("f/g/h/i/j", []byte("y"))) // the file has its block already
}

func TestTheNumberOfFilesAndFoldersIsLimited(t *testing.T) {
	const most = 20_000
	all := newWorkspaces(t, workspace.Config{MaxBytes: 1 << 40})
	d := openSession(t, all, "main:a:b")
	made := 0
	for folder := 0; made < most-2; folder++ {
		dir := filepath.Join(d.Path(), fmt.Sprint(folder))
		requireNoError(t, os.Mkdir(dir, 0o700))
		for made++; made%1000 != 0 && made < most-2; made++ {
			requireNoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(made)), nil, 0o600))
		}
	}
	requireNoError(t, d.Write("last/one", nil))
	err := d.Write("more", nil)
	if !errors.Is(err, workspace.ErrQuota) || !strings.Contains(err.Error(), "20000") {
		t.Errorf("file %d is not refused: %v", most+1, err)
	}
	requireNoError(t, d.Write("last/one", []byte("a longer content")))
	requireNoError(t, os.RemoveAll(filepath.Join(d.Path(), "0")))
	requireNoError(t, d.Write("more", nil))
}

func TestWrittenPathsAreLimited(t *testing.T) {
	d := newDir(t)
	requireNoError(t, d.Write(strings.Repeat("d/", 31)+"file", nil))
	long := strings.Repeat(strings.Repeat("n", 200)+"/", 5)
	requireNoError(t, d.Write(long+strings.Repeat("f", 19), nil))
	for path, want := range map[string]string{
		strings.Repeat("d/", 32) + "file": "at most 32",
		strings.Repeat("x/", 400) + "f":   "at most 32",
		long + strings.Repeat("f", 20):    "at most 1024",
	} {
		err := d.Write(path, nil)
		if !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Write(%.20q…) = %v, want %q", path, err, want)
		}
		err = d.Update(path, 10, func([]byte) ([]byte, error) { return []byte("x"), nil })
		if !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Update(%.20q…) = %v, want %q", path, err, want)
		}
	}
	if _, err := d.Stat("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was refused left a folder: %v", err)
	}
}

// makeDeepPath makes a path of n folders, as older releases allowed, with a file at its end.
func makeDeepPath(t *testing.T, dir string, n int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	requireNoError(t, err)
	for range n {
		requireNoError(t, at.Mkdir("d", 0o700))
		below, err := at.OpenRoot("d")
		requireNoError(t, err)
		requireNoError(t, at.Close())
		at = below
	}
	requireNoError(t, at.WriteFile("end", []byte("deep"), 0o600))
	requireNoError(t, at.Close())
}

// A file that an earlier release wrote deeper than now allowed can be read, does not prevent other writes, and
// is removed with its session.
func TestDeeperFilesOfEarlierReleases(t *testing.T) {
	all := newWorkspaces(t, workspace.Config{})
	d := openSession(t, all, "main:a:b")
	makeDeepPath(t, d.Path(), 2000)
	requireNoError(t, os.MkdirAll(filepath.Join(d.Path(), strings.Repeat("e/", 40)), 0o700))
	requireNoError(t, os.WriteFile(filepath.Join(d.Path(), strings.Repeat("e/", 40), "end"), []byte("read me"), 0o600))
	if got, err := fs.ReadFile(d, strings.Repeat("e/", 40)+"end"); err != nil || string(got) != "read me" {
		t.Errorf("it reads %q, %v", got, err)
	}
	requireNoError(t, d.Write("beside", nil))
	if removed, err := all.Remove(t.Context(), "main:a:b"); !removed || err != nil {
		t.Errorf("Remove = %v, %v", removed, err)
	}
	if _, err := os.Lstat(d.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestMeasuringEndsWithItsContext(t *testing.T) {
	d := newDir(t)
	requireNoError(t, os.WriteFile(filepath.Join(d.Path(), "before"), nil, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, d := range map[string]*workspace.Dir{"alone": d.WithContext(ctx), "with a limit": d.WithContext(ctx).WritableUntil(time.Now().Add(time.Hour))} {
		if err := d.Write("a", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a write that is called off gives %v", name, err)
		}
	}
	requireNoError(t, d.Write("a", nil)) // nothing is remembered of the interrupted measurement
}

// A name that only resembles a temporary one may be used; a real temporary name may not.
func TestTemporaryNames(t *testing.T) {
	d := newDir(t)
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{".parley-notes.tmp", ".parley-.tmp", ".parley-" + strings.Repeat("A", 26) + ".tmp", ".parley-" + strings.Repeat("a", 25) + "1.tmp"} {
		requireNoError(t, d.Write(name, []byte("mine")))
		requireNoError(t, os.Chtimes(filepath.Join(d.Path(), name), long, long))
	}
	all, err := workspace.New(workspace.Config{Root: filepath.Dir(filepath.Dir(d.Path()))}) // as after a restart
	requireNoError(t, err)
	defer func() { requireNoError(t, all.Close()) }()
	d = openSession(t, all, "main:telegram:42")
	requireNoError(t, d.Write("new", nil))
	entries, err := d.ReadDir(".")
	if err != nil || len(entries) != 5 {
		t.Errorf("there is %v, %v; want five files", entries, err)
	}
	tryEveryOperation(t, d, ".parley-"+strings.Repeat("a", 26)+".tmp", fs.ErrInvalid)
	tryEveryOperation(t, d, "sub/.parley-"+strings.Repeat("7", 26)+".tmp/x", fs.ErrInvalid)
}

// Measuring keeps no files open.
func TestMeasuringClosesItsFiles(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	d := newDir(t)
	for i := range 50 {
		requireNoError(t, os.MkdirAll(filepath.Join(d.Path(), fmt.Sprint(i), "a", "b"), 0o700))
	}
	requireNoError(t, syscall.Mkfifo(filepath.Join(d.Path(), "pipe"), 0o600))
	before := countDescriptors()
	requireNoError(t, d.Write("a", nil))
	if now := countDescriptors(); now > before {
		t.Errorf("%d descriptors stay open", now-before)
	}
}
