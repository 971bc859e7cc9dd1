//go:build chaos

package main

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// killPoint makes the process kill itself with SIGKILL at a point that
// PARLEY_KILL_AT names, as NAME or NAME/N for the N-th time it is passed, or
// stop itself likewise at PARLEY_STOP_AT until somebody continues it. Tests
// alone build with this.
func killPoint() func(string) {
	kill, stop := pointOf("PARLEY_KILL_AT"), pointOf("PARLEY_STOP_AT")
	if kill == nil && stop == nil {
		return nil
	}
	return func(at string) {
		if kill.passed(at) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing is left to report to
			select {}
		}
		if stop.passed(at) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // a test's own process
			time.Sleep(time.Millisecond)                   // it takes a moment to stand still
		}
	}
}

// A point is passed for the N-th time once.
type point struct {
	name string
	left atomic.Int64
}

func pointOf(variable string) *point {
	name, count, _ := strings.Cut(os.Getenv(variable), "/")
	if name == "" {
		return nil
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	p := &point{name: name}
	p.left.Store(n)
	return p
}

func (p *point) passed(at string) bool { return p != nil && at == p.name && p.left.Add(-1) == 0 }
