//go:build unix

package workspace

import (
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
)

// hasOtherLinks reports whether a file has more than one hard link.
func hasOtherLinks(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// diskSize returns how many bytes a file takes on disk; the holes of a sparse file take none.
func diskSize(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), st.Blocks*512)
	}
	return info.Size()
}

// sharedIdentity returns a text that distinguishes a file or directory from all others of its disk. Every
// machine that mounts the disk gets the same one: the number of the device would be each mount's own.
func sharedIdentity(info fs.FileInfo) string {
	if info == nil {
		return "-"
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return strconv.FormatUint(st.Ino, 10)
	}
	return info.Name()
}

// localIdentity returns a text that distinguishes a file or directory from all others of the
// machine.
func localIdentity(info fs.FileInfo) string {
	if info == nil {
		return "-"
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	}
	return info.Name()
}

// changedNanos returns when a file's content, name or rights were last changed, in nanoseconds: no
// program can set that time. It is -1 where the system does not tell.
func changedNanos(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return changedAt(st)
	}
	return -1
}
