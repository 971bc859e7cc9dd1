//go:build !linux && !darwin

package watch

// RoomOf is the room on the disk of a directory.
func RoomOf(string) (Room, error) { return Room{}, errNoRoom }
