package snapshots_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/sessions/snapshots"
)

const session = "main:telegram:42"

func requireNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A historyTest is a workspace and its history.
type historyTest struct {
	testing.TB
	dir, root string
	cfg       snapshots.Config
	store     *snapshots.Store
	place     snapshots.Place
}

func newHistoryTest(t testing.TB, change func(*snapshots.Config)) *historyTest {
	t.Helper()
	b := &historyTest{TB: t, root: t.TempDir()}
	b.dir = filepath.Join(b.root, "main", "telegram:42")
	requireNoError(t, os.MkdirAll(b.dir, 0o700))
	b.place = snapshots.Place{Session: session, Dir: b.dir}
	b.cfg = snapshots.Config{
		Root: b.root, MaxBytes: 64 << 20, MaxTurns: 20,
		IsExcluded:    func(name string) bool { return strings.HasPrefix(filepath.Base(name), ".parley-") || name == ".agent" },
		TemporaryName: func() string { return ".parley-x.tmp" },
	}
	if change != nil {
		change(&b.cfg)
	}
	b.store = b.open()
	return b
}

func (b *historyTest) open() *snapshots.Store {
	b.Helper()
	s, err := snapshots.Open(b.cfg)
	requireNoError(b, err)
	b.Cleanup(func() { s.Close() })
	return s
}

func (b *historyTest) begin(turn string) {
	b.Helper()
	requireNoError(b, b.store.Begin(b.Context(), b.place, snapshots.TurnInfo{Turn: turn, Person: "telegram:42"}))
}

func (b *historyTest) end(turn string) {
	b.Helper()
	requireNoError(b, b.store.End(b.Context(), b.place, turn))
}

// runTurn changes the workspace as a turn would.
func (b *historyTest) runTurn(id string, change func()) {
	b.Helper()
	b.begin(id)
	change()
	b.end(id)
}

func (b *historyTest) undo(id string, n int) (own, undone snapshots.Record) {
	b.Helper()
	own, undone, err := b.store.Undo(b.Context(), b.place, snapshots.UndoRequest{ID: id, N: n})
	requireNoError(b, err)
	return own, undone
}

func (b *historyTest) path(name string) string { return filepath.Join(b.dir, name) }

func (b *historyTest) write(name, content string) {
	b.Helper()
	requireNoError(b, os.MkdirAll(filepath.Dir(b.path(name)), 0o755))
	requireNoError(b, os.WriteFile(b.path(name), []byte(content), 0o644))
}

// listAll returns everything in the workspace: exact contents, and modes.
func (b *historyTest) listAll() map[string]string {
	b.Helper()
	all := map[string]string{}
	requireNoError(b, filepath.WalkDir(b.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == b.dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(b.dir, name)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			all[rel] = "-> " + to
			return err
		case info.Mode().IsRegular():
			content, err := os.ReadFile(name)
			all[rel] = fmt.Sprintf("%v %d %x", info.Mode(), len(content), sha256.Sum256(content))
			return err
		}
		all[rel] = info.Mode().String()
		return nil
	}))
	return all
}

