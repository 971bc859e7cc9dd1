package parleytest

// These are the exit codes of the program, as docs/commands.md promises them.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2
	ExitUnknown = 3
	ExitQueued  = 4
	ExitConfig  = 78
)
