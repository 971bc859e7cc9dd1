// Package master is the contract between the bus and what knows which server of a group is the master.
//
// Sentinels know it for one group of a master and its replicas, and the nodes of a Redis Cluster know it
// for each slot of keys. Packages sentinel and cluster ask them.
package master

import "context"

// A View is what is known about a group at a moment.
type View struct {
	Master   string // the master's address
	RunID    string // which process the master was when it was last asked
	Replicas int    // how many replicas are known, connected or not
	// Stable says that most of those who decide agree on the master, and that none of these considers it down or
	// is replacing it.
	Stable bool
	// Faults say why some who were asked gave no answer.
	Faults []string
	Asked  int // how many were asked
}

// A Finder finds the master of one group.
type Finder interface {
	// View asks those who know. It returns the newest answer that most of them give: one that is cut off
	// from the others keeps naming the old master. If too few answer or they disagree, it returns the
	// newest answer, unless that is older than the last View; then it returns an error with the fault of
	// each.
	View(ctx context.Context) (View, error)
	// Close ends the connections.
	Close() error
}