func (b *historyTest) requireSame(what string, got, want map[string]string) {
	b.Helper()
	for name := range want {
		if got[name] != want[name] {
			b.Errorf("%s: %q is %q, want %q", what, name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			b.Errorf("%s: there is %q: %s", what, name, got[name])
		}
	}
}

func restoredNames(r snapshots.Record) (names []string) {
	if r.Result != nil {
		for _, d := range r.Result.Restored {
			names = append(names, string(d.Path))
		}
	}
	return names
}

func leftNames(r snapshots.Record) (names []string) {
	if r.Result != nil {
		for _, l := range r.Result.Left {
			names = append(names, string(l.Path))
		}
	}
	return names
}

// makeEveryChange makes one change of each kind.
func (b *historyTest) makeEveryChange() {
	requireNoError(b, os.WriteFile(b.path("edited"), []byte("after, and longer"), 0o600))
	requireNoError(b, os.Truncate(b.path("emptied"), 0))
	requireNoError(b, os.Remove(b.path("deleted")))
	requireNoError(b, os.RemoveAll(b.path("tree")))
	requireNoError(b, os.Rename(b.path("old name"), b.path("new name")))
	requireNoError(b, os.Chmod(b.path("script"), 0o755))
	requireNoError(b, os.Chmod(b.path("folder"), 0o711))
	requireNoError(b, os.Remove(b.path("link")))
	requireNoError(b, os.Symlink("elsewhere", b.path("link")))
	requireNoError(b, os.Remove(b.path("becomes a folder")))
	b.write("becomes a folder/x", "x")
	requireNoError(b, os.RemoveAll(b.path("becomes a file")))
	b.write("becomes a file", "y")
	requireNoError(b, os.Remove(b.path("becomes a link")))
	requireNoError(b, os.Symlink("edited", b.path("becomes a link")))
	b.write("new/deep/file", "new")
	requireNoError(b, os.Mkdir(b.path("new empty"), 0o700))
	b.write("\xff\xfe not UTF-8", "new")
	requireNoError(b, os.WriteFile(b.path("binary"), []byte{0, 255, 1}, 0o644))
}

func (b *historyTest) writeAllKinds() {
	b.write("edited", "before")
	b.write("emptied", "not yet")
	b.write("deleted", "gone")
	b.write("tree/of/files", "1")
	b.write("tree/and/more", "2")
	requireNoError(b, os.MkdirAll(b.path("tree/empty"), 0o750))
	b.write("old name", "renamed")
	b.write("script", "#!/bin/sh\n")
	requireNoError(b, os.Mkdir(b.path("folder"), 0o700))
	requireNoError(b, os.Symlink("edited", b.path("link")))
	b.write("becomes a folder", "file")
	b.write("becomes a file/inner", "inner")
	b.write("becomes a link", "plain")
	requireNoError(b, os.WriteFile(b.path("binary"), bytes.Repeat([]byte{0, 1, 254}, 700_000), 0o444))
	b.write("untouched", "stays")
	b.write("old \xff", "stays")
}

func TestUndoRestoresEveryKindOfChange(t *testing.T) {
	b := newHistoryTest(t, nil)
	b.writeAllKinds()
	before := b.listAll()
	b.runTurn("t1", b.makeEveryChange)
	after := b.listAll()
	own, undone := b.undo("u1", 0)
	b.requireSame("undone", b.listAll(), before)
	if len(leftNames(own)) > 0 || undone.Turn != "t1" || own.UndoneRecord != undone.N {
		t.Errorf("left %v, of %+v", leftNames(own), undone.N)
	}
	own, _ = b.undo("u2", own.N)
	b.requireSame("the undo undone", b.listAll(), after)
	if len(leftNames(own)) > 0 {
		t.Errorf("left %v", leftNames(own))
	}
	own, _ = b.undo("u3", 0)
	b.requireSame("undone again", b.listAll(), before)
	if again, _ := b.undo("u3", 0); again.N != own.N || !slices.Equal(restoredNames(again), restoredNames(own)) {
		t.Errorf("asked again, the same undo gives %+v", again)
	}
	if _, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "u4"}); !errors.Is(err, snapshots.ErrNone) {
		t.Errorf("with nothing left to undo: %v", err)
	}
}

// A file that ran with its owner's rights is restored without that mode bit. If a turn has set the bit, it is
// removed.
func TestUndoRestoresNoSetuidBits(t *testing.T) {
	b := newHistoryTest(t, nil)
	mode := func(name string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(b.path(name))
		requireNoError(b, err)
		return info.Mode()
	}
	for _, name := range []string{"edited", "deleted", "chmod", "given"} {
		b.write(name, "before")
		if name != "given" {
			requireNoError(b, os.Chmod(b.path(name), 0o755|fs.ModeSetuid|fs.ModeSetgid))
		}
	}
	b.runTurn("t1", func() {
		b.write("edited", "after")
		requireNoError(b, os.Remove(b.path("deleted")))
		requireNoError(b, os.Chmod(b.path("chmod"), 0o700))
		requireNoError(b, os.Chmod(b.path("given"), 0o755|fs.ModeSetuid))
	})
	own, _ := b.undo("u1", 0)
	if len(leftNames(own)) > 0 {
		t.Errorf("left %v", leftNames(own))
	}
	for name, want := range map[string]fs.FileMode{"edited": 0o755, "deleted": 0o755, "chmod": 0o755, "given": 0o644} {
		if got := mode(name); got != want {
			t.Errorf("%s has the mode %v, want %v", name, got, want)
		}
	}
	if own, _ := b.undo("u1", 0); len(leftNames(own)) > 0 {
		t.Errorf("asked again, left %v", leftNames(own))
	}
}

