// Package cgroup limits the memory and processes that a command and everything it starts use
// together, with the kernel's control groups.
//
// A group is made below the one that this process is in, or where the system has delegated groups
// to this process, and nowhere else: in version 1, in version 2, or in both on systems that mix
// them. The process that has made a group holds a lock on it as long as the process lives. A group
// that nobody has locked was left by a process that died, and is removed.
package cgroup

// A Place is where groups can be made: a folder for each controller, which is the same folder in
// version 2. The zero value means nowhere.
type Place struct {
	Pids, Memory folder
}

// A folder is a group in the file system of control groups.
type folder struct {
	Path    string
	Unified bool // whether it is a version 2 group
}

// IsUsable reports whether groups can be made at all.
func (p Place) IsUsable() bool { return p.Pids.Path != "" || p.Memory.Path != "" }

// Limits say how much the processes of a group may use together; 0 means no limit.
type Limits struct {
	Tasks  int   // processes and threads
	Memory int64 // in bytes, including files in memory and what the kernel allocates for the processes
}
