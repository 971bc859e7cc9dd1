//go:build linux || darwin

package problems

import "syscall"

// RoomOf returns the free space and the size of a directory's disk.
func RoomOf(dir string) (Room, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return Room{}, err
	}
	return Room{Free: fs.Bavail * uint64(fs.Bsize), Size: fs.Blocks * uint64(fs.Bsize)}, nil
}
