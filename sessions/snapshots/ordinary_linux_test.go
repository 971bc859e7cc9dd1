package snapshots_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// dropRootRights makes the test continue without root's rights, because no mode restricts root.
func dropRootRights(b *historyTest) {
	b.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	for _, dir := range []string{b.root, filepath.Dir(b.dir), b.dir} {
		requireNoError(b, os.Chown(dir, nobody, nobody))
	}
	for dir := filepath.Dir(b.root); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		requireNoError(b, os.Chmod(dir, 0o755))
	}
	requireNoError(b, syscall.Setresuid(-1, nobody, -1))
	b.Cleanup(func() { requireNoError(b, syscall.Setresuid(-1, 0, -1)) })
}

// Without root's rights, everything that a turn has changed is restored exactly, even if the turn has made a
// file or a folder unreadable afterwards.
func TestUndoOfFilesThatATurnMadeUnreadable(t *testing.T) {
	for name, change := range map[string]func(b *historyTest){
		"a file":                    func(b *historyTest) { requireNoError(b, os.Chmod(b.path("file"), 0)) },
		"a file that was edited":    func(b *historyTest) { b.write("file", "after"); requireNoError(b, os.Chmod(b.path("file"), 0)) },
		"a file that is not kept":   func(b *historyTest) { requireNoError(b, os.Chmod(b.path("large"), 0)) },
		"a folder":                  func(b *historyTest) { requireNoError(b, os.Chmod(b.path("folder"), 0)) },
		"a folder, but for writing": func(b *historyTest) { b.write("folder/new", "x"); requireNoError(b, os.Chmod(b.path("folder"), 0o300)) },
		"a folder, but for reading": func(b *historyTest) { b.write("folder/new", "x"); requireNoError(b, os.Chmod(b.path("folder"), 0o400)) },
		"a folder below": func(b *historyTest) {
			b.write("folder/below/edited", "after")
			requireNoError(b, os.Chmod(b.path("folder/below"), 0))
		},
		"a folder that was new": func(b *historyTest) { b.write("new/below/file", "new"); requireNoError(b, os.Chmod(b.path("new"), 0)) },
		"a folder that was replaced": func(b *historyTest) {
			requireNoError(b, os.Remove(b.path("file")))
			b.write("file/x", "x")
			requireNoError(b, os.Chmod(b.path("file"), 0))
		},
		"a folder with changes": func(b *historyTest) {
			b.write("folder/edited", "after")
			b.write("folder/new", "after")
			requireNoError(b, os.Remove(b.path("folder/deleted")))
			b.write("folder/below/edited", "after")
			requireNoError(b, os.Chmod(b.path("folder/below"), 0))
			requireNoError(b, os.Chmod(b.path("folder"), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHistoryTest(t, nil)
			dropRootRights(b)
			b.write("file", "before")
			b.write("large", strings.Repeat("x", 17<<20))
			b.write("folder/edited", "before")
			b.write("folder/deleted", "before")
			b.write("folder/below/edited", "before")
			b.write("locked/kept", "before")
			want := b.listAll()
			requireNoError(t, os.Chmod(b.path("locked"), 0))
			b.runTurn("a", func() { change(b) })
			own, _ := b.undo("undo", 0)
			if names := leftNames(own); len(names) > 0 {
				t.Errorf("left %v: %+v", names, own.Result)
			}
			if mode, err := os.Lstat(b.path("locked")); err != nil || mode.Mode().Perm() != 0 {
				t.Errorf("what was locked before is %v, %v", mode.Mode(), err)
			}
			requireNoError(t, os.Chmod(b.path("locked"), 0o755))
			b.requireSame(name, b.listAll(), want)
		})
	}
}

// An undo of locked folders continues wherever it was interrupted, and can itself be undone.
func TestUndoOfALockedFolderContinuesAfterACrash(t *testing.T) {
	type cut struct{}
	undoneAfter := func(t *testing.T, stop int) (ended bool) {
		b, n := newHistoryTest(t, nil), 0
		dropRootRights(b)
		b.write("folder/edited", "before")
		b.write("folder/below/edited", "before")
		before := b.listAll()
		b.runTurn("t1", func() {
			b.write("folder/edited", "after")
			b.write("folder/below/new", "after")
			requireNoError(b, os.Chmod(b.path("folder/below"), 0))
			requireNoError(b, os.Chmod(b.path("folder"), 0))
		})
		b.cfg.Point = func(string) {
			if n++; n == stop {
				panic(cut{})
			}
		}
		b.store = b.open()
		func() {
			defer func() {
				if p := recover(); p != nil {
					if _, ours := p.(cut); !ours {
						panic(p)
					}
				}
			}()
			b.undo("u1", 0)
			ended = true
		}()
		b.cfg.Point = nil
		b.store = b.open()
		own, _ := b.undo("u1", 0)
		b.requireSame("undone", b.listAll(), before)
		again, _ := b.undo("u2", own.N)
		if len(leftNames(own))+len(leftNames(again)) > 0 {
			t.Errorf("left %q, and of the undo's undo %q", leftNames(own), leftNames(again))
		}
		if info, err := os.Lstat(b.path("folder")); err != nil || info.Mode().Perm() != 0 {
			t.Errorf("after the undo's undo the folder is %v, %v", info.Mode(), err)
		}
		b.undo("u3", again.N)
		b.requireSame("undone again", b.listAll(), before)
		return ended
	}
	for stop, ended := 1, false; !ended && !t.Failed(); stop++ {
		t.Run(fmt.Sprint("cut off at ", stop), func(t *testing.T) { ended = undoneAfter(t, stop) })
	}
}
