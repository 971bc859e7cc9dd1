//go:build unix

package code

import (
	"io/fs"
	"syscall"
	"time"
)

// identityOf returns which file one is, and when it was last changed in whatever way: a tool that keeps the time at
// which a file was modified, as cp -p does, changes these. Zeros if the directory does not say.
func identityOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, changedAt(st)
	}
	return 0, time.Time{}
}
