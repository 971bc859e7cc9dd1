package workspace_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/sessions/workspace"
)

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDirIsAFilesystem(t *testing.T) {
	d := newDir(t)
	requireNoError(t, d.Write("a/b/c.txt", []byte("deep")))
	requireNoError(t, d.Write("top.txt", []byte("top")))
	var seen []string
	requireNoError(t, fs.WalkDir(d, ".", func(path string, _ fs.DirEntry, err error) error {
		seen = append(seen, path)
		return err
	}))
	if got := strings.Join(seen, " "); got != ". a a/b a/b/c.txt top.txt" {
		t.Errorf("the walk saw %s", got)
	}
	if got, err := fs.ReadFile(d, "a/b/c.txt"); err != nil || string(got) != "deep" {
		t.Errorf("read %q, %v", got, err)
	}
	sub, err := fs.Sub(d, "a")
	requireNoError(t, err)
	if got, err := fs.ReadFile(sub, "b/c.txt"); err != nil || string(got) != "deep" {
		t.Errorf("read through Sub %q, %v", got, err)
	}
}

func TestWriteReplacesWhole(t *testing.T) {
	d := newDir(t)
	requireNoError(t, d.Write("run.sh", []byte("old")))
	path := filepath.Join(d.Path(), "run.sh")
	requireNoError(t, os.Chmod(path, 0o751))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			got, err := fs.ReadFile(d, "run.sh")
			if err != nil || string(got) != "old" && len(got) != 1<<20 {
				t.Errorf("a reader found %d bytes, %v", len(got), err)
				return
			}
		}
	})
	for range 20 {
		requireNoError(t, d.Write("run.sh", make([]byte, 1<<20)))
		requireNoError(t, d.Write("run.sh", []byte("old")))
	}
	close(stop)
	wg.Wait()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("the mode became %v, %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(d.Path())
	if err != nil || len(entries) != 1 {
		t.Errorf("writing left traces: %v, %v", entries, err)
	}
}

