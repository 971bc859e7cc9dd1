//go:build !linux && !darwin

package problems

// RoomOf returns errNoRoom, because this system does not report how full its disks are.
func RoomOf(string) (Room, error) { return Room{}, errNoRoom }