// The changes of several turns are undone one after the other.
func TestTurnsAreUndoneOneByOne(t *testing.T) {
	b := newHistoryTest(t, nil)
	var states []map[string]string
	for i := range 4 {
		states = append(states, b.listAll())
		b.runTurn(fmt.Sprint("t", i), func() {
			b.write("a", strings.Repeat("x", i+1))
			b.write(fmt.Sprint("only ", i), "x")
		})
		b.runTurn(fmt.Sprint("nothing ", i), func() {})
	}
	for i := 3; i >= 0; i-- {
		b.undo(fmt.Sprint("u", i), 0)
		b.requireSame(fmt.Sprint("turn ", i), b.listAll(), states[i])
	}
}

func TestFilesThatOthersChangedAreLeft(t *testing.T) {
	b := newHistoryTest(t, nil)
	b.writeAllKinds()
	b.write("mine", "before")
	b.runTurn("t1", func() {
		b.makeEveryChange()
		b.write("mine", "turn")
		b.write("gone folder/inner", "x")
		b.write("made/by turn", "x")
	})
	b.write("mine", "person")
	b.write("deleted", "made again")
	requireNoError(t, os.RemoveAll(b.path("gone folder")))
	b.write("made/by person", "person")
	b.write("unconcerned", "person")
	own, _ := b.undo("u1", 0)
	want := []string{"deleted", "gone folder", "gone folder/inner", "made", "mine"}
	// What the turn created and somebody has removed since needs no undo.
	want = slices.DeleteFunc(want, func(n string) bool { return strings.HasPrefix(n, "gone") })
	if !slices.Equal(leftNames(own), want) {
		t.Errorf("left %q, want %q", leftNames(own), want)
	}
	for name, content := range map[string]string{"mine": "person", "deleted": "made again", "made/by person": "person", "unconcerned": "person", "edited": "before"} {
		if got, err := os.ReadFile(b.path(name)); err != nil || string(got) != content {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(b.path("made/by turn")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the turn has made is there: %v", err)
	}
}

// Changes that others make while a turn waits for people do not count as the turn's.
func TestChangesWhileATurnWaitsAreNotItsOwn(t *testing.T) {
	b := newHistoryTest(t, nil)
	b.write("a", "0")
	b.write("both", "0")
	b.write("back", "0")
	b.runTurn("t1", func() { b.write("a", "1"); b.write("both", "1"); b.write("back", "1") })
	b.write("person", "x")
	b.write("both", "person")
	b.runTurn("t1", func() { b.write("c", "1"); b.write("both", "2"); b.write("back", "0") })
	records, err := b.store.Records(b.place)
	requireNoError(t, err)
	if len(records) != 1 || len(records[0].Changes) != 3 {
		t.Fatalf("kept: %+v", records)
	}
	own, _ := b.undo("u1", 0)
	if !slices.Equal(leftNames(own), []string{"both"}) || !slices.Equal(restoredNames(own), []string{"a", "c"}) {
		t.Errorf("left %q, restored %q", leftNames(own), restoredNames(own))
	}
	if got, _ := os.ReadFile(b.path("both")); string(got) != "2" {
		t.Errorf("both is %q", got)
	}
}

// A repository is restored as a whole or not at all.
func TestRepositoriesAreRestoredWholeOrNotAtAll(t *testing.T) {
	for _, committed := range []bool{false, true} {
		b := newHistoryTest(t, nil)
		b.write("sub/.git/HEAD", "0")
		b.write("sub/.git/index", "0")
		b.write("sub/file", "0")
		before := b.listAll()
		b.runTurn("t1", func() {
			b.write("sub/.git/index", "1")
			b.write("sub/.git/objects/aa/bb", "1")
			b.write("sub/file", "1")
		})
		if committed {
			b.write("sub/.git/index", "2")
		}
		own, _ := b.undo("u1", 0)
		_, err := os.Stat(b.path("sub/.git/objects/aa/bb"))
		if gone := errors.Is(err, fs.ErrNotExist); gone == committed {
			t.Errorf("somebody has committed since: %v; the object is gone: %v (left %q)", committed, gone, leftNames(own))
		}
		if !committed {
			b.requireSame("undone", b.listAll(), before)
		} else if got, _ := os.ReadFile(b.path("sub/file")); string(got) != "0" {
			t.Errorf("the file beside it is %q", got)
		}
	}
}

// An interrupted turn is undone from the tree that it found.
func TestAnInterruptedTurnCanBeUndone(t *testing.T) {
	b := newHistoryTest(t, nil)
	b.writeAllKinds()
	before := b.listAll()
	b.begin("t1")
	b.makeEveryChange()
	b.store = b.open()
	b.begin("t1") // the turn continues
	b.write("more", "x")
	b.store = b.open()
	own, undone := b.undo("u1", 0)
	if undone.Turn != "t1" || len(leftNames(own)) > 0 {
		t.Errorf("undone %+v, left %q", undone.Turn, leftNames(own))
	}
	b.requireSame("undone", b.listAll(), before)
}

func (b *historyTest) writeFew() {
	b.write("edited", "before")
	b.write("tree/of/files", "1")
	requireNoError(b, os.Mkdir(b.path("folder"), 0o700))
	b.write("becomes a folder", "file")
	b.write("becomes a file/inner", "inner")
	b.write("closed/edited", "before")
	requireNoError(b, os.Chmod(b.path("closed"), 0o500))
	b.Cleanup(func() { _ = os.Chmod(b.path("closed"), 0o700) }) // otherwise not every user could remove it
}

func (b *historyTest) makeFewChanges() {
	b.write("edited", "after")
	b.write("closed/edited", "after")
	requireNoError(b, os.RemoveAll(b.path("tree")))
	requireNoError(b, os.Chmod(b.path("folder"), 0o711))
	requireNoError(b, os.Remove(b.path("becomes a folder")))
	b.write("becomes a folder/x", "x")
	requireNoError(b, os.RemoveAll(b.path("becomes a file")))
	b.write("becomes a file", "y")
	requireNoError(b, os.Symlink("edited", b.path("link")))
}

// An undo that was interrupted anywhere continues when it is requested again.
func TestUndoContinuesAfterACrash(t *testing.T) {
	type cut struct{}
	for stop := 1; ; stop++ {
		n := 0
		b := newHistoryTest(t, nil)
		b.writeFew()
		before := b.listAll()
		b.runTurn("t1", b.makeFewChanges)
		b.cfg.Point = func(string) {
			if n++; n == stop {
				panic(cut{})
			}
		}
		b.store = b.open()
		ended := func() (ended bool) {
			defer func() {
				if p := recover(); p != nil {
					if _, ours := p.(cut); !ours {
						panic(p)
					}
				}
			}()
			b.undo("u1", 0)
			return true
		}()
		b.cfg.Point = nil
		b.store = b.open()
		own, _ := b.undo("u1", 0)
		b.requireSame(fmt.Sprint("cut off at ", stop), b.listAll(), before)
		if len(leftNames(own)) > 0 {
			t.Errorf("cut off at %d: left %q", stop, leftNames(own))
		}
		if records, err := b.store.Records(b.place); err != nil || len(records) != 2 {
			t.Errorf("cut off at %d: %d records, %v", stop, len(records), err)
		}
		if own, _ := b.undo("u2", own.N); len(leftNames(own)) > 0 {
			t.Errorf("cut off at %d: undoing the undo left %q", stop, leftNames(own))
		}
		if ended || t.Failed() {
			return
		}
	}
}

// A process that has lost the session's lease changes nothing more, and the next process continues.
func TestUndoChecksTheLease(t *testing.T) {
	b := newHistoryTest(t, nil)
	b.writeAllKinds()
	before := b.listAll()
	b.runTurn("t1", b.makeEveryChange)
	lost, n := errors.New("lost"), 0
	_, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "u1", CheckLease: func(context.Context) error {
		if n++; n > 5 {
			return lost
		}
		return nil
	}})
	if !errors.Is(err, lost) {
		t.Fatalf("without the lease it gives %v", err)
	}
	if n != 6 {
		t.Errorf("asked %d times", n)
	}
	b.undo("u1", 0)
	b.requireSame("gone on", b.listAll(), before)
}

