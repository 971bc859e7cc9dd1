package code

import (
	"syscall"
	"time"
)

func changedAt(st *syscall.Stat_t) time.Time { return time.Unix(st.Ctimespec.Unix()) }
