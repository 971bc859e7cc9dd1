//go:build linux || darwin

package homedb

import "syscall"

// freeRoom returns how many bytes are free on a directory's disk; false if the system doesn't say.
func freeRoom(dir string) (free uint64, known bool, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, false, err
	}
	return disk.Bavail * uint64(disk.Bsize), true, nil
}
