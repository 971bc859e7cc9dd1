package sessions

import (
	"context"
	"time"
)

// An OpenTurn is a turn that has begun and not ended, as far as its log says.
type OpenTurn struct {
	Session string
	Turn    string
	Person  string
	Agent   string
	Started time.Time
	// Parked says that it waits for asks or sub-agents, and no process works on it.
	Parked bool
	// Calls are the tool calls that have begun and have no result yet.
	Calls []OpenCall
}

// An OpenCall is a tool call that has begun and has no result yet.
type OpenCall struct {
	Call  string
	Tool  string
	Since time.Time // when it was begun last
}

// A TurnReader reports the progress of turns without holding their sessions.
type TurnReader interface {
	// OpenTurns returns the turns of a session that have not ended, in the order in which they began. It
	// reads the ends of the turns alone, so it may miss a call that has been running while many others
	// of its turn ended. A session that does not exist has none.
	OpenTurns(ctx context.Context, key string) ([]OpenTurn, error)
}

// RunningJobs are the jobs of all sessions that run: the oldest ones, and how many there are.
type RunningJobs struct {
	Jobs  []Job
	Count int
}

// A JobLister lists jobs of all sessions.
type JobLister interface {
	// AllRunningJobs counts the running jobs, and lists at most limit of them.
	AllRunningJobs(ctx context.Context, limit int) (RunningJobs, error)
	// EndedJobs returns the jobs that have ended and are still known, the last one first, at most limit.
	EndedJobs(ctx context.Context, limit int) ([]Job, error)
}
