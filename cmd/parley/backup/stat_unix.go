//go:build unix

package backup

import (
	"io/fs"
	"os"
	"syscall"
)

// linked tells whether a file has further names, which may lie outside of the workspace.
func linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// device is the number of the filesystem on which a path lies; 0 if the system does not say.
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
