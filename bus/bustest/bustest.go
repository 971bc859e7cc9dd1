// Package bustest is the suite that every bus passes: each promise of package bus is a named test.
//
// An implementation's tests call Run with a Harness and, from TestMain, Main,
// which lets the suite start processes of its own and kill them. Bench measures.
package bustest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
)

// A Bus is all that a bus has to be.
type Bus interface {
	bus.Bus
	bus.Events
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	bus.Holder
	Close() error
}

// Options are what the suite sets.
type Options struct {
	Caps    bus.Caps
	MaxHold time.Duration // the longest that a lease may be held; 0 is long
	Lease   time.Duration // the time without a sign of life after which a lease is lost; 0 is the bus's own
}

// A Harness is how the suite gets at an implementation.
type Harness struct {
	// Place makes a new, empty place for a bus's data and says how to get
	// there: a path, a prefix.
	Place func(t testing.TB) string
	// Open opens a bus over the data at a place. It is called in child
	// processes too.
	Open func(ctx context.Context, place string, o Options) (Bus, error)
	// Residue lists what a bus keeps for single keys, beside dead letters, in
	// memory and outside; it may wait a moment for what is under way.
	Residue func(t testing.TB, place string, b Bus) []string
	// NextDay lets the bus believe that it is a day later. Nil: the time of the
	// bus is the test's own, which with Simulated is cheap to pass, or cannot
	// be changed.
	NextDay func(t testing.TB, place string)
	// Simulated says that the bus may run in a synctest bubble: all of it is in
	// this process, and waits are free.
	Simulated bool
	// Shared says that several processes may have the data open at once.
	Shared bool
	// CutOff, for Shared buses, lets b reach its backend no more, as a
	// partition does, until the returned function is called. May be nil.
	CutOff func(t testing.TB, b Bus) (restore func())
	// Wipe, for Shared buses, makes the backend lose all data of a place. May be nil.
	Wipe func(t testing.TB, place string)
	// LeaseTime is how long a killed process's leases last, at most, if
	// Options.Lease is 0.
	LeaseTime time.Duration
}

// Run is the suite.
func Run(t *testing.T, h Harness) {
	groups := []struct {
		name  string
		tests []promise
	}{
		{"publish", publishing},
		{"order", ordering},
		{"lease", leasing},
		{"settle", settling},
		{"dead", burying},
		{"forget", forgetting},
		{"hold", holding},
		{"events", watching},
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
		for _, p := range sharing {
			t.Run(p.name, func(t *testing.T) { p.test(newRig(t, h)) })
		}
	})
	t.Run("crash", func(t *testing.T) {
		for _, p := range crashing {
			t.Run(p.name, func(t *testing.T) { p.test(newRig(t, h)) })
		}
	})
}

// A promise is one test. Those in the groups above may run in a bubble.
type promise struct {
	name string
	test func(r *rig)
}

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
		os.Exit(child(h, role, os.Getenv(placeEnv)))
	}
	os.Exit(m.Run())
}

// FilePlace is a Harness's Place where data is a file.
func FilePlace(t testing.TB) string { return filepath.Join(t.TempDir(), "bus.db") }