func TestFilesWithoutACopyAreNamed(t *testing.T) {
	b := newHistoryTest(t, func(c *snapshots.Config) { c.MaxBytes = 4096 })
	b.write("large", strings.Repeat("x", 1025))
	b.write("chmod", strings.Repeat("y", 1025))
	for i := range 5 {
		b.write(fmt.Sprint("part", i), strings.Repeat(fmt.Sprint(i), 1000))
	}
	requireNoError(t, syscall.Mkfifo(b.path("pipe"), 0o600))
	b.runTurn("t1", func() {
		b.write("large", "now small")
		requireNoError(t, os.Chmod(b.path("chmod"), 0o600))
		requireNoError(t, os.Remove(b.path("pipe")))
		for i := range 5 {
			requireNoError(t, os.Remove(b.path(fmt.Sprint("part", i))))
		}
		requireNoError(t, syscall.Mkfifo(b.path("new pipe"), 0o600))
	})
	own, _ := b.undo("u1", 0)
	why := map[string]string{}
	for _, l := range own.Result.Left {
		why[string(l.Path)] = l.Reason
	}
	if len(why) != 3 || !strings.Contains(why["large"], "too large") || why["pipe"] == "" {
		t.Errorf("left: %v", why)
	}
	noRoom := slices.Collect(maps.Keys(why))
	if !slices.ContainsFunc(noRoom, func(n string) bool { return strings.Contains(why[n], "no room") }) {
		t.Errorf("left: %v", why)
	}
	if info, err := os.Stat(b.path("chmod")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode of a large file: %v, %v", info.Mode(), err)
	}
	if _, err := os.Lstat(b.path("new pipe")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new pipe: %v", err)
	}
}

