package sqlbook

import "time"

// Compact is the migration that leaves sends and parts only their primary keys.
const Compact = schemaCompact

// About is the migration after which processes have descriptions.
const About = schemaAbout

// AfterStep sets the function that is called after each transaction of an erasure.
func (b *Book) AfterStep(call func()) { b.afterStep = call }

// SetClock replaces the clock by which a step of an erasure ends.
func (b *Book) SetClock(now func() time.Time) { b.now = now }

// The limits of a step of an erasure.
const (
	StepTime  = stepTime
	StepUnits = stepUnits
	UnitRows  = unitRows
)

// PruneLimit is the maximum number of old sends that a transaction deletes.
const PruneLimit = pruneLimit