func TestUpdate(t *testing.T) {
	d := newDir(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := d.Update("log", 1000, func(old []byte) ([]byte, error) { return append(old, 'x'), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := fs.ReadFile(d, "log"); err != nil || string(got) != strings.Repeat("x", 20) {
		t.Errorf("after 20 updates there is %q, %v", got, err)
	}
	no := errors.New("no")
	if err := d.Update("log", 1000, func([]byte) ([]byte, error) { return nil, no }); err != no { //nolint:errorlint // it must be the very error
		t.Errorf("the error of change came back as %v", err)
	}
	if err := d.Update("log", 19, func([]byte) ([]byte, error) { return nil, nil }); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a file over the limit gave %v", err)
	}
	requireNoError(t, d.Update("new", 10, func(old []byte) ([]byte, error) {
		if old != nil {
			t.Errorf("a missing file gave %q", old)
		}
		return []byte{}, nil
	}))
	requireNoError(t, d.Update("new", 10, func(old []byte) ([]byte, error) {
		if old == nil {
			t.Error("an empty file counts as missing")
		}
		return old, nil
	}))
}

func TestRemoveOfAFile(t *testing.T) {
	d := newDir(t)
	requireNoError(t, d.Write("sub/a.txt", []byte("x")))
	requireNoError(t, d.Remove("sub/a.txt"))
	requireNoError(t, d.Remove("sub/a.txt")) // the file is already gone
	if _, err := d.Stat("sub/a.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is %v", err)
	}
	outside := filepath.Join(t.TempDir(), "kept")
	requireNoError(t, os.WriteFile(outside, nil, 0o600))
	requireNoError(t, os.Symlink(outside, filepath.Join(d.Path(), "link")))
	for _, path := range []string{"sub", ".", "../x", "", outside, "link"} {
		if err := d.Remove(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("removing %q gives %v", path, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestLeftoversOfACrashAreRemoved(t *testing.T) {
	d := newDir(t)
	requireNoError(t, d.Write("sub/a", nil))
	stale, fresh := filepath.Join(d.Path(), ".parley-"+strings.Repeat("a", 26)+".tmp"), filepath.Join(d.Path(), ".parley-"+strings.Repeat("b", 26)+".tmp")
	requireNoError(t, os.WriteFile(stale, nil, 0o600))
	requireNoError(t, os.WriteFile(fresh, nil, 0o600))
	long := time.Now().Add(-time.Hour)
	requireNoError(t, os.Chtimes(stale, long, long))
	entries, err := d.ReadDir(".")
	if err != nil || len(entries) != 1 || entries[0].Name() != "sub" {
		t.Errorf("the listing shows %v, %v", entries, err)
	}
	requireNoError(t, d.Write("b", nil))
	if _, err := os.Lstat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a crash left is still there: %v", err)
	}
	if _, err := os.Lstat(fresh); err != nil {
		t.Errorf("a write under way elsewhere was disturbed: %v", err)
	}
}

// tryEveryOperation tries every operation on a path. Each must fail immediately with want, and without naming
// the host's directories.
func tryEveryOperation(t *testing.T, d *workspace.Dir, path string, want error) {
	t.Helper()
	attempts := map[string]func() error{
		"open": func() error {
			f, err := d.Open(path)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"write":  func() error { return d.Write(path, []byte("evil")) },
		"update": func() error { return d.Update(path, 100, func([]byte) ([]byte, error) { return []byte("evil"), nil }) },
	}
	for name, attempt := range attempts {
		done := make(chan error, 1)
		go func() { done <- attempt() }()
		select {
		case err := <-done:
			if !errors.Is(err, want) {
				t.Errorf("%s %q = %v, want %v", name, path, err, want)
			} else if strings.Contains(err.Error(), filepath.Dir(d.Path())) {
				t.Errorf("%s %q names the host's path: %v", name, path, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s %q does not come back", name, path)
		}
	}
}

func TestLinksOutOfTheDirectoryAreRefused(t *testing.T) {
	d := newDir(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	requireNoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	in := func(name string) string { return filepath.Join(d.Path(), name) }
	requireNoError(t, d.Write("inside.txt", []byte("in")))
	requireNoError(t, os.Symlink(secret, in("file")))
	requireNoError(t, os.Symlink(outside, in("dir")))
	up, err := filepath.Rel(d.Path(), outside)
	requireNoError(t, err)
	requireNoError(t, os.Symlink(up, in("relative")))
	requireNoError(t, os.Symlink(filepath.Join(outside, "new"), in("dangling")))
	requireNoError(t, os.Symlink(in("inside.txt"), in("absolute")))
	requireNoError(t, os.Symlink("loop", in("loop")))
	requireNoError(t, os.Link(secret, in("hard")))
	for _, path := range []string{
		"file", "file/", "dir/secret", "dir/new", "dir/sub/new", "relative/secret", "relative/new/x", "dangling", "dangling/x", "absolute", "loop", "loop/x", "hard", "../x",
	} {
		tryEveryOperation(t, d, path, fs.ErrInvalid)
	}
	for _, path := range []string{"dir", "dir/", "relative", "absolute"} {
		if entries, err := d.ReadDir(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("ReadDir(%q) = %v, %v", path, entries, err)
		}
		if info, err := d.Stat(path); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Stat(%q) = %v, %v", path, info, err)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("something was made outside: %v, %v", entries, err)
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != "secret" {
		t.Errorf("the file outside became %q, %v", got, err)
	}
	// A link to a place inside the directory is followed for reading.
	requireNoError(t, os.Symlink("inside.txt", in("soft")))
	if got, err := fs.ReadFile(d, "soft"); err != nil || string(got) != "in" {
		t.Errorf("a link inside gave %q, %v", got, err)
	}
	if err := d.Write("soft", nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("writing replaced a link: %v", err)
	}
}

func TestIrregularFilesAreRefused(t *testing.T) {
	d := newDir(t)
	in := func(name string) string { return filepath.Join(d.Path(), name) }
	requireNoError(t, syscall.Mkfifo(in("pipe"), 0o600))
	requireNoError(t, os.Mkdir(in("folder"), 0o700))
	requireNoError(t, d.Write("plain", nil))
	tryEveryOperation(t, d, "pipe", fs.ErrInvalid)
	tryEveryOperation(t, d, "folder", fs.ErrInvalid)
	tryEveryOperation(t, d, "folder/", fs.ErrInvalid)
	tryEveryOperation(t, d, "plain/x", fs.ErrInvalid)
	tryEveryOperation(t, d, ".", fs.ErrInvalid)
	t.Run("socket", func(t *testing.T) {
		t.Chdir(d.Path()) // the path of a socket must be short
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "socket")
		requireNoError(t, err)
		defer func() { requireNoError(t, l.Close()) }()
		tryEveryOperation(t, d, "socket", fs.ErrInvalid)
	})
	t.Run("device", func(t *testing.T) {
		if err := syscall.Mknod(in("null"), syscall.S_IFCHR|0o600, 1<<8|3); err != nil {
			t.Skip("needs the right to make devices: ", err)
		}
		tryEveryOperation(t, d, "null", fs.ErrInvalid)
	})
	if _, err := d.Open("missing"); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), d.Path()) {
		t.Errorf("a missing file gave %v", err)
	}
	if _, err := d.ReadDir("plain"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("listing a file gave %v", err)
	}
	if _, err := d.ReadDir("pipe"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("listing a pipe gave %v", err)
	}
}

// TestRace replaces a directory by a link out of the workspace while it is read and written through. No read
// may see what is outside, and no write may change it.
func TestRace(t *testing.T) {
	d := newDir(t)
	outside := t.TempDir()
	requireNoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("outside"), 0o600))
	requireNoError(t, d.Write("d/secret", []byte("inside")))
	in := func(name string) string { return filepath.Join(d.Path(), name) }
	requireNoError(t, os.Symlink(outside, in("l")))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, move := range [][2]string{{"d", "x"}, {"l", "d"}, {"d", "l"}, {"x", "d"}} {
				for os.Rename(in(move[0]), in(move[1])) != nil {
					// A write may have created the directory again while its name was free, and may still be
					// using it.
					_ = os.RemoveAll(in(move[1]))
				}
			}
		}
	})
	var seen, refused int
	for i := range 3000 {
		f, err := d.Open("d/secret")
		if err != nil {
			refused++
		} else {
			got, err := io.ReadAll(f)
			requireNoError(t, f.Close())
			if err != nil || string(got) != "inside" {
				t.Fatalf("a read saw %q, %v", got, err)
			}
			seen++
		}
		if i%10 == 0 {
			_ = d.Write("d/new", []byte("evil")) // may be refused
			_ = d.Write("d/deep/new", []byte("evil"))
		}
	}
	close(stop)
	wg.Wait()
	if seen == 0 || refused == 0 {
		t.Logf("the race was one-sided: %d reads, %d refusals", seen, refused)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("something was made outside: %v, %v", entries, err)
	}
}

func TestCreate(t *testing.T) {
	d := newDir(t)
	f, err := d.Create("jobs/one/output.txt")
	requireNoError(t, err)
	if _, err := d.Create("jobs/one/output.txt"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("creating it again gives %v", err)
	}
	_, err = f.WriteString("said")
	requireNoError(t, err)
	requireNoError(t, os.Rename(filepath.Join(d.Path(), "jobs"), filepath.Join(d.Path(), "moved")))
	_, err = f.WriteString(" more")
	requireNoError(t, errors.Join(err, f.Close()))
	if got, err := fs.ReadFile(d, "moved/one/output.txt"); err != nil || string(got) != "said more" {
		t.Errorf("the file has %q, %v", got, err)
	}
	outside := t.TempDir()
	requireNoError(t, os.Symlink(outside, filepath.Join(d.Path(), "jobs")))
	if _, err := d.Create("jobs/two"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("creating it outside gives %v", err)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
		t.Errorf("outside there is %v, %v", names, err)
	}
}

// A folder to which a command gave a temporary file's name does not disturb writes next to it.
func TestAFolderWithATemporaryNameStays(t *testing.T) {
	d := newDir(t)
	folder := filepath.Join(d.Path(), "in", ".parley-"+strings.Repeat("a", 26)+".tmp")
	if err := os.MkdirAll(filepath.Join(folder, "more"), 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(folder, old, old); err != nil {
		t.Fatal(err)
	}
	if err := d.Write("in/file", []byte("x")); err != nil {
		t.Error(err)
	}
}
