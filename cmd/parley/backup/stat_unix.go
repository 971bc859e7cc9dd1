//go:build unix

package backup

import (
	"io/fs"
	"os"
	"syscall"
)

// linked tells whether a file has further names, which may lie elsewhere.
func linked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1
}

// device is the filesystem on which something lies.
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
