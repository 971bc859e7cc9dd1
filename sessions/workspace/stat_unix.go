//go:build unix

package workspace

import (
	"io/fs"
	"syscall"
)

// hasOtherLinks tells whether a file has further names.
func hasOtherLinks(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// diskSize is how many bytes a file takes on disk: the holes of a sparse file take none.
func diskSize(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(info.Size(), st.Blocks*512)
	}
	return info.Size()
}
