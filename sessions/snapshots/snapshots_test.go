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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A bench is a workspace and its history.
type bench struct {
	testing.TB
	dir, root string
	cfg       snapshots.Config
	store     *snapshots.Store
	place     snapshots.Place
}

func newBench(t testing.TB, change func(*snapshots.Config)) *bench {
	t.Helper()
	b := &bench{TB: t, root: t.TempDir()}
	b.dir = filepath.Join(b.root, "main", "telegram:42")
	must(t, os.MkdirAll(b.dir, 0o700))
	b.place = snapshots.Place{Session: session, Dir: b.dir}
	b.cfg = snapshots.Config{
		Root: b.root, MaxBytes: 64 << 20, Turns: 20,
		Leave:     func(name string) bool { return strings.HasPrefix(filepath.Base(name), ".parley-") || name == ".agent" },
		Temporary: func() string { return ".parley-x.tmp" },
	}
	if change != nil {
		change(&b.cfg)
	}
	b.store = b.open()
	return b
}

func (b *bench) open() *snapshots.Store {
	b.Helper()
	s, err := snapshots.Open(b.cfg)
	must(b, err)
	b.Cleanup(func() { s.Close() })
	return s
}

func (b *bench) begin(turn string) {
	b.Helper()
	must(b, b.store.Begin(b.Context(), b.place, snapshots.TurnInfo{Turn: turn, Person: "telegram:42"}))
}

func (b *bench) end(turn string) {
	b.Helper()
	must(b, b.store.End(b.Context(), b.place, turn))
}

// turn changes the workspace as a turn.
func (b *bench) turn(id string, change func()) {
	b.Helper()
	b.begin(id)
	change()
	b.end(id)
}

func (b *bench) undo(id string, n int) (own, undone snapshots.Record) {
	b.Helper()
	own, undone, err := b.store.Undo(b.Context(), b.place, snapshots.UndoRequest{ID: id, N: n})
	must(b, err)
	return own, undone
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, content string) {
	b.Helper()
	must(b, os.MkdirAll(filepath.Dir(b.path(name)), 0o755))
	must(b, os.WriteFile(b.path(name), []byte(content), 0o644))
}

