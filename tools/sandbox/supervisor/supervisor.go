// Package supervisor implements the process that runs beside each command of the sandbox: it starts the command in
// isolation, holds the command to its limits, and ends it with everything that it has started when its time is over.
//
// The program runs itself as a supervisor, once for each command. This file defines the messages between the two
// processes. The supervisor begins in begin_linux.go and does its work in watch_linux.go; enter_linux.go runs inside
// the sandbox before the command's own program takes over.
package supervisor

import (
	"errors"
	"os"
	"time"

	"parley/tools/sandbox/cgroup"
)

// The arguments with which this program starts itself; no person types them.
const (
	Command = "sandbox-supervisor"
	// Proxying, as the argument after Command, means that the command may reach a list of hosts.
	// Then Main rather than init must run the supervisor, because Main is given the proxy.
	Proxying     = "proxy"
	enterCommand = "sandbox-enter"
)

// The file descriptors of a supervisor, besides standard input, output and error.
const (
	controlFD = 3 // from the caller: a Request, then lines that say until when the command may continue; when it is closed, the command is ended
	reportFD  = 4 // to the caller: the Report
)

// A Mode says how a command is isolated.
type Mode string

// The modes in which commands run.
const (
	Bubblewrap Mode = "bubblewrap" // namespaces
	Landlock   Mode = "landlock"   // rules of the kernel, for machines without namespaces
	None       Mode = "none"       // no isolation
)

// A Request says what the supervisor is to run, and how. Its fields mean the same as those of the
// sandbox's Command and Config.
type Request struct {
	Mode         Mode
	Bwrap        string // the program, in the mode Bubblewrap
	Args         []string
	OwnProgram   bool // whether Args are arguments of this program
	Env          []string
	Workspace    string   // "" means none
	Folder       FolderID // which folder Workspace is; zero unless the caller is root
	Dir          string   // the folder below Workspace in which the command starts
	WritableDir  string   // the only folder below Workspace that the command can write to; "" means all of Workspace
	WritesAll    bool
	ReadOnly     bool // whether it cannot write to Workspace at all
	ShownFolders []ShownFolder
	UID, GID     int // the user that it runs as; -1 means the supervisor's, who is not root
	// Mapped means that Workspace is a directory of root's that the command's user works in as if
	// it were theirs.
	Mapped bool
	// Personal means that Workspace is a person's own directory, in which the supervisor changes
	// and removes nothing.
	Personal   bool
	Read       []string
	FullNet    bool
	Hosts      []string // reached through the proxy
	Memory     int64    // in bytes, like Tmp; 0 means no limit, as in Processes
	Tmp        int64
	Processes  int
	Groups     cgroup.Place // nowhere if there are no control groups
	Quota      Quota
	MostlyIdle bool // whether it runs for a long time and does nothing most of it
	// Times are nanoseconds of Clock; 0 means none.
	Deadline int64
	Lease    int64
}

// A FolderID distinguishes a folder from all others on the machine.
type FolderID struct{ Dev, Ino uint64 }

// Proxied reports whether the command reaches hosts through a proxy.
func (r *Request) Proxied() bool { return len(r.Hosts) > 0 && !r.FullNet }

// A ShownFolder is a folder of this machine that a command can read.
type ShownFolder struct {
	Path string
	// PathInside is the path of the folder inside, if the command has namespaces of its own; otherwise its
	// path is the same as outside.
	PathInside string
	// Env is the variable that tells the command the folder's path; "" means none.
	Env string
}

// A Quota limits how much a folder may contain. A field that is 0 means no limit.
type Quota struct {
	Bytes int64 // each item counts as whole blocks of 4 KiB
	Items int   // files and folders
}

// A Report says how a command ended.
type Report struct {
	ExitCode int      // -1 if the command was ended
	Killed   Reason   `json:",omitempty"` // "" if the command ended by itself
	Detail   string   `json:",omitempty"` // Killed in words
	Refused  []string `json:",omitempty"` // the hosts that the proxy refused
	Duration time.Duration
	Grouped  bool `json:",omitempty"` // whether it ran in a control group
	// Failure says why nothing was run, or why it is unknown how the command ended; "" otherwise. Fault is the kind of
	// failure, if callers act on it.
	Failure string `json:",omitempty"`
	Fault   Fault  `json:",omitempty"`
}

// A Reason is why a command was ended.
type Reason string

// Why commands are ended.
const (
	Timeout   Reason = "timeout"   // its deadline
	Cancelled Reason = "cancelled" // its caller's context was canceled
	Lease     Reason = "lease"     // the process that ran it died, or was paused for too long
	Memory    Reason = "memory"
	Processes Reason = "processes"
	Disk      Reason = "disk"
)

// A Fault is a kind of failure that callers act on.
type Fault string

// Failures that callers act on.
const (
	// Late means that too much time has passed since the caller last held the session.
	Late  Fault = "late"
	Setup Fault = "setup" // the sandbox could not be set up; standard error says why
	// Unreachable means that the command's user cannot reach what the command needs.
	Unreachable Fault = "unreachable"
	// Replaced means that another folder has replaced the workspace.
	Replaced Fault = "replaced"
	// Unmapped means that only root can work in the workspace, which root keeps.
	Unmapped Fault = "unmapped"
)

// Errors that Report contains as faults, and the error for a missing proxy.
var (
	errLate  = errors.New("it was too late to start the command")
	errSetup = errors.New("the walls of the sandbox could not be put up")
	// errUnreachable occurs only for root, whose commands run as another user.
	errUnreachable = errors.New("commands run as a user who cannot reach what they need")
	errReplaced    = errors.New("another folder has taken the place of the workspace")
	errUnmapped    = errors.New("nobody but root can work in the workspace")
	errNoProxy     = errors.New("this supervisor was not told that a proxy is needed")
)

// workspaceInside is the path of the workspace in the mode Bubblewrap: the same on every machine of
// a fleet, so that whatever is installed there works on each.
const workspaceInside = "/workspace"

// writableInside is the path of the folder that a command can write to, if that is not its whole
// workspace. It is not within the workspace, because there others could replace a folder in its
// path with a link, and the command would write elsewhere.
const writableInside = "/job"

// CommandUser is the user, and the group, that commands run as if this process is root and their
// workspace belongs to nobody but root. It is the same on every machine, because several may share
// a filesystem, and one that systems assign to nobody.
const CommandUser = 65527

// ThisProgram is the path of this program, even after its file was replaced.
const ThisProgram = "/proc/self/exe"

// Path is the PATH of every command.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// A Proxy lets a command reach hosts. The type that implements it is in another package, because
// the libraries that it uses would have to be initialized before any supervisor could begin.
type Proxy interface {
	// Serve serves connections to a listening socket until the proxy is closed. It closes
	// the file.
	Serve(listening *os.File) error
	// Refused returns the hosts that the command asked for and may not reach.
	Refused() []string
	Close() error
}
