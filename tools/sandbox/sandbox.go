// Package sandbox runs the commands of agents separated from the rest of the machine.
//
// The kernel enforces this with bubblewrap's namespaces, or with Landlock's rules; comments call both the walls. A
// command sees its session's workspace, a folder for temporary files that is removed with it, and the system's
// programs; it sees nothing of other sessions, and nothing of the host's files, processes and environment. It reaches
// no network except what is allowed. The memory, processes, disk space, output and time that it uses are limited.
// Nothing that a command has started outlives the command, its deadline, or the process that asked for it.
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

// A Sandbox runs commands. It may be used by several goroutines at once.
type Sandbox interface {
	// Run runs one command to its end and returns its result. When Run returns, no process of the
	// command is left. A command that fails, or that was ended for what it did, gives a Result; an
	// error means that the command was not run, or that it is unknown how it ended. The command
	// ends when ctx does: after ctx's deadline the Result says Timeout, else the error is ctx's
	// cause.
	Run(ctx context.Context, c Command) (Result, error)
}

// A Command is one program that is run for one session.
type Command struct {
	// Args are the program, found with the PATH inside the sandbox, and its arguments.
	Args []string
	// OwnProgram means that the program to run is this one (Parley) and Args are all its arguments. Inside the sandbox
	// it is the version that is running now, even if its file was replaced since. It has no network.
	OwnProgram bool
	// Workspace is the session's directory on this machine: the only place that the command can
	// write to besides its temporary files. "" means that the command has only temporary files.
	Workspace string
	// Opened describes Workspace, or Owner, as it was when the caller opened it. If this process is
	// root, nothing is run, and no ownership is changed, if another folder is at its path by now:
	// whoever owns a folder above it could have put a link there.
	Opened fs.FileInfo
	// Personal means that Workspace is a person's own directory. Nothing in it changes its owner,
	// and nothing is removed because it is too deep. If this process is root, and the directory
	// root's, a command works in it as another user, and the files that it makes there belong to
	// root; if the system cannot do that, no command runs in it.
	Personal bool
	// Owner is a folder on this machine. If this process is root, a command without a Workspace
	// runs as the user who owns Owner, and one with a Workspace as the user who owns the Workspace.
	// No command runs as root: if the owner is root, or there is none, it runs as the user
	// CommandUser, and the Workspace is given to that user.
	Owner string
	// Dir is the folder below Workspace in which the command starts; "" means Workspace.
	Dir string
	// WritableDir is a folder below Workspace: the only one that the command can write to, unless
	// WritesAll is set; "" means all of Workspace. The folder must exist, and no part of its path
	// may be a symbolic link. The variable JOB_DIR tells the command where the folder is. Without
	// walls the command can write everywhere.
	WritableDir string
	WritesAll   bool
	// ReadOnly means that the command cannot write to Workspace at all. Without walls it can.
	ReadOnly bool
	// ShownFolders are other folders on this machine that the command can read.
	ShownFolders []Shown
	// ReadsFor, if not nil, are paths on this machine: of the files and folders in Config.Read, the command can read only
	// those that contain one of them.
	ReadsFor []string
	// Env are variables, as NAME=VALUE, in addition to those that every command has.
	Env []string
	// Stdin is the command's input; nil means none. If it is not a file, it must end soon after ctx
	// is done.
	Stdin io.Reader
	// Network means that the agent that the command runs for may use the network. The command can
	// reach what the sandbox is configured to allow, and no more.
	Network bool
	// Reach, if set, replaces that configuration if Network is set.
	Reach *Network
	// HeldAt is the last time at which it was certain that no other process works on the session. If
	// that is too long ago, the command does not start, or does not continue. The zero time means
	// now.
	HeldAt time.Time
	// Quota limits how much the workspace may contain; zero values mean no limit. A command that
	// exceeds it is ended.
	Quota Quota
	// MaxOutput is how many bytes are kept of stdout and of stderr each; 0 means the constant
	// MaxOutput.
	MaxOutput int
	// Output, if set, is called with what the command writes to standard output and error, as it is
	// written: one call at a time, and never after Run has returned.
	Output func(p []byte)
	// Stdout, if set, receives what the command writes to standard output, and the Result contains
	// none of it. The command gets a file as it is: Run does not wait for its readers.
	Stdout io.Writer
	// MostlyIdle means that the command runs for a long time and is idle for most of it. The supervisor measures it
	// less often if the kernel limits it, too.
	MostlyIdle bool
}

