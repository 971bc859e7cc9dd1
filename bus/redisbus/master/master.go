// Package master is the contract between the bus and the packages that know which server of a group is the master.
//
// Sentinels know it for one group of a master and its replicas, and the nodes of a Redis Cluster know it for each
// slot of keys. Packages sentinel and cluster ask them.
package master

import "context"

// A View is the state of a group at one moment.
type View struct {
	Master   string // the master's address
	RunID    string // the run id of the master's process when it was last asked
	Replicas int    // how many replicas are known, connected or not
	// Stable says that most of those that vote agree on the master, and that none of these considers it down or is
	// replacing it.
	Stable bool
	// Faults are the errors of those that gave no answer.
	Faults []string
	Asked  int // how many servers were asked
}

// A Finder finds the master of one group.
type Finder interface {
	// View asks all servers that know the master. It returns the newest answer that a majority gives, because a server
	// that is cut off from the others keeps naming the old master. If too few answer or they disagree, it returns the
	// newest answer, unless that is older than the last View; then it returns an error with the fault of each.
	View(ctx context.Context) (View, error)
	// Close ends the connections.
	Close() error
}
