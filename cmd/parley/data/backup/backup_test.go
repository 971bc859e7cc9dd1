package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/cmd/parley/data/backup"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/hometest"
	"parley/sessions"
)

// These variables make this process restore a backup in a directory, and kill itself at a point.
const restoreIn, dieAt = "BACKUPTEST_RESTORE", "BACKUPTEST_DIE_AT"

func TestMain(m *testing.M) {
	if home := os.Getenv(restoreIn); home != "" {
		restoreAndDie(home, os.Getenv(dieAt))
	}
	os.Exit(m.Run())
}

func restoreAndDie(home, at string) {
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(home), "backup"))
	if err == nil {
		_, err = backup.Read(context.Background(), bytes.NewReader(raw), home, backup.Options{Force: true, Point: func(name string) {
			if name == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
		}})
	}
	fmt.Fprintln(os.Stderr, "not killed:", err)
	os.Exit(1)
}

func write(t *testing.T, home string) ([]byte, backup.Manifest) {
	t.Helper()
	var b bytes.Buffer
	m, err := backup.Write(t.Context(), backup.Source{Home: home, Workspaces: filepath.Join(home, "workspaces"), Version: "test"}, &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), m
}

func read(t *testing.T, raw []byte, home string, o backup.Options) (backup.RestoreResult, error) {
	t.Helper()
	return backup.Read(t.Context(), bytes.NewReader(raw), home, o)
}

// tree returns the files below a directory that matter, by name.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasSuffix(path, ".lock") {
			return err
		}
		raw, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func equal(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s has %d bytes, want %d", what, name, len(got[name]), len(want[name]))
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is there", what, name)
		}
	}
}

// homeWithWord makes a closed home in which a person has said a word and had the agent write it to a file.
func homeWithWord(t *testing.T, dir, word string) {
	t.Helper()
	fillWithWord(t, dir, word, hometest.Open)
}

// homeBefore makes a home like that of homeWithWord, in the form of the release before this one.
func homeBefore(t *testing.T, dir, word string) {
	t.Helper()
	fillWithWord(t, dir, word, hometest.OpenBefore)
}

func fillWithWord(t *testing.T, dir, word string, open func(testing.TB, string) *hometest.Home) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h := open(t, dir)
	stop := h.RunWorker(nil)
	send := h.RunDispatcher(channelstest.NewMemoryChannel())
	h.Say("m-"+word, "42", "42", "write "+word+" to "+word+".txt")
	h.WaitIdle()
	send()
	stop()
	h.Close()
}