// A Place holds what all commands of a session have in common.
type Place struct {
	Workspace string
	Opened    fs.FileInfo // describes the Workspace as it was when the caller opened it; see Command
	Dir       string      // the folder below Workspace in which a command starts
	Quota     Quota
	Personal  bool
	Network   bool // whether the agent may use the network
}

// Command returns a command with these arguments in this place.
func (p Place) Command(args ...string) Command {
	return Command{Args: args, Workspace: p.Workspace, Opened: p.Opened, Dir: p.Dir, Quota: p.Quota, Personal: p.Personal, Network: p.Network}
}

// CommandUser is the user and group that commands run as if this process is root and nobody else
// owns their workspace.
const CommandUser = supervisor.CommandUser

// A Quota limits how much a folder may contain.
type Quota = supervisor.Quota

// A Result says how a command ended and what it wrote.
type Result struct {
	// ExitCode is the program's exit code; -1 if it has none because it was ended.
	ExitCode int
	// Stdout and Stderr are what the command wrote. Of long output they contain the beginning and
	// the end, with a line in between that says how much is missing.
	Stdout, Stderr string
	Duration       time.Duration
	// Killed says why the command was ended; "" if it ended by itself.
	Killed Reason
	// Detail says in words what the command used too much of; "" if Killed is "".
	Detail string
	// Refused are the hosts that the command tried to reach but may not, each once.
	Refused []string
}

// A Shown is a folder of this machine that a command can read.
type Shown = supervisor.ShownFolder

// A Reason is why a command was ended.
type Reason = supervisor.Reason

// Why commands are ended.
const (
	Timeout   = supervisor.Timeout   // its deadline
	Cancelled = supervisor.Cancelled // its caller's context was canceled
	Lease     = supervisor.Lease     // the process that ran it died, or was paused for too long
	Memory    = supervisor.Memory
	Processes = supervisor.Processes
	Disk      = supervisor.Disk
)

// MaxOutput is how many bytes are kept of each of a command's outputs, unless the command says
// otherwise.
const MaxOutput = 64 << 10

// ErrNoNetworkIsolation is the error of Run if the sandbox has no walls, so that it could not keep the command from the
// network, and Command.Network is not set or Command.Reach allows only a part.
var ErrNoNetworkIsolation = errors.New("without walls a command cannot be kept from the network")

// ErrCannotProvideNetwork is the error of Run if Command.Reach asks for the network, or a part of it, and commands run
// with Landlock, which can provide neither.
var ErrCannotProvideNetwork = errors.New("these walls cannot give a command the network, or a part of it")

// ErrRootsOwn is the error of Run if this process is root, the workspace is a person's own
// directory that belongs to root, and the system cannot let another user work there in root's
// place.
var ErrRootsOwn = errors.New("a command never runs as root, and the directory belongs to root")

// ErrUnreachable is the error of Run if this process is root and the user that the command was to
// run as cannot reach the workspace, or something else that the command needs.
var ErrUnreachable = errors.New("the user that commands run as cannot reach what they need")

// ErrReplaced is the error of Run if this process is root and another folder has replaced the
// workspace since it was opened.
var ErrReplaced = errors.New("another folder has taken the place of the workspace")

// ErrLate is the error of Run if Command.HeldAt is too long ago: nothing was run, because another
// process may hold the session by now.
var ErrLate = errors.New("it was too late to start the command")
