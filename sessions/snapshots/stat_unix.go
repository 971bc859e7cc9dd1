//go:build unix

package snapshots

import (
	"io/fs"
	"syscall"
)

// identify fills in the fields of an entry by which a file is distinguished from all others, and
// from itself before a change.
func (e *Entry) identify(info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		e.Inode, e.Changed = uint64(st.Ino), changed(st)
	}
}

// hasOtherLinks reports whether a file has further hard links.
func hasOtherLinks(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}