// checkWord checks that a home works and was made with that word.
func checkWord(t *testing.T, dir, word string) {
	t.Helper()
	h := hometest.Open(t, dir)
	defer h.Close()
	if _, err := h.Store.Find(t.Context(), hometest.Key(t, "42"), "m-"+word); err != nil {
		t.Errorf("the log: %v", err)
	}
	if _, err := h.Book.Lookup(t.Context(), "m-"+word+"#reply"); err != nil {
		t.Errorf("the book: %v", err)
	}
	d, err := h.Workspaces.Open(hometest.Key(t, "42"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Stat(word + ".txt"); err != nil {
		t.Errorf("the workspace: %v", err)
	}
}

func TestBackupAndRestore(t *testing.T) {
	home := t.TempDir()
	homeWithWord(t, home, "first")
	space := filepath.Join(home, "workspaces", "main", "telegram:42")
	for name, content := range map[string]string{
		"token": "the owner's", "parley.toml": "secret = 1", "bus.db.lock": "1", "parley.sock": "",
		"workspaces/marker": "beside", "workspaces/main/telegram:42/.parley-abcdefghijklmnopqrstuvwxyz.tmp": "half",
		"workspaces/main/telegram:42/run.sh": "#!/bin/sh", "workspaces/main/telegram:42/deep/ä b.txt": "x",
		"workspaces/main/telegram:42/.parley-notes.tmp": "somebody's own",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(filepath.Join(space, "run.sh"), 0o755))
	must(os.Mkdir(filepath.Join(space, "empty"), 0o755))
	must(os.Symlink("/etc/passwd", filepath.Join(space, "link")))
	must(os.Symlink("/etc", filepath.Join(space, "folder")))
	must(os.Link(filepath.Join(home, "token"), filepath.Join(space, "hard")))
	must(syscall.Mkfifo(filepath.Join(space, "pipe"), 0o600))

	raw, m := write(t, home)
	for _, name := range []string{"main/telegram:42/link", "main/telegram:42/folder", "main/telegram:42/hard", "main/telegram:42/pipe"} {
		if !slices.Contains(m.Skipped, name) {
			t.Errorf("%s is not told as skipped: %q", name, m.Skipped)
		}
	}
	if left := tree(t, home); len(left) == 0 || slices.ContainsFunc(keys(left), func(n string) bool { return strings.Contains(n, ".backup-") }) {
		t.Errorf("the home has %q", keys(left))
	}
	elsewhere := filepath.Join(t.TempDir(), "new", "home")
	got, err := read(t, raw, elsewhere, backup.Options{Try: func(_ context.Context, dir string) error {
		hometest.Open(t, dir).Close()
		return nil
	}})
	if err != nil || got.Aside != "" || got.Version != "test" || got.At.IsZero() {
		t.Fatalf("%+v, %v", got, err)
	}
	files := slices.DeleteFunc(keys(tree(t, elsewhere)), func(n string) bool { return strings.HasSuffix(n, "-wal") || strings.HasSuffix(n, "-shm") })
	want := []string{"/sessions.db", "/workspaces/main/telegram:42/.parley-notes.tmp", "/workspaces/main/telegram:42/deep/ä b.txt", "/workspaces/main/telegram:42/first.txt", "/workspaces/main/telegram:42/run.sh"}
	if !slices.Equal(files, want) {
		t.Errorf("the new home has\n%q, want\n%q", files, want)
	}
	if info, err := os.Stat(filepath.Join(elsewhere, "workspaces/main/telegram:42/run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("run.sh is %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(elsewhere, "workspaces/main/telegram:42/empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty folder: %v", err)
	}
	checkWord(t, elsewhere, "first")
}

func keys(m map[string]string) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestUsedHomeIsMovedAside(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	homeWithWord(t, first, "first")
	homeWithWord(t, second, "second")
	before := tree(t, second)
	raw, _ := write(t, first)
	if _, err := read(t, raw, second, backup.Options{}); !errors.Is(err, backup.ErrUsed) {
		t.Fatalf("restored into a used home: %v", err)
	}
	equal(t, "refused", tree(t, second), before)
	refused := errors.New("does not open")
	if _, err := read(t, raw, second, backup.Options{Force: true, Try: func(context.Context, string) error { return refused }}); !errors.Is(err, refused) {
		t.Fatalf("restored what does not open: %v", err)
	}
	equal(t, "refused", tree(t, second), before)

	h := hometest.Open(t, second)
	if _, err := read(t, raw, second, backup.Options{Force: true}); !isInUse(err) {
		t.Fatalf("restored into a home that is open: %v", err)
	}
	h.Close()
	got, err := read(t, raw, second, backup.Options{Force: true})
	if err != nil {
		t.Fatal(err)
	}
	checkWord(t, second, "first")
	checkWord(t, got.Aside, "second")
	asides, err := backup.OldDataDirs(second)
	if err != nil || !slices.Equal(asides, []string{got.Aside}) {
		t.Errorf("asides are %q, %v", asides, err)
	}
}

func isInUse(err error) bool {
	_, ok := errors.AsType[*sqlitebus.InUseError](err)
	return ok
}

// A damaged or incomplete backup is refused. The home then is missing, or byte for byte what it was.
func TestDamagedBackupIsRefused(t *testing.T) {
	dir := t.TempDir()
	homeWithWord(t, filepath.Join(dir, "home"), "first")
	raw, _ := write(t, filepath.Join(dir, "home"))
	whole := filepath.Join(dir, "whole")
	if _, err := read(t, raw, whole, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	want := tree(t, whole)
	try := func(what string, broken []byte, mayPass bool) {
		t.Helper()
		home := filepath.Join(dir, "try")
		defer os.RemoveAll(home)
		_, err := read(t, broken, home, backup.Options{})
		switch {
		case err == nil && mayPass:
			equal(t, what, tree(t, home), want)
		case !errors.Is(err, backup.ErrDamaged):
			t.Errorf("%s: %v", what, err)
		case len(tree(t, home)) > 0:
			t.Errorf("%s: the home has %q", what, keys(tree(t, home)))
		}
	}
	for n := range 60 {
		cut := n * len(raw) / 60
		try(fmt.Sprint("cut at ", cut), raw[:cut], false)
	}
	for n := range 20 {
		try(fmt.Sprint("cut by ", n+1), raw[:len(raw)-n-1], false)
	}
	for n := range 100 {
		broken := bytes.Clone(raw)
		broken[n*len(raw)/100] ^= 1 << (n % 8)
		try(fmt.Sprint("a bit altered at ", n*len(raw)/100), broken, true) // the time in the head doesn't matter
	}
	try("something behind it", append(bytes.Clone(raw), "more"...), false)
	try("nothing", nil, false)
	try("a text", []byte(strings.Repeat("this is a text ", 100)), false)
}

// repack changes the tar inside a backup.
func repack(t *testing.T, raw []byte, change func(h *tar.Header, content []byte, put func(*tar.Header, []byte))) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	put := func(h *tar.Header, content []byte) {
		h.Size = int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(unzipped)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		content, readErr := io.ReadAll(r)
		if err != nil || readErr != nil {
			t.Fatal(err, readErr)
		}
		change(h, content, put)
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestForgedBackupIsRefused(t *testing.T) {
	dir := t.TempDir()
	homeWithWord(t, filepath.Join(dir, "home"), "first")
	raw, _ := write(t, filepath.Join(dir, "home"))
	isList := func(h *tar.Header) bool { return h.Name == "manifest.json" }
	adding := func(extra tar.Header, content string) func(*tar.Header, []byte, func(*tar.Header, []byte)) {
		return func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) {
			if isList(h) {
				put(&extra, []byte(content))
			}
			put(h, was)
		}
	}
	for what, change := range map[string]func(*tar.Header, []byte, func(*tar.Header, []byte)){
		"a path that leads out":   adding(tar.Header{Typeflag: tar.TypeReg, Name: "../evil", Mode: 0o600}, "x"),
		"a path that leads up":    adding(tar.Header{Typeflag: tar.TypeReg, Name: "workspaces/../../evil", Mode: 0o600}, "x"),
		"an absolute path":        adding(tar.Header{Typeflag: tar.TypeReg, Name: filepath.Join(dir, "evil"), Mode: 0o600}, "x"),
		"a folder that leads out": adding(tar.Header{Typeflag: tar.TypeDir, Name: "workspaces/../../evil/", Mode: 0o700}, ""),
		"a symbolic link":         adding(tar.Header{Typeflag: tar.TypeSymlink, Name: "workspaces/a", Linkname: "/etc"}, ""),
		"a hard link":             adding(tar.Header{Typeflag: tar.TypeLink, Name: "workspaces/a", Linkname: "bus.db"}, ""),
		"a device":                adding(tar.Header{Typeflag: tar.TypeChar, Name: "workspaces/a", Devmajor: 1, Devminor: 3}, ""),
		"a pipe":                  adding(tar.Header{Typeflag: tar.TypeFifo, Name: "workspaces/a"}, ""),
		"a token":                 adding(tar.Header{Typeflag: tar.TypeReg, Name: "token", Mode: 0o600}, "x"),
		"a log of a database's":   adding(tar.Header{Typeflag: tar.TypeReg, Name: "bus.db-wal", Mode: 0o600}, "x"),
		"a file twice":            adding(tar.Header{Typeflag: tar.TypeReg, Name: "sessions.db", Mode: 0o600}, "x"),
		"a file not on the list":  adding(tar.Header{Typeflag: tar.TypeReg, Name: "workspaces/a", Mode: 0o600}, "x"),
		"no list": func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) {
			if !isList(h) {
				put(h, was)
			}
		},
		"a file left out": func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) {
			if h.Name != "sessions.db" {
				put(h, was)
			}
		},
		"a file altered": func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) {
			if h.Name == "sessions.db" {
				was[len(was)/2] ^= 1
			}
			put(h, was)
		},
		"a list that is none": func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) {
			if isList(h) {
				was = []byte("{")
			}
			put(h, was)
		},
		"something behind the list": func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) {
			put(h, was)
			if isList(h) {
				put(&tar.Header{Typeflag: tar.TypeReg, Name: "workspaces/a", Mode: 0o600}, nil)
			}
		},
	} {
		home := filepath.Join(dir, "try")
		_, err := read(t, repack(t, raw, change), home, backup.Options{})
		if !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "evil")); err == nil || len(tree(t, home)) > 0 {
			t.Errorf("%s: something was written", what)
		}
	}
	newer := repack(t, raw, func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) {
		put(h, bytes.Replace(was, []byte(`"format": 1`), []byte(`"format": 9`), 1))
	})
	if _, err := read(t, newer, filepath.Join(dir, "try"), backup.Options{}); !errors.Is(err, backup.ErrNewer) {
		t.Errorf("a newer format: %v", err)
	}
	if _, err := read(t, repack(t, raw, func(h *tar.Header, was []byte, put func(*tar.Header, []byte)) { put(h, was) }), filepath.Join(dir, "try"), backup.Options{}); err != nil {
		t.Errorf("packed again as it was: %v", err)
	}
}

