//go:build unix

package workspace

import (
	"io/fs"
	"syscall"
)

// shared tells whether a file has further names.
func shared(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// occupied is how much a file takes: the holes of a sparse one take nothing.
func occupied(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), st.Blocks*512)
	}
	return info.Size()
}
