package snapshots_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// asOrdinaryUser lets the test go on without the rights of root, for whom no mode is an obstacle.
func asOrdinaryUser(b *bench) {
	b.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	for _, dir := range []string{b.root, filepath.Dir(b.dir), b.dir} {
		must(b, os.Chown(dir, nobody, nobody))
	}
	for dir := filepath.Dir(b.root); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		must(b, os.Chmod(dir, 0o755))
	}
	must(b, syscall.Setresuid(-1, nobody, -1))
	b.Cleanup(func() { must(b, syscall.Setresuid(-1, 0, -1)) })
}

// What a turn has changed is undone to the byte also where it has taken the right to read from a file
// or a folder afterwards, and nobody is root.
func TestUndoWhereATurnHasTakenTheRightToRead(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"a file":                    func(b *bench) { must(b, os.Chmod(b.path("file"), 0)) },
		"a file that was edited":    func(b *bench) { b.write("file", "after"); must(b, os.Chmod(b.path("file"), 0)) },
		"a file that is not kept":   func(b *bench) { must(b, os.Chmod(b.path("large"), 0)) },
		"a folder":                  func(b *bench) { must(b, os.Chmod(b.path("folder"), 0)) },
		"a folder, but for writing": func(b *bench) { b.write("folder/new", "x"); must(b, os.Chmod(b.path("folder"), 0o300)) },
		"a folder, but for reading": func(b *bench) { b.write("folder/new", "x"); must(b, os.Chmod(b.path("folder"), 0o400)) },
		"a folder below":            func(b *bench) { b.write("folder/below/edited", "after"); must(b, os.Chmod(b.path("folder/below"), 0)) },
		"a folder that was new":     func(b *bench) { b.write("new/below/file", "new"); must(b, os.Chmod(b.path("new"), 0)) },
		"a folder that was replaced": func(b *bench) {
			must(b, os.Remove(b.path("file")))
			b.write("file/x", "x")
			must(b, os.Chmod(b.path("file"), 0))
		},
		"a folder with changes": func(b *bench) {
			b.write("folder/edited", "after")
			b.write("folder/new", "after")
			must(b, os.Remove(b.path("folder/deleted")))
			b.write("folder/below/edited", "after")
			must(b, os.Chmod(b.path("folder/below"), 0))
			must(b, os.Chmod(b.path("folder"), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			asOrdinaryUser(b)
			b.write("file", "before")
			b.write("large", strings.Repeat("x", 17<<20))
			b.write("folder/edited", "before")
			b.write("folder/deleted", "before")
			b.write("folder/below/edited", "before")
			b.write("locked/kept", "before")
			want := b.listing()
			must(t, os.Chmod(b.path("locked"), 0))
			b.turn("a", func() { change(b) })
			own, _ := b.undo("undo", 0)
			if names := left(own); len(names) > 0 {
				t.Errorf("left %v: %+v", names, own.Result)
			}
			if mode, err := os.Lstat(b.path("locked")); err != nil || mode.Mode().Perm() != 0 {
				t.Errorf("what was locked before is %v, %v", mode.Mode(), err)
			}
			must(t, os.Chmod(b.path("locked"), 0o755))
			b.same(name, b.listing(), want)
		})
	}
}

// An undo of what a turn has locked goes on wherever it is cut off, and can itself be undone.
func TestUndoOfALockedFolderGoesOnAfterACrash(t *testing.T) {
	type cut struct{}
	undoneAfter := func(t *testing.T, stop int) (ended bool) {
		b, n := newBench(t, nil), 0
		asOrdinaryUser(b)
		b.write("folder/edited", "before")
		b.write("folder/below/edited", "before")
		before := b.listing()
		b.turn("t1", func() {
			b.write("folder/edited", "after")
			b.write("folder/below/new", "after")
			must(b, os.Chmod(b.path("folder/below"), 0))
			must(b, os.Chmod(b.path("folder"), 0))
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
		b.same("undone", b.listing(), before)
		again, _ := b.undo("u2", own.N)
		if len(left(own))+len(left(again)) > 0 {
			t.Errorf("left %q, and of the undo's undo %q", left(own), left(again))
		}
		if info, err := os.Lstat(b.path("folder")); err != nil || info.Mode().Perm() != 0 {
			t.Errorf("after the undo's undo the folder is %v, %v", info.Mode(), err)
		}
		b.undo("u3", again.N)
		b.same("undone again", b.listing(), before)
		return ended
	}
	for stop, ended := 1, false; !ended && !t.Failed(); stop++ {
		t.Run(fmt.Sprint("cut off at ", stop), func(t *testing.T) { ended = undoneAfter(t, stop) })
	}
}