// A backup of the previous release can be restored in any home. Its files are migrated when the home is opened.
func TestRestoreTakesABackupOfTheReleaseBefore(t *testing.T) {
	dir := t.TempDir()
	older, home := filepath.Join(dir, "older"), filepath.Join(dir, "home")
	homeBefore(t, older, "old")
	homeWithWord(t, home, "new")
	raw, _ := write(t, older)
	if err := backup.Check(t.Context(), bytes.NewReader(raw), home, homedb.Check); err != nil {
		t.Error(err)
	}
	got, err := read(t, raw, home, backup.Options{Force: true, Try: homedb.Check})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bus.db", "sessions.db", "book.db"} {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			t.Error(err)
		}
	}
	checkWord(t, home, "old")
	checkWord(t, got.Aside, "new")
}

// A restore that is killed at any point leaves the whole old home or the whole new one.
func TestRestoreKilled(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for at, decided := range map[string]bool{
		"unpacked": false, "commit:before": false, "committed": true, "aside bus.db": true, "aside sessions.db": true, "aside workspaces": true,
		"placing": true, "placed sessions.db": true, "placed workspaces": true,
	} {
		t.Run(at, func(t *testing.T) {
			dir := t.TempDir()
			home, other := filepath.Join(dir, "home"), filepath.Join(dir, "other")
			homeBefore(t, home, "old")
			homeWithWord(t, other, "new")
			before := tree(t, home)
			raw, _ := write(t, other)
			if err := os.WriteFile(filepath.Join(dir, "backup"), raw, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), exe)
			cmd.Env = append(os.Environ(), restoreIn+"="+home, dieAt+"="+at)
			cmd.Stderr = os.Stderr
			if err := cmd.Run(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the child ended with %v", err)
			}
			if err := errors.Join(backup.Finish(home), backup.Sweep(home)); err != nil {
				t.Fatal(err)
			}
			if !decided {
				equal(t, "not decided", tree(t, home), before)
				checkWord(t, home, "old")
				return
			}
			checkWord(t, home, "new")
			asides, err := backup.OldDataDirs(home)
			if err != nil || len(asides) != 1 {
				t.Fatal(asides, err)
			}
			checkWord(t, asides[0], "old")
			for name := range tree(t, home) {
				if strings.Contains(name, "restor") && !strings.HasPrefix(name, "/"+filepath.Base(asides[0])) {
					t.Errorf("%s is left", name)
				}
			}
		})
	}
}

