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

// Empty files and folders are not free: each takes a block of the disk and an
// inode.
func TestFoldersAndEmptyFilesCount(t *testing.T) {
	d := open(t, newAll(t, workspace.Config{MaxBytes: 10 * 4096}), "main:a:b")
	must(t, d.Write("a/b/c/d", nil)) // four
	must(t, d.Write("a/b/e", []byte("x")))
	if err := d.Write("f/g/h/i/j/k", nil); !errors.Is(err, workspace.ErrQuota) {
		t.Errorf("six more in five blocks: %v", err)
	}
	if _, err := d.Stat("f"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was refused left a folder: %v", err)
	}
	must(t, d.Write("f/g/h/i/j", nil)) // ten
	for _, name := range []string{"one", "f/one"} {
		if err := d.Write(name, nil); !errors.Is(err, workspace.ErrQuota) || !strings.Contains(err.Error(), "blocks of 4096") {
			t.Errorf("the eleventh block: %v", err)
		}
	}
	must(t, d.Write("f/g/h/i/j", []byte("y"))) // it has its block already
}

func TestFilesAndFoldersAreBounded(t *testing.T) {
	const most = 20_000
	all := newAll(t, workspace.Config{MaxBytes: 1 << 40})
	d := open(t, all, "main:a:b")
	made := 0
	for folder := 0; made < most-2; folder++ {
		dir := filepath.Join(d.Path(), fmt.Sprint(folder))
		must(t, os.Mkdir(dir, 0o700))
		for made++; made%1000 != 0 && made < most-2; made++ {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(made)), nil, 0o600))
		}
	}
	must(t, d.Write("last/one", nil))
	err := d.Write("more", nil)
	if !errors.Is(err, workspace.ErrQuota) || !strings.Contains(err.Error(), "20000") {
		t.Errorf("file %d is not refused: %v", most+1, err)
	}
	must(t, d.Write("last/one", []byte("a longer content")))
	must(t, os.RemoveAll(filepath.Join(d.Path(), "0")))
	must(t, d.Write("more", nil))
}

func TestWrittenPathsAreBounded(t *testing.T) {
	d := newDir(t)
	must(t, d.Write(strings.Repeat("d/", 31)+"file", nil))
	long := strings.Repeat(strings.Repeat("n", 200)+"/", 5)
	must(t, d.Write(long+strings.Repeat("f", 19), nil))
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

// deepen makes a path of n folders, as older releases allowed, with a file at its end.
func deepen(t *testing.T, dir string, n int) {
	t.Helper()
	at, err := os.OpenRoot(dir)
	must(t, err)
	for range n {
		must(t, at.Mkdir("d", 0o700))
		below, err := at.OpenRoot("d")
		must(t, err)
		must(t, at.Close())
		at = below
	}
	must(t, at.WriteFile("end", []byte("deep"), 0o600))
	must(t, at.Close())
}

// A file that an earlier release wrote deeper than is allowed now can be read, does not
// hinder other writes, and is removed with its session.
func TestWhatIsDeeperFromBefore(t *testing.T) {
	all := newAll(t, workspace.Config{})
	d := open(t, all, "main:a:b")
	deepen(t, d.Path(), 2000)
	must(t, os.MkdirAll(filepath.Join(d.Path(), strings.Repeat("e/", 40)), 0o700))
	must(t, os.WriteFile(filepath.Join(d.Path(), strings.Repeat("e/", 40), "end"), []byte("read me"), 0o600))
	if got, err := fs.ReadFile(d, strings.Repeat("e/", 40)+"end"); err != nil || string(got) != "read me" {
		t.Errorf("it reads %q, %v", got, err)
	}
	must(t, d.Write("beside", nil))
	if removed, err := all.Remove(t.Context(), "main:a:b"); !removed || err != nil {
		t.Errorf("Remove = %v, %v", removed, err)
	}
	if _, err := os.Lstat(d.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestMeasuringEndsWithItsContext(t *testing.T) {
	d := newDir(t)
	must(t, os.WriteFile(filepath.Join(d.Path(), "before"), nil, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, d := range map[string]*workspace.Dir{"alone": d.WithContext(ctx), "with a limit": d.WithContext(ctx).WritableUntil(time.Now().Add(time.Hour))} {
		if err := d.Write("a", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: a write that is called off gives %v", name, err)
		}
	}
	must(t, d.Write("a", nil)) // as nothing was remembered of the half look
}

// A name that only resembles a temporary one may be used; a temporary one may not.
func TestNamesOfWritesUnderWay(t *testing.T) {
	d := newDir(t)
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{".parley-notes.tmp", ".parley-.tmp", ".parley-" + strings.Repeat("A", 26) + ".tmp", ".parley-" + strings.Repeat("a", 25) + "1.tmp"} {
		must(t, d.Write(name, []byte("mine")))
		must(t, os.Chtimes(filepath.Join(d.Path(), name), long, long))
	}
	all, err := workspace.New(workspace.Config{Root: filepath.Dir(filepath.Dir(d.Path()))}) // as after a restart
	must(t, err)
	defer func() { must(t, all.Close()) }()
	d = open(t, all, "main:telegram:42")
	must(t, d.Write("new", nil))
	entries, err := d.ReadDir(".")
	if err != nil || len(entries) != 5 {
		t.Errorf("there is %v, %v; want five files", entries, err)
	}
	tryEveryOperation(t, d, ".parley-"+strings.Repeat("a", 26)+".tmp", fs.ErrInvalid)
	tryEveryOperation(t, d, "sub/.parley-"+strings.Repeat("7", 26)+".tmp/x", fs.ErrInvalid)
}

// Measuring opens no more than it needs.
func TestMeasuringClosesWhatItOpens(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	d := newDir(t)
	for i := range 50 {
		must(t, os.MkdirAll(filepath.Join(d.Path(), fmt.Sprint(i), "a", "b"), 0o700))
	}
	must(t, syscall.Mkfifo(filepath.Join(d.Path(), "pipe"), 0o600))
	before := descriptors()
	must(t, d.Write("a", nil))
	if now := descriptors(); now > before {
		t.Errorf("%d descriptors stay open", now-before)
	}
}
