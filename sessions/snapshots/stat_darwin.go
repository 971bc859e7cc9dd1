package snapshots

import "syscall"

// changed returns when an inode was last changed, in nanoseconds.
func changed(st *syscall.Stat_t) int64 { return st.Ctimespec.Nano() }
