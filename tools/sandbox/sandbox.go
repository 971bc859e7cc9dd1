// Package sandbox runs the commands of agents inside walls, apart from the rest of the machine.
//
// Walls are what the kernel denies to a command: bubblewrap's namespaces, or rules of Landlock. A
// command sees its session's workspace, a folder for temporary files that is removed with it, and
// the system's programs; nothing of other sessions, of the host's files, processes and
// environment, and no network but what is allowed. How much memory, processes, disk, output and
// time it takes is bounded. Nothing that a command has started outlives the command, its
// deadline, or the process that has asked for it.
//
// This file is the contract that tools work with.
package sandbox

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"parley/tools/sandbox/supervisor"
)

// A Sandbox runs commands. Many goroutines may use it at once.
type Sandbox interface {
	// Run runs one command to its end and returns its result. When Run returns, no
	// process of the command is left. A command that fails, or that was ended for what it
	// did, gives a Result; an error means that the command was not run, or that nobody
	// knows how it ended. The command ends with ctx: after ctx's deadline the Result says
	// Timeout, else the error is ctx's cause.
	Run(ctx context.Context, c Command) (Result, error)
}

// A Command is one program that is run for one session.
type Command struct {
	// Args are the program, found by the PATH inside, and its arguments.
	Args []string
	// Own means that the program to run is this one (Parley) and Args are all its arguments.
	// Inside the sandbox it is the same version that runs now, even if its file was replaced
	// since. It has no network.
	Own bool
	// Workspace is the session's directory on this machine: all that the command can write
	// to besides its temporary files. "" means that the command has temporary files alone.
	Workspace string
	// Opened is what the caller knows of Workspace, or of Owner, since it opened that. If this
	// process is root, nothing is run, and nothing given to anybody, if another folder has taken its
	// path since then: whoever owns a folder above it could have put a link there.
	Opened fs.FileInfo
	// Personal means that Workspace is a person's own directory. Nothing in it changes its owner,
	// and nothing is removed that is too much. If this process is root, and the directory root's,
	// a command works in it as another user, and what it makes there belongs to root; where the
	// system cannot do that, no command runs in it.
	Personal bool
	// Owner is a folder on this machine: if this process is root, a command without a Workspace
	// runs as the user who owns that folder, and one with a Workspace as the user who owns that. No
	// command runs as root: where the owner is root, and where there is none, it runs as the
	// user CommandUser, to whom the Workspace is given.
	Owner string
	// Dir is the folder below Workspace in which the command starts; "" means Workspace.
	Dir string
	// Writes is a folder below Workspace: the only one that the command can write to,
	// unless WritesAll is set; "" means all of Workspace. The folder must exist, and no
	// name on the way to it may be a symbolic link. The variable JOB_DIR tells the command
	// where the folder is. Without walls the command can write to everything.
	Writes    string
	WritesAll bool
	// ReadOnly means that the command cannot write to Workspace at all. Without walls it can.
	ReadOnly bool
	// Shows are further folders of this machine that the command can read.
	Shows []Shown
	// Env are variables, as NAME=VALUE, besides those that every command has.
	Env []string
	// Stdin is the command's input; nil means none. If it is not a file, it must end soon after
	// ctx is done.
	Stdin io.Reader
	// Network means that the agent for which the command runs may use the network. The
	// command can reach what the sandbox is configured to allow, and no more.
	Network bool
	// Reach, if set, is what the command can reach instead if Network is set.
	Reach *Network
	// Held is when it was last certain that no other process works on the session. If that is too
	// long ago, the command does not start, or does not go on. The zero time means now.
	Held time.Time
	// Quota bounds what the workspace may hold; zero values mean no bound. A command that
	// makes the workspace hold more is ended.
	Quota Quota
	// MaxOutput is how many bytes are kept of stdout and of stderr; 0 means the constant
	// MaxOutput.
	MaxOutput int
	// Output, if set, is called with what the command writes to standard output and error,
	// as it comes: one call at a time, and never after Run has returned.
	Output func(p []byte)
	// Stdout, if set, receives what the command writes to standard output, and the Result
	// has none of that. The command gets a file as it is: Run does not wait for its readers.
	Stdout io.Writer
	// Waits means that the command runs for long and does nothing most of the time. The
	// supervisor measures it less often if the kernel bounds it too.
	Waits bool
}

// A Place holds what all commands of a session have in common.
type Place struct {
	Workspace string
	Opened    fs.FileInfo // the Workspace as the caller has opened it; see Command
	Dir       string      // below it
	Quota     Quota
	Personal  bool
	Network   bool // whether the agent may use the network
}

// Command returns a command with these arguments at this place.
func (p Place) Command(args ...string) Command {
	return Command{Args: args, Workspace: p.Workspace, Opened: p.Opened, Dir: p.Dir, Quota: p.Quota, Personal: p.Personal, Network: p.Network}
}

// CommandUser is the user and the group as whom commands run if this process is root and nobody else
// owns their workspace.
const CommandUser = supervisor.CommandUser

// A Quota bounds how much a folder may hold.
type Quota = supervisor.Quota

// A Result is how a command ended and what it wrote.
type Result struct {
	// ExitCode is the program's exit code; -1 if it has none because it was ended.
	ExitCode int
	// Stdout and Stderr are what the command wrote: of long output the beginning and the
	// end, with a line between them that says how much is missing.
	Stdout, Stderr string
	Duration       time.Duration
	// Killed says why the command was ended; "" if it ended by itself.
	Killed Reason
	// Detail says in words of what the command took too much; "" if Killed is "".
	Detail string
	// Refused are the hosts that the command tried to reach and may not, each once.
	Refused []string
}

// A Shown is a folder of this machine that a command can read.
type Shown = supervisor.ShownFolder

// A Reason is why a command was ended.
type Reason = supervisor.Reason

// Why commands are ended.
const (
	Timeout   = supervisor.Timeout   // its deadline
	Cancelled = supervisor.Cancelled // its caller's context was cancelled
	Lease     = supervisor.Lease     // the process that ran it died, or was paused for too long
	Memory    = supervisor.Memory
	Processes = supervisor.Processes
	Disk      = supervisor.Disk
)

// MaxOutput is how many bytes are kept of each of a command's outputs, unless the command
// says otherwise.
const MaxOutput = 64 << 10

// ErrNoNetworkWall is the error of Run if Command.Network is not set and the sandbox has
// no walls, so that it could not keep the command from the network.
var ErrNoNetworkWall = errors.New("without walls a command cannot be kept from the network")

// ErrNoReach is the error of Run if Command.Reach asks for a part of the network that this mode
// cannot give or limit.
var ErrNoReach = errors.New("these walls cannot give a command the network, or a part of it")

// ErrRootsOwn is the error of Run if this process is root, the workspace is a person's own directory
// that belongs to root, and the system cannot let another user work there for root.
var ErrRootsOwn = errors.New("a command never runs as root, and the directory belongs to root")

// ErrUnreachable is the error of Run if this process is root and the user as whom the command was
// to run cannot reach the workspace, or what else the command needs.
var ErrUnreachable = errors.New("the user as whom commands run cannot reach what they need")

// ErrReplaced is the error of Run if this process is root and another folder has taken the place of
// the workspace since it was opened.
var ErrReplaced = errors.New("another folder has taken the place of the workspace")

// ErrLate is the error of Run if Command.Held is too long ago: nothing was run, because another
// process may have the session by now.
var ErrLate = errors.New("it was too late to start the command")