func TestADamagedCopyIsNotUsed(t *testing.T) {
	b := newHistoryTest(t, nil)
	b.write("a", "before")
	b.write("b", "other")
	b.runTurn("t1", func() { b.write("a", "after"); b.write("b", "after") })
	sum := fmt.Sprintf("kept-%x", sha256.Sum256([]byte("before")))
	found := 0
	requireNoError(t, filepath.WalkDir(filepath.Join(b.root, snapshots.Folder), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Base(name) == sum {
			found++
			requireNoError(t, os.WriteFile(name, []byte("befora"), 0o600))
		}
		return err
	}))
	own, _ := b.undo("u1", 0)
	if found != 1 || !slices.Equal(leftNames(own), []string{"a"}) || !slices.Equal(restoredNames(own), []string{"b"}) {
		t.Errorf("found %d, left %q, restored %q", found, leftNames(own), restoredNames(own))
	}
	if got, _ := os.ReadFile(b.path("a")); string(got) != "after" {
		t.Errorf("a is %q", got)
	}
}

// A change that keeps a file's size and time of modification is found, even within the same clock tick.
func TestChangesWithoutANewTimeAreFound(t *testing.T) {
	b := newHistoryTest(t, nil)
	at := time.Now().Add(-time.Hour)
	for i := range 10 {
		b.write("a", fmt.Sprintf("%04d", i))
		requireNoError(t, os.Chtimes(b.path("a"), at, at))
		before := b.listAll()
		b.runTurn(fmt.Sprint("t", i), func() {
			f, err := os.OpenFile(b.path("a"), os.O_WRONLY, 0)
			requireNoError(t, err)
			_, err = f.WriteString("turn")
			requireNoError(t, errors.Join(err, f.Close(), os.Chtimes(b.path("a"), at, at)))
		})
		b.undo(fmt.Sprint("u", i), 0)
		b.requireSame(fmt.Sprint(i), b.listAll(), before)
	}
}

func TestOnlyPermittedPeopleUndo(t *testing.T) {
	b := newHistoryTest(t, nil)
	b.runTurn("t1", func() { b.write("a", "x") })
	_, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "u1", MayUndo: func(r snapshots.Record) bool { return r.Person == "telegram:7" }})
	if !errors.Is(err, snapshots.ErrNotTheirs) {
		t.Errorf("somebody else: %v", err)
	}
	if _, err := os.Stat(b.path("a")); err != nil {
		t.Error(err)
	}
	if _, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "u1", N: 7}); !errors.Is(err, snapshots.ErrNone) {
		t.Errorf("an unknown number: %v", err)
	}
}