// listing is all that there is, to the byte, with the modes.
func (b *bench) listing() map[string]string {
	b.Helper()
	all := map[string]string{}
	must(b, filepath.WalkDir(b.dir, func(name string, e fs.DirEntry, err error) error {
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

func (b *bench) same(what string, got, want map[string]string) {
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

func restored(r snapshots.Record) (names []string) {
	if r.Result != nil {
		for _, d := range r.Result.Restored {
			names = append(names, string(d.Path))
		}
	}
	return names
}

func left(r snapshots.Record) (names []string) {
	if r.Result != nil {
		for _, l := range r.Result.Left {
			names = append(names, string(l.Path))
		}
	}
	return names
}

// everyChange makes each kind of change that there is.
func (b *bench) everyChange() {
	must(b, os.WriteFile(b.path("edited"), []byte("after, and longer"), 0o600))
	must(b, os.Truncate(b.path("emptied"), 0))
	must(b, os.Remove(b.path("deleted")))
	must(b, os.RemoveAll(b.path("tree")))
	must(b, os.Rename(b.path("old name"), b.path("new name")))
	must(b, os.Chmod(b.path("script"), 0o755))
	must(b, os.Chmod(b.path("folder"), 0o711))
	must(b, os.Remove(b.path("link")))
	must(b, os.Symlink("elsewhere", b.path("link")))
	must(b, os.Remove(b.path("becomes a folder")))
	b.write("becomes a folder/x", "x")
	must(b, os.RemoveAll(b.path("becomes a file")))
	b.write("becomes a file", "y")
	must(b, os.Remove(b.path("becomes a link")))
	must(b, os.Symlink("edited", b.path("becomes a link")))
	b.write("new/deep/file", "new")
	must(b, os.Mkdir(b.path("new empty"), 0o700))
	b.write("\xff\xfe not UTF-8", "new")
	must(b, os.WriteFile(b.path("binary"), []byte{0, 255, 1}, 0o644))
}

func (b *bench) everyBefore() {
	b.write("edited", "before")
	b.write("emptied", "not yet")
	b.write("deleted", "gone")
	b.write("tree/of/files", "1")
	b.write("tree/and/more", "2")
	must(b, os.MkdirAll(b.path("tree/empty"), 0o750))
	b.write("old name", "renamed")
	b.write("script", "#!/bin/sh\n")
	must(b, os.Mkdir(b.path("folder"), 0o700))
	must(b, os.Symlink("edited", b.path("link")))
	b.write("becomes a folder", "file")
	b.write("becomes a file/inner", "inner")
	b.write("becomes a link", "plain")
	must(b, os.WriteFile(b.path("binary"), bytes.Repeat([]byte{0, 1, 254}, 700_000), 0o444))
	b.write("untouched", "stays")
	b.write("old \xff", "stays")
}

func TestUndoRestoresEveryKindOfChange(t *testing.T) {
	b := newBench(t, nil)
	b.everyBefore()
	before := b.listing()
	b.turn("t1", b.everyChange)
	after := b.listing()
	own, undone := b.undo("u1", 0)
	b.same("undone", b.listing(), before)
	if len(left(own)) > 0 || undone.Turn != "t1" || own.Undoes != undone.N {
		t.Errorf("left %v, of %+v", left(own), undone.N)
	}
	own, _ = b.undo("u2", own.N)
	b.same("the undo undone", b.listing(), after)
	if len(left(own)) > 0 {
		t.Errorf("left %v", left(own))
	}
	own, _ = b.undo("u3", 0)
	b.same("undone again", b.listing(), before)
	if again, _ := b.undo("u3", 0); again.N != own.N || !slices.Equal(restored(again), restored(own)) {
		t.Errorf("asked again, the same undo gives %+v", again)
	}
	if _, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "u4"}); !errors.Is(err, snapshots.ErrNone) {
		t.Errorf("with nothing left to undo: %v", err)
	}
}

// A file that runs with its owner's rights is restored without that, and what a turn has
// made run so runs so no more.
func TestUndoGivesNoFileItsOwnersRights(t *testing.T) {
	b := newBench(t, nil)
	mode := func(name string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(b.path(name))
		must(b, err)
		return info.Mode()
	}
	for _, name := range []string{"edited", "deleted", "chmod", "given"} {
		b.write(name, "before")
		if name != "given" {
			must(b, os.Chmod(b.path(name), 0o755|fs.ModeSetuid|fs.ModeSetgid))
		}
	}
	b.turn("t1", func() {
		b.write("edited", "after")
		must(b, os.Remove(b.path("deleted")))
		must(b, os.Chmod(b.path("chmod"), 0o700))
		must(b, os.Chmod(b.path("given"), 0o755|fs.ModeSetuid))
	})
	own, _ := b.undo("u1", 0)
	if len(left(own)) > 0 {
		t.Errorf("left %v", left(own))
	}
	for name, want := range map[string]fs.FileMode{"edited": 0o755, "deleted": 0o755, "chmod": 0o755, "given": 0o644} {
		if got := mode(name); got != want {
			t.Errorf("%s has the mode %v, want %v", name, got, want)
		}
	}
	if own, _ := b.undo("u1", 0); len(left(own)) > 0 {
		t.Errorf("asked again, left %v", left(own))
	}
}

// What turn after turn has changed is undone one after the other.
func TestUndoGoesBackTurnByTurn(t *testing.T) {
	b := newBench(t, nil)
	var states []map[string]string
	for i := range 4 {
		states = append(states, b.listing())
		b.turn(fmt.Sprint("t", i), func() {
			b.write("a", strings.Repeat("x", i+1))
			b.write(fmt.Sprint("only ", i), "x")
		})
		b.turn(fmt.Sprint("nothing ", i), func() {})
	}
	for i := 3; i >= 0; i-- {
		b.undo(fmt.Sprint("u", i), 0)
		b.same(fmt.Sprint("turn ", i), b.listing(), states[i])
	}
}

func TestWhatOthersHaveChangedIsLeft(t *testing.T) {
	b := newBench(t, nil)
	b.everyBefore()
	b.write("mine", "before")
	b.turn("t1", func() {
		b.everyChange()
		b.write("mine", "turn")
		b.write("gone folder/inner", "x")
		b.write("made/by turn", "x")
	})
	b.write("mine", "person")
	b.write("deleted", "made again")
	must(t, os.RemoveAll(b.path("gone folder")))
	b.write("made/by person", "person")
	b.write("unconcerned", "person")
	own, _ := b.undo("u1", 0)
	want := []string{"deleted", "gone folder", "gone folder/inner", "made", "mine"}
	// What the turn has made and somebody has removed is as it was before: nothing to undo.
	want = slices.DeleteFunc(want, func(n string) bool { return strings.HasPrefix(n, "gone") })
	if !slices.Equal(left(own), want) {
		t.Errorf("left %q, want %q", left(own), want)
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

// What somebody does while a turn waits for people is none of the turn's.
func TestPartsOfATurn(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "0")
	b.write("both", "0")
	b.write("back", "0")
	b.turn("t1", func() { b.write("a", "1"); b.write("both", "1"); b.write("back", "1") })
	b.write("person", "x")
	b.write("both", "person")
	b.turn("t1", func() { b.write("c", "1"); b.write("both", "2"); b.write("back", "0") })
	records, err := b.store.Records(b.place)
	must(t, err)
	if len(records) != 1 || len(records[0].Changes) != 3 {
		t.Fatalf("kept: %+v", records)
	}
	own, _ := b.undo("u1", 0)
	if !slices.Equal(left(own), []string{"both"}) || !slices.Equal(restored(own), []string{"a", "c"}) {
		t.Errorf("left %q, restored %q", left(own), restored(own))
	}
	if got, _ := os.ReadFile(b.path("both")); string(got) != "2" {
		t.Errorf("both is %q", got)
	}
}

// A repository is put back whole or not at all.
func TestRepositories(t *testing.T) {
	for _, committed := range []bool{false, true} {
		b := newBench(t, nil)
		b.write("sub/.git/HEAD", "0")
		b.write("sub/.git/index", "0")
		b.write("sub/file", "0")
		before := b.listing()
		b.turn("t1", func() {
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
			t.Errorf("somebody has committed since: %v; the object is gone: %v (left %q)", committed, gone, left(own))
		}
		if !committed {
			b.same("undone", b.listing(), before)
		} else if got, _ := os.ReadFile(b.path("sub/file")); string(got) != "0" {
			t.Errorf("the file beside it is %q", got)
		}
	}
}

// A turn that is cut off is undone from what it had found.
func TestAfterACrash(t *testing.T) {
	b := newBench(t, nil)
	b.everyBefore()
	before := b.listing()
	b.begin("t1")
	b.everyChange()
	b.store = b.open()
	b.begin("t1") // it goes on
	b.write("more", "x")
	b.store = b.open()
	own, undone := b.undo("u1", 0)
	if undone.Turn != "t1" || len(left(own)) > 0 {
		t.Errorf("undone %+v, left %q", undone.Turn, left(own))
	}
	b.same("undone", b.listing(), before)
}

func (b *bench) fewBefore() {
	b.write("edited", "before")
	b.write("tree/of/files", "1")
	must(b, os.Mkdir(b.path("folder"), 0o700))
	b.write("becomes a folder", "file")
	b.write("becomes a file/inner", "inner")
	b.write("closed/edited", "before")
	must(b, os.Chmod(b.path("closed"), 0o500))
	b.Cleanup(func() { _ = os.Chmod(b.path("closed"), 0o700) }) // or not everybody could remove it
}

func (b *bench) fewChanges() {
	b.write("edited", "after")
	b.write("closed/edited", "after")
	must(b, os.RemoveAll(b.path("tree")))
	must(b, os.Chmod(b.path("folder"), 0o711))
	must(b, os.Remove(b.path("becomes a folder")))
	b.write("becomes a folder/x", "x")
	must(b, os.RemoveAll(b.path("becomes a file")))
	b.write("becomes a file", "y")
	must(b, os.Symlink("edited", b.path("link")))
}

// An undo that is cut off anywhere goes on when it is asked again.
func TestUndoGoesOnAfterACrash(t *testing.T) {
	type cut struct{}
	for stop := 1; ; stop++ {
		n := 0
		b := newBench(t, nil)
		b.fewBefore()
		before := b.listing()
		b.turn("t1", b.fewChanges)
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
		b.same(fmt.Sprint("cut off at ", stop), b.listing(), before)
		if len(left(own)) > 0 {
			t.Errorf("cut off at %d: left %q", stop, left(own))
		}
		if records, err := b.store.Records(b.place); err != nil || len(records) != 2 {
			t.Errorf("cut off at %d: %d records, %v", stop, len(records), err)
		}
		if own, _ := b.undo("u2", own.N); len(left(own)) > 0 {
			t.Errorf("cut off at %d: undoing the undo left %q", stop, left(own))
		}
		if ended || t.Failed() {
			return
		}
	}
}

// A holder that has lost the session changes nothing more, and the next goes on.
func TestUndoAsksWhetherItIsHeld(t *testing.T) {
	b := newBench(t, nil)
	b.everyBefore()
	before := b.listing()
	b.turn("t1", b.everyChange)
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
	b.same("gone on", b.listing(), before)
}

func TestWhatIsNotKeptIsNamed(t *testing.T) {
	b := newBench(t, func(c *snapshots.Config) { c.MaxBytes = 4096 })
	b.write("large", strings.Repeat("x", 1025))
	b.write("chmod", strings.Repeat("y", 1025))
	for i := range 5 {
		b.write(fmt.Sprint("part", i), strings.Repeat(fmt.Sprint(i), 1000))
	}
	must(t, syscall.Mkfifo(b.path("pipe"), 0o600))
	b.turn("t1", func() {
		b.write("large", "now small")
		must(t, os.Chmod(b.path("chmod"), 0o600))
		must(t, os.Remove(b.path("pipe")))
		for i := range 5 {
			must(t, os.Remove(b.path(fmt.Sprint("part", i))))
		}
		must(t, syscall.Mkfifo(b.path("new pipe"), 0o600))
	})
	own, _ := b.undo("u1", 0)
	why := map[string]string{}
	for _, l := range own.Result.Left {
		why[string(l.Path)] = l.Why
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
	b := newBench(t, nil)
	b.write("a", "before")
	b.write("b", "other")
	b.turn("t1", func() { b.write("a", "after"); b.write("b", "after") })
	sum := fmt.Sprintf("kept-%x", sha256.Sum256([]byte("before")))
	found := 0
	must(t, filepath.WalkDir(filepath.Join(b.root, snapshots.Folder), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Base(name) == sum {
			found++
			must(t, os.WriteFile(name, []byte("befora"), 0o600))
		}
		return err
	}))
	own, _ := b.undo("u1", 0)
	if found != 1 || !slices.Equal(left(own), []string{"a"}) || !slices.Equal(restored(own), []string{"b"}) {
		t.Errorf("found %d, left %q, restored %q", found, left(own), restored(own))
	}
	if got, _ := os.ReadFile(b.path("a")); string(got) != "after" {
		t.Errorf("a is %q", got)
	}
}

// A file that is changed and keeps its size and its time of modification is seen: in the
// same tick as well.
func TestChangesThatDoNotShowInTimes(t *testing.T) {
	b := newBench(t, nil)
	at := time.Now().Add(-time.Hour)
	for i := range 10 {
		b.write("a", fmt.Sprintf("%04d", i))
		must(t, os.Chtimes(b.path("a"), at, at))
		before := b.listing()
		b.turn(fmt.Sprint("t", i), func() {
			f, err := os.OpenFile(b.path("a"), os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString("turn")
			must(t, errors.Join(err, f.Close(), os.Chtimes(b.path("a"), at, at)))
		})
		b.undo(fmt.Sprint("u", i), 0)
		b.same(fmt.Sprint(i), b.listing(), before)
	}
}

func TestOnlyWhoMayUndoes(t *testing.T) {
	b := newBench(t, nil)
	b.turn("t1", func() { b.write("a", "x") })
	_, _, err := b.store.Undo(t.Context(), b.place, snapshots.UndoRequest{ID: "u1", May: func(r snapshots.Record) bool { return r.Person == "telegram:7" }})
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

// What is kept is bounded: in turns, in age, and by what nothing names anymore.
func TestPruning(t *testing.T) {
	b := newBench(t, func(c *snapshots.Config) { c.Turns = 3 })
	for i := range 10 {
		b.turn(fmt.Sprint("t", i), func() { b.write("a", fmt.Sprint("content ", i)) })
	}
	records, err := b.store.Records(b.place)
	must(t, err)
	if len(records) != 3 || records[2].N != 10 || records[0].N != 8 {
		t.Fatalf("kept: %d records", len(records))
	}
	copies := 0
	must(t, filepath.WalkDir(filepath.Join(b.root, snapshots.Folder), func(name string, e fs.DirEntry, err error) error {
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
	b.turn("last", func() { b.write("a", "last") })
	if kept, err := filepath.Glob(filepath.Join(b.root, snapshots.Folder, "*", "*", "turn-*")); err != nil || len(kept) != 1 {
		t.Errorf("of what is too old %v are kept, %v", kept, err)
	}
	if n, err := b.store.SweepOld(t.Context()); n != 1 || err != nil {
		t.Errorf("swept of what is too old: %d, %v", n, err)
	}
}

func TestRemoveAndSweep(t *testing.T) {
	b := newBench(t, nil)
	own := snapshots.Place{Session: session, Dir: t.TempDir(), Own: true}
	must(t, b.store.Begin(t.Context(), own, snapshots.TurnInfo{Turn: "o1"}))
	must(t, os.WriteFile(filepath.Join(own.Dir, "x"), nil, 0o600))
	must(t, b.store.End(t.Context(), own, "o1"))
	b.turn("t1", func() { b.write("a", "x") })
	for _, p := range []snapshots.Place{own, b.place} {
		if records, err := b.store.Records(p); err != nil || len(records) != 1 {
			t.Fatalf("%v: %d records, %v", p.Own, len(records), err)
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
	b.turn("t2", func() { b.write("a", "y") })
	if n, err := b.store.Sweep(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("swept: %d, %v", n, err)
	}
	if records, err := b.store.Records(b.place); err != nil || len(records) != 0 {
		t.Errorf("after the sweep: %d records, %v", len(records), err)
	}
}

// A link in a folder's place leads nobody out of the workspace.
func TestAFolderThatBecameALink(t *testing.T) {
	b := newBench(t, nil)
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "x"), []byte("outside"), 0o600))
	b.write("sub/x", "before")
	b.turn("t1", func() { b.write("sub/x", "outside") })
	must(t, os.RemoveAll(b.path("sub")))
	must(t, os.Symlink(outside, b.path("sub")))
	own, _ := b.undo("u1", 0)
	if !slices.Equal(left(own), []string{"sub/x"}) {
		t.Errorf("left %q", left(own))
	}
	if got, err := os.ReadFile(filepath.Join(outside, "x")); err != nil || string(got) != "outside" {
		t.Errorf("outside is %q, %v", got, err)
	}
}

// Random turns are undone, to the byte, in whatever order they can be.
func TestRandomTurns(t *testing.T) {
	for seed := range uint64(12) {
		b := newBench(t, nil)
		r := rand.New(rand.NewPCG(seed, 1))
		for range 30 {
			b.anything(r)
		}
		var states []map[string]string
		for i := range 4 {
			states = append(states, b.listing())
			b.turn(fmt.Sprint("t", i), func() {
				for range 1 + r.IntN(25) {
					b.anything(r)
				}
				b.write("mark", fmt.Sprint(i)) // so that there is a turn to be undone
			})
		}
		last := b.listing()
		for i := len(states) - 1; i >= 0; i-- {
			if own, _ := b.undo(fmt.Sprint("u", i), 0); len(left(own)) > 0 {
				t.Errorf("seed %d, turn %d: left %v", seed, i, own.Result.Left)
			}
			b.same(fmt.Sprintf("seed %d, turn %d", seed, i), b.listing(), states[i])
		}
		// And all of it again, from the first undo's record back to the last state.
		records, err := b.store.Records(b.place)
		must(t, err)
		for _, rec := range slices.Backward(records) {
			if rec.Undoes != 0 {
				if own, _ := b.undo(fmt.Sprint("r", rec.N), rec.N); len(left(own)) > 0 {
					t.Errorf("seed %d, undoing %d: left %v", seed, rec.N, own.Result.Left)
				}
			}
		}
		b.same(fmt.Sprintf("seed %d, all undos undone", seed), b.listing(), last)
		if t.Failed() {
			return
		}
	}
}

// anything does something at random to the workspace.
func (b *bench) anything(r *rand.Rand) {
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

// BenchmarkTurn is what a turn costs that changes one file among many.
func BenchmarkTurn(b *testing.B) {
	for _, files := range []int{100, 10_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			w := newBench(b, nil)
			for i := range files {
				w.write(fmt.Sprintf("d%d/f%d", i%100, i), fmt.Sprint(i))
			}
			w.turn("first", func() { w.write("x", "0") })
			n := 0
			for b.Loop() {
				n++
				w.turn(fmt.Sprint("t", n), func() { w.write("x", fmt.Sprint(n)) })
			}
		})
	}
}

// BenchmarkFirst is what the first turn costs, which copies every file.
func BenchmarkFirst(b *testing.B) {
	w := newBench(b, nil)
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
