package sandbox

import (
	"errors"
	"log/slog"
	"strings"

	"parley/tools/sandbox/cgroup"
	"parley/tools/sandbox/supervisor"
)

// A Mode says what separates commands from the rest of the machine.
type Mode = supervisor.Mode

// The modes of package supervisor, and Auto.
const (
	Auto       Mode = "auto" // the first of Bubblewrap and Landlock that works
	Bubblewrap      = supervisor.Bubblewrap
	Landlock        = supervisor.Landlock
	None            = supervisor.None
)

// A Network says what commands that may use the network can reach; the zero value means nothing.
type Network struct {
	Full  bool
	Hosts []string // each in a form accepted by egress.Check
}

// Config says how to run commands.
type Config struct {
	Mode      Mode
	Network   Network
	MemoryMB  int // for all processes of a command
	Processes int
	TmpMB     int      // for temporary files
	Read      []string // files and folders of this machine that commands may read besides the system's
	Env       []string // names of this process's variables that are passed to commands
	// Workspaces are the folders that contain the workspaces of commands. They need not exist yet.
	Workspaces []string
	// Supervisor is the program that is run beside each command: one whose main calls Main. ""
	// means this program, even after its file was replaced.
	Supervisor string
	Log        *slog.Logger
	// OnKill, if set, is called with the reason when a command was ended.
	OnKill func(Reason)
}

// A Box is a Sandbox on this machine.
type Box struct {
	cfg   Config
	mode  Mode
	bwrap string // the program
	// groups is where the control groups of commands are made; the zero value means that there are
	// none.
	groups      cgroup.Place
	failedModes []Attempt
}

// Mode returns the mode in which commands run; it is never Auto.
func (b *Box) Mode() Mode { return b.mode }

// ModeOf returns the mode in which a sandbox runs commands; None if the sandbox doesn't say.
func ModeOf(s Sandbox) Mode {
	if m, ok := s.(interface{ Mode() Mode }); ok {
		return m.Mode()
	}
	return None
}

// Groups reports whether the kernel limits the memory and processes of commands, with control
// groups. Otherwise only the supervisor limits them: it measures them ten times a second.
func (b *Box) Groups() bool { return b.groups.IsUsable() }

// WhyNotBetter says why commands don't run in a mode that separates them better from the machine;
// "" if there is no better one, or if the mode was configured.
func (b *Box) WhyNotBetter() string {
	return joinAttempts(b.failedModes, "; ", func(a Attempt) string { return string(a.Mode) + ": " + a.Err.Error() })
}

// An Attempt is a mode that was tried and doesn't work.
type Attempt struct {
	Mode   Mode
	Err    error
	Remedy string
}

// An AbsentError means that no mode of the sandbox works on this machine, so no command may be run.
type AbsentError struct{ Tried []Attempt }

func (e *AbsentError) Error() string {
	return "commands can't be isolated on this machine; " +
		joinAttempts(e.Tried, "; ", func(a Attempt) string { return string(a.Mode) + ": " + a.Err.Error() })
}

// Remedy says what the operator can do.
func (e *AbsentError) Remedy() string {
	return joinAttempts(e.Tried, "; or ", func(a Attempt) string { return a.Remedy })
}

// joinAttempts describes each attempt in words, and puts between between them.
func joinAttempts(tried []Attempt, between string, words func(Attempt) string) string {
	all := make([]string, len(tried))
	for i, a := range tried {
		all[i] = words(a)
	}
	return strings.Join(all, between)
}

// A SettingError means that this machine cannot do what a setting asks for.
type SettingError struct{ Key, Wrong, Remedy string }

func (e *SettingError) Error() string { return e.Key + ": " + e.Wrong + ": " + e.Remedy }

// errSetup means that a command was not run because the sandbox could not be set up.
var errSetup = errors.New("the walls of the sandbox could not be put up")
