package sqlstore

// LongSession is how many entries one transaction of an erasure erases.
const LongSession = longSession

// What runs of schedules are found by; the tests of plans ask PostgreSQL what SQLite was asked.
const (
	ScheduledBy         = scheduledBy
	ScheduledByPostgres = scheduledByPostgres
)
