// Package supervisor is the process that stands beside each command of the sandbox: it
// starts the command inside its walls, holds it to its limits, and ends it with all that
// it has started when its time has come.
//
// The program runs itself to be one, once for each command. This file is what the two
// processes say to each other. begin_linux.go is where that process begins,
// watch_linux.go what it does; enter_linux.go is what happens inside before the command's
// own program takes over.
package supervisor

import (
	"errors"
	"os"
	"time"

	"parley/tools/sandbox/cgroup"
)

// The commands of this program that nobody types: it runs itself under them.
const (
	Command = "sandbox-supervisor"
	// Proxying, as the argument of Command, says that there is a list of hosts to be
	// reached: then Main is needed, which is given the proxy.
	Proxying     = "proxy"
	enterCommand = "sandbox-enter"
)

// The files that the supervisor has beside the command's own three.
const (
	controlFD = 3 // a Request, then leases, each a line; its end ends the command
	reportFD  = 4 // the Report
)

// A Mode is what the walls are made of.
type Mode string

// The modes that a command is run in.
const (
	Bubblewrap Mode = "bubblewrap" // namespaces
	Landlock   Mode = "landlock"   // rules of the kernel, where there may be no namespaces
	None       Mode = "none"       // no walls at all
)

// A Request is what the supervisor is told to run, and how.
type Request struct {
	Mode      Mode
	Bwrap     string // the program, in the mode Bubblewrap
	Args      []string
	Own       bool // Args are this program's
	Env       []string
	Workspace string // "" is none
	Dir       string // below it
	Writes    string // below it: all that the command can write to; "" is the whole
	WritesAll bool
	ReadOnly  bool // it can write to nothing of Workspace
	Shows     []Shown
	UID, GID  int // whom it runs as; -1 is as the supervisor
	Read      []string
	FullNet   bool
	Hosts     []string // reached through the proxy
	Memory    int64    // bytes, as Tmp
	Tmp       int64
	Processes int
	Groups    cgroup.Place // nowhere, where there are no control groups
	Quota     Quota
	Waits     bool // it runs for long and does nothing most of the time
	// Times are nanoseconds of Clock. 0 is none.
	Deadline int64
	Lease    int64
}

// Proxied tells whether the command reaches hosts through a proxy.
func (r *Request) Proxied() bool { return len(r.Hosts) > 0 && !r.FullNet }

// A Shown is a folder of this machine that a command can read.
type Shown struct {
	Path string
	// As is where it lies inside, where the command has namespaces of its own; else it
	// lies where it is.
	As string
	// Env is the variable that tells the command where it lies; "" is none.
	Env string
}

// A Quota bounds a folder.
type Quota struct {
	Bytes int64 // in blocks of 4 KiB
	Items int   // files and folders
}

// A Report is how it went.
type Report struct {
	ExitCode int
	Killed   Reason   `json:",omitempty"`
	Detail   string   `json:",omitempty"`
	Refused  []string `json:",omitempty"`
	Duration time.Duration
	Grouped  bool `json:",omitempty"` // whether it ran in a control group
	// Failure says why nothing was run, or nobody knows how it ended; Fault is
	// what of it callers decide on.
	Failure string `json:",omitempty"`
	Fault   Fault  `json:",omitempty"`
}

// A Reason is why a command was ended.
type Reason string

// The reasons.
const (
	Timeout   Reason = "timeout"   // its deadline
	Cancelled Reason = "cancelled" // whoever ran it wants it no longer
	Lease     Reason = "lease"     // the process that ran it died, or stood still for too long
	Memory    Reason = "memory"
	Processes Reason = "processes"
	Disk      Reason = "disk"
)

// A Fault is what callers decide on.
type Fault string

// The faults.
const (
	Late  Fault = "late"
	Setup Fault = "setup" // the walls could not be put up; standard error says why
)

// Errors that become faults.
var (
	errLate    = errors.New("it was too late to start the command")
	errSetup   = errors.New("the walls of the sandbox could not be put up")
	errNoProxy = errors.New("this supervisor was not told that a proxy is needed")
)

// inside is where the workspace lies in the mode Bubblewrap: at the same place on
// every machine of a fleet, so that what is installed there works on each.
const workspaceInside = "/workspace"

// insideWrites is where the folder lies that a command can write to, where that is not
// its whole workspace. It is no place in the workspace: on the way there others could put
// a link, and the folder would lie elsewhere.
const insideWrites = "/job"

// ThisProgram is this program, also after its file was replaced.
const ThisProgram = "/proc/self/exe"

// Path is the PATH of every command.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// A Proxy lets a command reach hosts. Its type is another package's: what it is made of
// would have to be initialised before any supervisor could begin.
type Proxy interface {
	// Serve takes connections to a listening socket until the proxy is closed. It closes
	// the file.
	Serve(listening *os.File) error
	Refused() []string
	Close() error
}
