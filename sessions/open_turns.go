package sessions

import (
	"context"
	"time"
)

// An OpenTurn is a turn that has begun but not ended, according to its log.
type OpenTurn struct {
	Session string
	Turn    string
	Person  string
	Agent   string
	Started time.Time
	// Parked says that it waits for asks or sub-agents, and that no process works on it.
	Parked bool
	// Calls are the tool calls that have begun and have no result yet.
	Calls []OpenCall
}

// An OpenCall is a tool call that has begun and has no result yet.
type OpenCall struct {
	Call  string
	Tool  string
	Since time.Time // when it last began
}

// A TurnReader reports the progress of turns without holding their sessions' leases.
type TurnReader interface {
	// OpenTurns returns the turns of a session that have not ended, in the order in which they began. It
	// reads only the ends of the turns, so it may miss a call that has been running while many other
	// calls of its turn ended. For a session that does not exist it returns none.
	OpenTurns(ctx context.Context, key string) ([]OpenTurn, error)
}

// RunningJobs are the running jobs of all sessions: the oldest ones, and how many there are in total.
type RunningJobs struct {
	Jobs  []Job
	Count int
}

// A JobLister lists jobs of all sessions.
type JobLister interface {
	// AllRunningJobs counts the running jobs, and lists at most limit of them.
	AllRunningJobs(ctx context.Context, limit int) (RunningJobs, error)
	// EndedJobs returns the jobs that have ended and are still on record, the last to end first, at most
	// limit.
	EndedJobs(ctx context.Context, limit int) ([]Job, error)
}
