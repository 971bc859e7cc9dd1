//go:build !linux && !darwin

package problems

// DiskSpaceOf returns errFreeSpaceUnknown, because this system does not report how full its disks are.
func DiskSpaceOf(string) (DiskSpace, error) { return DiskSpace{}, errFreeSpaceUnknown }
