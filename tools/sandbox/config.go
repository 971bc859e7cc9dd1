package sandbox

import (
	"errors"
	"log/slog"
	"strings"

	"parley/tools/sandbox/cgroup"
	"parley/tools/sandbox/supervisor"
)

// A Mode is what the walls are made of.
type Mode = supervisor.Mode

// The modes.
const (
	Auto       Mode = "auto" // the first of Bubblewrap and Landlock that works
	Bubblewrap      = supervisor.Bubblewrap
	Landlock        = supervisor.Landlock
	None            = supervisor.None
)

// A Network is what a command that may use the network can reach; the zero value
// is nothing.
type Network struct {
	Full  bool
	Hosts []string // as egress.Check takes them
}

// Config says how commands are run.
type Config struct {
	Mode      Mode
	Network   Network
	MemoryMB  int // of all processes of a command
	Processes int
	TmpMB     int      // of temporary files
	Read      []string // files and folders of this machine that commands may read besides the system's
	Env       []string // names of variables of this process that commands get
	// Supervisor is the program that is run beside each command: one whose main calls
	// Main. "" is this program, also after its file was replaced.
	Supervisor string
	Log        *slog.Logger
	// OnKill, if set, is told why a command was ended.
	OnKill func(Reason)
}

// A Box is a Sandbox of this machine.
type Box struct {
	cfg   Config
	mode  Mode
	bwrap string // the program
	// groups is where the control groups of commands are made; the zero value is nowhere.
	groups cgroup.Place
	tried  []Attempt
}

// Mode is what the walls are made of: never Auto.
func (b *Box) Mode() Mode { return b.mode }

// Groups tells whether the kernel bounds what commands take, by control groups. Else
// their memory and processes are looked at ten times a second.
func (b *Box) Groups() bool { return b.groups.Found() }

// Instead says why another mode, which would have been better, was not taken; "" if
// none would.
func (b *Box) WhyNotBetter() string {
	return joinAttempts(b.tried, "; ", func(a Attempt) string { return string(a.Mode) + ": " + a.Err.Error() })
}

// An Attempt is a mode that was tried and does not work.
type Attempt struct {
	Mode   Mode
	Err    error
	Remedy string
}

// An AbsentError says that no walls can be put up on this machine, so that nothing
// is to be run.
type AbsentError struct{ Tried []Attempt }

func (e *AbsentError) Error() string {
	return "commands cannot be run inside walls on this machine; " +
		joinAttempts(e.Tried, "; ", func(a Attempt) string { return string(a.Mode) + ": " + a.Err.Error() })
}

// Remedy says what to do.
func (e *AbsentError) Remedy() string {
	return joinAttempts(e.Tried, "; or ", func(a Attempt) string { return a.Remedy })
}

func joinAttempts(tried []Attempt, between string, words func(Attempt) string) string {
	all := make([]string, len(tried))
	for i, a := range tried {
		all[i] = words(a)
	}
	return strings.Join(all, between)
}

// A SettingError says that a setting asks for what cannot be had.
type SettingError struct{ Key, Wrong, Remedy string }

func (e *SettingError) Error() string { return e.Key + ": " + e.Wrong + ": " + e.Remedy }

// errSetup says that a command was not run because its walls could not be put up.
var errSetup = errors.New("the walls of the sandbox could not be put up")
