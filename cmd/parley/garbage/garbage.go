// Package garbage says when the garbage collector runs: not while the program starts, seldom
// where little memory is in use, and more often where much is.
//
// A start makes little garbage, and most commands have ended before a collection would
// have paid. Without this package the start collects three times, which takes about as
// long as it takes to open the home.
//
// Go collects when as much was allocated as is in use. So thousands of turns that wait for their
// models would make the process take twice what they need, and a bot that needs 10 MB would
// collect after every few messages: see Adapt.
package garbage

import (
	"runtime/debug"
	"time"
)

const (
	// startTime is how long nothing is collected.
	startTime = time.Second
	// startMemory is how much memory the program may take until it collects all the same.
	startMemory = 64 << 20
)

// init runs before main does, because the libraries that are initialised before main make
// most of the garbage. It comes before them since this package imports little: Go
// initialises a package as soon as those that it imports are initialised, in the order of
// their names.
func init() {
	resume := pause()
	time.AfterFunc(startTime, resume)
}

// pause keeps the collector from running below startMemory, until resume is called. The
// operator's own GOGC and GOMEMLIMIT hold again then.
func pause() (resume func()) {
	limit := debug.SetMemoryLimit(-1) // a negative limit only reads it
	debug.SetMemoryLimit(min(limit, startMemory))
	percent := debug.SetGCPercent(-1)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
