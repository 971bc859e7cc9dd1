package snapshots

import "syscall"

// changedAt returns when an inode was last changed, in nanoseconds.
func changedAt(st *syscall.Stat_t) int64 { return st.Ctim.Nano() }
