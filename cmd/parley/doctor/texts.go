// This file has what people read from this package.

package doctor

const (
	textCheckBroke      = "one of the checks broke"
	textSQLite          = "SQLite in the home"
	textSQLiteAnd       = "SQLite in the home; "
	textRedisVersion    = "Redis is version "
	textNoAppendOnly    = "Redis doesn't keep an append-only file: restarting Redis would lose messages"
	textPostgresVersion = "PostgreSQL is version %d"

	textIndexed      = "%d entries are indexed"
	textIndexBehind  = "; %d newer ones are read with each search, and are indexed soon"
	textIndexMissing = "; %d can't be found yet"
	textIndexStray   = "; %d that are indexed aren't there any more"
	textIndexUnknown = "I couldn't look at the index: %v"
	textIndexRemedy  = "a running server indexes what is missing, and notices within a day if it has to index everything anew"
)