// A backup that is made while many people talk to the bot continues, after a restore, as after a crash at that
// instant.
func TestBackupUnderLoad(t *testing.T) {
	const chats, each = 8, 30
	h := hometest.Open(t, t.TempDir())
	h.RunWorker(nil)
	platform := channelstest.NewMemoryChannel()
	h.RunDispatcher(platform)
	var said atomic.Int64
	var saying sync.WaitGroup
	var mu sync.Mutex
	var all []string // accepted messages, as CHAT/ID
	type taken struct {
		raw      []byte
		accepted []string
	}
	var backups []taken
	for c := range chats {
		saying.Go(func() {
			for n := range each {
				id, chat := fmt.Sprintf("m%d-%d", c, n), fmt.Sprint(100+c)
				hometest.WaitFor(t, "answers", func() bool { return len(platform.Texts(chat)) >= n-3 })
				h.Say(id, chat, chat, fmt.Sprintf("write %s to %s.txt", id, id))
				mu.Lock()
				all = append(all, chat+"/"+id)
				mu.Unlock()
				said.Add(1)
			}
		})
	}
	for n := range int64(3) {
		hometest.WaitFor(t, "some to be said", func() bool { return said.Load() > (n+1)*chats*each/4 })
		mu.Lock()
		accepted := slices.Clone(all)
		mu.Unlock()
		raw, _ := write(t, h.Dir)
		backups = append(backups, taken{raw, accepted})
	}
	saying.Wait()
	h.WaitIdle()
	for _, b := range backups {
		goesOn(t, b.raw, b.accepted, all)
	}
}

