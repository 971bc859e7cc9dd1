//go:build linux || darwin

package problems

import "syscall"

// DiskSpaceOf returns the free space and the size of a directory's disk.
func DiskSpaceOf(dir string) (DiskSpace, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return DiskSpace{}, err
	}
	return DiskSpace{Free: fs.Bavail * uint64(fs.Bsize), Size: fs.Blocks * uint64(fs.Bsize)}, nil
}