// The number and the age of turns are limited, and copies that no record names are removed.
func TestTheHistoryIsPruned(t *testing.T) {
	b := newHistoryTest(t, func(c *snapshots.Config) { c.MaxTurns = 3 })
	for i := range 10 {
		b.runTurn(fmt.Sprint("t", i), func() { b.write("a", fmt.Sprint("content ", i)) })
	}
	records, err := b.store.Records(b.place)
	requireNoError(t, err)
	if len(records) != 3 || records[2].N != 10 || records[0].N != 8 {
		t.Fatalf("kept: %d records", len(records))
	}
	copies := 0
	requireNoError(t, filepath.WalkDir(filepath.Join(b.root, snapshots.Folder), func(name string, e fs.DirEntry, err error) error {
		if strings.HasPrefix(e.Name(), "kept-") {
			copies++
		}
		return err
	}))
	if copies > 4 {
		t.Errorf("%d copies are kept for 3 turns", copies)
	}
	for i := range 3 {
		b.undo(fmt.Sprint("u", i), 0)
	}
	if got, _ := os.ReadFile(b.path("a")); string(got) != "content 6" {
		t.Errorf("a is %q", got)
	}
	b.cfg.MaxAge = time.Nanosecond
	b.store = b.open()
	if records, err := b.store.Records(b.place); err != nil || len(records) != 0 {
		t.Errorf("of what is too old %d are listed, %v", len(records), err)
	}
	if _, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "late"}); !errors.Is(err, snapshots.ErrNone) {
		t.Errorf("undoing what is too old gives %v", err)
	}
	b.runTurn("last", func() { b.write("a", "last") })
	if kept, err := filepath.Glob(filepath.Join(b.root, snapshots.Folder, "*", "*", "turn-*")); err != nil || len(kept) != 1 {
		t.Errorf("of what is too old %v are kept, %v", kept, err)
	}
	if n, err := b.store.SweepOld(t.Context()); n != 1 || err != nil {
		t.Errorf("swept of what is too old: %d, %v", n, err)
	}
}

func TestRemoveAndSweep(t *testing.T) {
	b := newHistoryTest(t, nil)
	own := snapshots.Place{Session: session, Dir: t.TempDir(), IsOwnDir: true}
	requireNoError(t, b.store.Begin(t.Context(), own, snapshots.TurnInfo{Turn: "o1"}))
	requireNoError(t, os.WriteFile(filepath.Join(own.Dir, "x"), nil, 0o600))
	requireNoError(t, b.store.End(t.Context(), own, "o1"))
	b.runTurn("t1", func() { b.write("a", "x") })
	for _, p := range []snapshots.Place{own, b.place} {
		if records, err := b.store.Records(p); err != nil || len(records) != 1 {
			t.Fatalf("%v: %d records, %v", p.IsOwnDir, len(records), err)
		}
	}
	if n, err := b.store.Sweep(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("swept of what is new: %d, %v", n, err)
	}
	if there, err := b.store.Remove(t.Context(), session); !there || err != nil {
		t.Errorf("removed: %v, %v", there, err)
	}
	if there, err := b.store.Remove(t.Context(), session); there || err != nil {
		t.Errorf("removed twice: %v, %v", there, err)
	}
	if _, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "u"}); !errors.Is(err, snapshots.ErrNone) {
		t.Errorf("after the removal: %v", err)
	}
	b.runTurn("t2", func() { b.write("a", "y") })
	if n, err := b.store.Sweep(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("swept: %d, %v", n, err)
	}
	if records, err := b.store.Records(b.place); err != nil || len(records) != 0 {
		t.Errorf("after the sweep: %d records, %v", len(records), err)
	}
}

