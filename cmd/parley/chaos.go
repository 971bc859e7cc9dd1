//go:build chaos

package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// killPoint makes the process kill itself with SIGKILL at a point that
// PARLEY_KILL_AT names, as NAME or NAME/N for the N-th time it is passed.
// Tests alone build with this.
func killPoint() func(string) {
	name, count, _ := strings.Cut(os.Getenv("PARLEY_KILL_AT"), "/")
	if name == "" {
		return nil
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	var left atomic.Int64
	left.Store(n)
	return func(at string) {
		if at == name && left.Add(-1) == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing is left to report to
			select {}
		}
	}
}
