// Package cgroup bounds what a command and all that it starts take together, by
// control groups of the kernel.
//
// A group is made below the one that this process is in, or where the system has
// delegated it to this process, and nowhere else: of version 1, of version 2, or of
// both where a system mixes them. It is locked by the process that has made it, as
// long as that lives: a group that nobody holds is left over, and is removed.
package cgroup

// A Place is where groups can be made: a folder for each controller, which is the
// same in version 2. The zero value is nowhere.
type Place struct {
	Pids, Memory folder
}

// A folder is a group in the file system of control groups.
type folder struct {
	Path    string
	Unified bool // version 2
}

// Found tells whether groups can be made at all.
func (p Place) Found() bool { return p.Pids.Path != "" || p.Memory.Path != "" }

// Limits are how much the processes of a group may take together; 0 is any.
type Limits struct {
	Tasks  int   // processes and threads
	Memory int64 // in bytes, with what the kernel keeps for them and files in memory
}
