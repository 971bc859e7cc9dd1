// Package bustest is the suite that every bus passes: each promise of package bus is a named test.
//
// An implementation's tests call Run with a Harness and, from TestMain, Main,
// which lets the suite start processes of its own and kill them. Bench is the
// benchmark of an implementation. Take and TakeOutbound, in mail.go, are for tests of what
// publishes.
//
// bustest.go lists the groups of promises, rig.go has the steps that their tests share,
// and each other file but mail.go has the promises of one or two groups, after which it is named;
// waiting.go has those of delays, pauses and closing, and quota.go those of several
// leases in one call, too.
package bustest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
)

// A Bus is every interface that an implementation must have.
type Bus interface {
	bus.Bus
	bus.Events
	bus.History
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	bus.Holder
	bus.Roster
	Close() error
}

// Options are the settings of a bus that the suite chooses.
type Options struct {
	Caps    bus.Caps
	MaxHold time.Duration // the longest that a lease may be held; 0 means a long time
	Lease   time.Duration // the time without a sign of life after which a lease is lost; 0 means the bus's default
}

// A Harness has the functions with which the suite opens an implementation and looks into it.
type Harness struct {
	// NewPlace makes a new, empty place for a bus's data and returns its name: a path,
	// for example, or a prefix of keys.
	NewPlace func(t testing.TB) string
	// Open opens a bus over the data at a place. It is called in child
	// processes too.
	Open func(ctx context.Context, place string, o Options) (Bus, error)
	// Residue lists what a bus stores for single mailboxes, in memory and outside, except for dead
	// letters, so that a test can check that nothing is left behind. It may wait a moment for calls
	// under way to end.
	Residue func(t testing.TB, place string, b Bus) []string
	// NextDay makes the bus believe that it is a day later. It is nil if the bus uses
	// the test's own clock: with Simulated the test just sleeps for a day.
	NextDay func(t testing.TB, place string)
	// Simulated says that the bus may run in a bubble of testing/synctest: all of it is in this
	// process, and waits are free.
	Simulated bool
	// Shared says that several processes may have the data open at once.
	Shared bool
	// Divided says that the mailboxes are divided among several buses. Promises about several mailboxes together then
	// hold only for the mailboxes of one of these buses: their order, that a message's id is known in all of them,
	// that fences grow from one to the next, and the order of events.
	Divided bool
	// CutOff, for Shared buses, keeps b from reaching its backend until the returned
	// function is called. May be nil.
	CutOff func(t testing.TB, b Bus) (restore func())
	// Wipe, for Shared buses, makes the backend lose all data of a place. May be nil.
	Wipe func(t testing.TB, place string)
	// LeaseTime is how long a killed process's leases last, at most, if
	// Options.Lease is 0.
	LeaseTime time.Duration
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	groups := []struct {
		name  string
		tests []promise
	}{
		{"publish", publishPromises},
		{"order", orderPromises},
		{"lease", leasePromises},
		{"settle", settlePromises},
		{"dead", deadLetterPromises},
		{"forget", forgetPromises},
		{"hold", holdPromises},
		{"roster", rosterPromises},
		{"events", eventPromises},
		{"serverfeed", serverFeedPromises},
		{"quota", quotaPromises},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, p := range g.tests {
				t.Run(p.name, func(t *testing.T) { h.run(t, p.test) })
			}
		})
	}
	t.Run("fleet", func(t *testing.T) {
		if !h.Shared {
			t.Skip("one process at a time has this bus")
		}
		for _, p := range slices.Concat(fleetPromises, groupPromises) {
			t.Run(p.name, func(t *testing.T) { p.test(newRig(t, h)) })
		}
	})
	t.Run("crash", func(t *testing.T) {
		for _, p := range crashPromises {
			t.Run(p.name, func(t *testing.T) { p.test(newRig(t, h)) })
		}
	})
}

// A promise is one promise of package bus, with the test of it.
type promise struct {
	name string
	test func(r *rig)
}

// run runs a test, in a synctest bubble if the bus allows it.
func (h Harness) run(t *testing.T, test func(r *rig)) {
	if !h.Simulated {
		test(newRig(t, h))
		return
	}
	synctest.Test(t, func(t *testing.T) { test(newRig(t, h)) })
}

// Main runs the tests, unless this process was started by one of them.
func Main(m *testing.M, h Harness) {
	if role := os.Getenv(roleEnv); role != "" {
		os.Exit(runChild(h, role, os.Getenv(placeEnv)))
	}
	os.Exit(m.Run())
}

// FilePlace is a Harness's NewPlace for a bus that keeps its data in a file: it returns the
// path of a file that does not exist yet, and is removed after the test.
func FilePlace(t testing.TB) string { return filepath.Join(t.TempDir(), "bus.db") }
