package sqlstore

// LongSession is how many entries one transaction of an erasure erases.
const LongSession = longSessionEntries

// PurgedTables returns the tables that are purged after an erasure.
func (s *Store) PurgedTables() []string { return s.eraser.purger.tables }

// The expressions that find the runs of schedules. Tests of query plans run SQLite's statements on PostgreSQL
// too.
const (
	ScheduledBy         = scheduledBy
	ScheduledByPostgres = scheduledByPostgres
)
