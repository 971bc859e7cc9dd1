package sandbox

import "time"

// The commands of this program that nobody types: it runs itself under them.
const (
	supervisorCommand = "sandbox-supervisor"
	enterCommand      = "sandbox-enter"
)

// The files that the supervisor has beside the command's own three.
const (
	controlFD = 3 // a request, then leases, each a line; its end ends the command
	reportFD  = 4 // the report
)

// A request is what the supervisor is told to run, and how.
type request struct {
	Mode      Mode
	Bwrap     string // the program, in the mode Bubblewrap
	Args      []string
	Env       []string
	Workspace string
	Dir       string // below it
	UID, GID  int    // whom it runs as; -1 is as the supervisor
	Read      []string
	FullNet   bool
	Hosts     []string // reached through the proxy
	Memory    int64    // bytes, as Tmp
	Tmp       int64
	Processes int
	Quota     Quota
	// Times are nanoseconds of the clock that runs since the machine was started,
	// also while it sleeps: both processes read the same. 0 is none.
	Deadline int64
	Lease    int64
}

// A report is how it went.
type report struct {
	ExitCode int
	Killed   Reason   `json:",omitempty"`
	Detail   string   `json:",omitempty"`
	Refused  []string `json:",omitempty"`
	Duration time.Duration
	// Failure says why nothing was run, or nobody knows how it ended; Fault is
	// what of it callers decide on.
	Failure string `json:",omitempty"`
	Fault   fault  `json:",omitempty"`
}

type fault string

const (
	faultLate  fault = "late"
	faultSetup fault = "setup" // the walls could not be put up; standard error says why
)

// inside is where the workspace lies in the mode Bubblewrap: at the same place on
// every machine of a fleet, so that what is installed there works on each.
const inside = "/workspace"

// searched is the PATH of every command.
const searched = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// nested is set for supervisors, and for nothing else.
const nested = "PARLEY_SANDBOX_SUPERVISOR"
