// Package sandbox runs commands of an agent inside walls.
//
// A command sees its session's workspace, a folder for temporary files that ends
// with it, and the system's programs; nothing of other sessions, of the host's
// files, processes and environment, and no network but what is allowed. What it
// takes of memory, processes, disk, output and time is bounded. Nothing that it
// has started outlives it, its deadline, or the process that has asked for it.
//
// This file is the contract that tools work with.
package sandbox

import (
	"context"
	"errors"
	"io"
	"time"

	"parley/tools/sandbox/supervisor"
)

// A Sandbox runs commands. It may be used by many at once.
type Sandbox interface {
	// Run runs one command to its end and returns what came of it. When it
	// returns, no process of the command is left. A command that fails, or that
	// was ended for what it did, is a Result; an error says that it was not run
	// or that nobody knows how it ended. When ctx ends so does the command:
	// after its deadline the Result says Timeout, else the error is ctx's cause.
	Run(ctx context.Context, c Command) (Result, error)
}

// A Command is one program that is run for one session.
type Command struct {
	// Args are the program, found by the PATH inside, and its arguments.
	Args []string
	// Own says that the program is this one, and Args all arguments of its. It is there
	// inside, as it is now, also after its file was replaced. It has no network.
	Own bool
	// Workspace is the session's directory on this machine: all that the command
	// can write to besides its temporary files. "" is none: only those are there.
	Workspace string
	// Dir is the folder below Workspace that it starts in; "" is Workspace.
	Dir string
	// Writes is a folder below Workspace, the only one that it can write to, unless
	// WritesAll is set; "" is all of Workspace. It is there, and no name on the way to it
	// is a symbolic link. Where it lies inside is in the environment, as JOB_DIR. Without
	// walls the command can write to all the same.
	Writes    string
	WritesAll bool
	// ReadOnly says that it cannot write to Workspace at all. Without walls it can.
	ReadOnly bool
	// Shows are folders of this machine that it can read besides.
	Shows []Shown
	// Env is what its environment holds besides what every command has, as NAME=VALUE.
	Env []string
	// Stdin is what it reads; nil is nothing. Where it is no file, it is to end soon
	// after ctx has.
	Stdin io.Reader
	// Network says that whom it is run for may use the network. It gives what the
	// sandbox is configured to allow, and no more.
	Network bool
	// Reach, if set, is what Network gives instead.
	Reach *Network
	// Held is when the caller last knew that nobody else works on the session:
	// the command does not start, and does not go on, when that is too long ago.
	// The zero time is now.
	Held time.Time
	// Quota bounds what the workspace may hold; zero values are no bound. A
	// command that makes it hold more is ended.
	Quota Quota
	// MaxOutput is how much is kept of each of its outputs, in bytes; 0 is MaxOutput.
	MaxOutput int
	// Output, if set, is called with what it writes to standard output and error,
	// as it comes: one call at a time, and never after Run has returned.
	Output func(p []byte)
	// Stdout, if set, takes what it writes to standard output, and the Result has none of
	// it. A file is the program's own: nothing waits for whoever reads it.
	Stdout io.Writer
	// Waits says that it runs for long and does nothing most of the time: what it takes is
	// looked at less often where the kernel bounds it too.
	Waits bool
}

// A Place is where a session's commands run: what is the same for all of them.
type Place struct {
	Workspace string
	Dir       string // below it
	Quota     Quota
	Network   bool // whether whom they run for may use the network
}

// Command is a command at this place.
func (p Place) Command(args ...string) Command {
	return Command{Args: args, Workspace: p.Workspace, Dir: p.Dir, Quota: p.Quota, Network: p.Network}
}

// A Quota bounds a folder.
type Quota = supervisor.Quota

// A Result is what came of a command.
type Result struct {
	// ExitCode is the program's; -1 if it has none because it was ended.
	ExitCode int
	// Stdout and Stderr are what it wrote: of much output the beginning and the
	// end, with a line between them that says how much is missing.
	Stdout, Stderr string
	Duration       time.Duration
	// Killed says why it was ended; "" if it ended by itself.
	Killed Reason
	// Detail says what was too much, in words; "" if Killed is.
	Detail string
	// Refused are the hosts that it asked for and may not reach, each once.
	Refused []string
}

// A Shown is a folder of this machine that a command can read.
type Shown = supervisor.Shown

// A Reason is why a command was ended.
type Reason = supervisor.Reason

// The reasons.
const (
	Timeout   = supervisor.Timeout   // its deadline
	Cancelled = supervisor.Cancelled // whoever ran it wants it no longer
	Lease     = supervisor.Lease     // the process that ran it died, or stood still for too long
	Memory    = supervisor.Memory
	Processes = supervisor.Processes
	Disk      = supervisor.Disk
)

// MaxOutput is how much of each of a command's outputs is kept, in bytes, unless it says
// otherwise.
const MaxOutput = 64 << 10

// ErrNoNetworkWall is the error of Run where Command.Network is not set and the
// sandbox, which has no walls, could not keep the command from the network.
var ErrNoNetworkWall = errors.New("without walls a command cannot be kept from the network")

// ErrNoReach is the error of Run where Command.Reach asks for what the walls cannot give.
var ErrNoReach = errors.New("these walls cannot give a command the network, or a part of it")

// ErrLate is the error of Run where too much time went by since Command.Held:
// nothing was run.
var ErrLate = errors.New("it was too late to start the command")
