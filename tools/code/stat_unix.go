//go:build unix

package code

import (
	"io/fs"
	"syscall"
	"time"
)

// identityOf returns a file's inode number and when its inode last changed. It tells changes that the modification
// time doesn't show, for example when a tool such as cp -p restores that time. It returns zeros if the file system
// doesn't provide these.
func identityOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, changedAt(st)
	}
	return 0, time.Time{}
}
