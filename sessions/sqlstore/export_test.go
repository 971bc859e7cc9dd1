package sqlstore

// LongSession is how many entries one transaction of an erasure erases.
const LongSession = longSession

// PurgedTables returns the tables that are purged after an erasure.
func (s *Store) PurgedTables() []string { return s.eraser.purger.tables }

// What runs of schedules are found by; the tests of plans ask PostgreSQL what SQLite was asked.
const (
	ScheduledBy         = scheduledBy
	ScheduledByPostgres = scheduledByPostgres
)
