package sqlbook

import "time"

// Compact is the migration after which sends and parts have no other key than their own.
const Compact = schemaCompact

// AfterStep has call called after each transaction of an erasure.
func (b *Book) AfterStep(call func()) { b.afterStep = call }

// SetClock replaces the clock by which a step of an erasure ends.
func (b *Book) SetClock(now func() time.Time) { b.now = now }

// The bounds of a step of an erasure.
const (
	StepTime  = stepTime
	StepUnits = stepUnits
	UnitRows  = unitRows
)

// PruneLimit is how many old sends a transaction deletes at most.
const PruneLimit = pruneLimit
