//go:build unix

package backup

import (
	"io/fs"
	"os"
	"syscall"
)

// hasOtherLinks reports whether a file has other hard links, which may be outside the workspace.
func hasOtherLinks(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// device returns the number of the filesystem that a path is on; 0 if the system doesn't say.
func device(path string) (uint64, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, nil
	}
	return uint64(st.Dev), nil
}