// A link in the place of a folder does not lead out of the workspace.
func TestAFolderReplacedByALink(t *testing.T) {
	b := newHistoryTest(t, nil)
	outside := t.TempDir()
	requireNoError(t, os.WriteFile(filepath.Join(outside, "x"), []byte("outside"), 0o600))
	b.write("sub/x", "before")
	b.runTurn("t1", func() { b.write("sub/x", "outside") })
	requireNoError(t, os.RemoveAll(b.path("sub")))
	requireNoError(t, os.Symlink(outside, b.path("sub")))
	own, _ := b.undo("u1", 0)
	if !slices.Equal(leftNames(own), []string{"sub/x"}) {
		t.Errorf("left %q", leftNames(own))
	}
	if got, err := os.ReadFile(filepath.Join(outside, "x")); err != nil || string(got) != "outside" {
		t.Errorf("outside is %q, %v", got, err)
	}
}

// Random turns are undone exactly, in every possible order.
func TestRandomTurns(t *testing.T) {
	for seed := range uint64(12) {
		b := newHistoryTest(t, nil)
		r := rand.New(rand.NewPCG(seed, 1))
		for range 30 {
			b.changeSomething(r)
		}
		var states []map[string]string
		for i := range 4 {
			states = append(states, b.listAll())
			b.runTurn(fmt.Sprint("t", i), func() {
				for range 1 + r.IntN(25) {
					b.changeSomething(r)
				}
				b.write("mark", fmt.Sprint(i)) // so that there is always something to undo
			})
		}
		last := b.listAll()
		for i := len(states) - 1; i >= 0; i-- {
			if own, _ := b.undo(fmt.Sprint("u", i), 0); len(leftNames(own)) > 0 {
				t.Errorf("seed %d, turn %d: left %v", seed, i, own.Result.Left)
			}
			b.requireSame(fmt.Sprintf("seed %d, turn %d", seed, i), b.listAll(), states[i])
		}
		// Undo the undos again, from the first one to the last state.
		records, err := b.store.Records(b.place)
		requireNoError(t, err)
		for _, rec := range slices.Backward(records) {
			if rec.UndoneRecord != 0 {
				if own, _ := b.undo(fmt.Sprint("r", rec.N), rec.N); len(leftNames(own)) > 0 {
					t.Errorf("seed %d, undoing %d: left %v", seed, rec.N, own.Result.Left)
				}
			}
		}
		b.requireSame(fmt.Sprintf("seed %d, all undos undone", seed), b.listAll(), last)
		if t.Failed() {
			return
		}
	}
}

// changeSomething makes a random change in the workspace.
func (b *historyTest) changeSomething(r *rand.Rand) {
	names := []string{"a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/f", "always", ".git", ".git/x", "d/.git/y"}
	name := b.path(names[r.IntN(len(names))])
	other := b.path(names[r.IntN(len(names))])
	switch r.IntN(9) {
	case 0:
		_ = os.MkdirAll(name, 0o755)
	case 1, 2, 3:
		_ = os.MkdirAll(filepath.Dir(name), 0o755)
		_ = os.WriteFile(name, bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(3)*r.IntN(50)), 0o644)
	case 4:
		_ = os.RemoveAll(name)
	case 5:
		_ = os.Rename(name, other)
	case 6:
		if info, err := os.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			_ = os.Chmod(name, fs.FileMode([]int{0o600, 0o644, 0o755, 0o700, 0o777}[r.IntN(5)]))
		}
	case 7:
		_ = os.Symlink(filepath.Base(other), name)
	case 8:
		_ = os.Link(name, other)
	}
}

// BenchmarkTurn measures a turn that changes one file among many.
func BenchmarkTurn(b *testing.B) {
	for _, files := range []int{100, 10_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			w := newHistoryTest(b, nil)
			for i := range files {
				w.write(fmt.Sprintf("d%d/f%d", i%100, i), fmt.Sprint(i))
			}
			w.runTurn("first", func() { w.write("x", "0") })
			n := 0
			for b.Loop() {
				n++
				w.runTurn(fmt.Sprint("t", n), func() { w.write("x", fmt.Sprint(n)) })
			}
		})
	}
}

// BenchmarkFirst measures the first turn, which copies every file.
func BenchmarkFirst(b *testing.B) {
	w := newHistoryTest(b, nil)
	for i := range 10_000 {
		w.write(fmt.Sprintf("d%d/f%d", i%100, i), fmt.Sprint(i))
	}
	for b.Loop() {
		w.begin("t")
		b.StopTimer()
		if _, err := w.store.Remove(b.Context(), session); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