// goesOn restores a backup, and checks that each message that was accepted before it is answered once, and so is each
// other message in it.
func goesOn(t *testing.T, raw []byte, accepted, all []string) {
	t.Helper()
	home := t.TempDir()
	if _, err := read(t, raw, home, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	b := hometest.Open(t, home)
	inbound, outbound := b.Depth(bus.InboundTopic), b.Depth(bus.OutboundTopic(hometest.Channel))
	t.Logf("%d accepted before it, %d KB, restored with %d waiting to be answered and %d to be sent", len(accepted), len(raw)>>10, inbound.Waiting, outbound.Waiting)
	if inbound.Waiting+outbound.Waiting == 0 {
		t.Error("nothing was under way: the test has shown nothing")
	}
	sent := map[string]int{} // as recorded in the book before anything goes on
	for _, m := range all {
		_, id, _ := strings.Cut(m, "/")
		s, err := b.Book.Lookup(t.Context(), id+"#reply")
		if err == nil && s.State() == channels.Sent {
			sent[id]++
		} else if err != nil && !errors.Is(err, channels.ErrNoSend) {
			t.Error(err)
		}
	}
	platform := channelstest.NewMemoryChannel()
	b.RunWorker(nil)
	b.RunDispatcher(platform)
	b.WaitIdle()
	for _, a := range platform.Sent() {
		id, _, _ := strings.Cut(a.Part.Key, "#reply/")
		sent[id]++
	}
	for _, m := range all {
		chat, id, _ := strings.Cut(m, "/")
		// A message that arrives while a turn runs joins that turn, and is answered with it.
		e, err := b.Store.Find(t.Context(), hometest.Key(t, chat), id)
		if errors.Is(err, sessions.ErrNotFound) && !slices.Contains(accepted, m) {
			continue
		}
		if err != nil {
			t.Errorf("%s is not known: %v", m, err)
			continue
		}
		if sent[e.Turn] != 1 {
			t.Errorf("%s, of turn %s, was answered %d times", m, e.Turn, sent[e.Turn])
		}
		turns := 0
		for e, err := range b.Store.Read(t.Context(), hometest.Key(t, chat), 1) {
			if err == nil && e.Kind == sessions.KindTurnStarted && e.Turn == id {
				turns++
			}
		}
		if turns > 1 || turns == 1 && e.Turn != id {
			t.Errorf("%s began %d turns and belongs to %s", m, turns, e.Turn)
		}
		d, err := b.Workspaces.Open(hometest.Key(t, chat))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Stat(id + ".txt"); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

func TestBackupSaysWhatIsWrong(t *testing.T) {
	home := t.TempDir()
	homeWithWord(t, home, "first")
	full := errors.New("disk full")
	if _, err := backup.Write(t.Context(), backup.Source{Home: home}, failing{full}); !errors.Is(err, full) {
		t.Errorf("onto a full disk: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.Write(ctx, backup.Source{Home: home}, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	raw, _ := write(t, home)
	if _, err := backup.Read(ctx, bytes.NewReader(raw), filepath.Join(home, "new"), backup.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	for name := range tree(t, home) {
		if strings.Contains(name, ".backup-") || strings.Contains(name, ".restoring-") {
			t.Errorf("%s is left", name)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
