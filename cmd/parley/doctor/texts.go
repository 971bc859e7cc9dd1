// This file has what people read from this package.

package doctor

const (
	textCheckBroke      = "one of the checks broke"
	textSQLite          = "SQLite in the home"
	textSQLiteAnd       = "SQLite in the home; "
	textRedisVersion    = "Redis is version "
	textNoAppendOnly    = "Redis doesn't keep an append-only file: restarting Redis would lose messages"
	textPostgresVersion = "PostgreSQL is version %d"

	textIndexed        = "%d entries are indexed"
	textIndexBehind    = "; %d newer ones are read with each search, and are indexed soon"
	textIndexMissing   = "; %d can't be found yet"
	textIndexStray     = "; %d that are indexed aren't there any more"
	textIndexUnknown   = "I couldn't look at the index: %v"
	textEmbedding      = "%s answers in %d ms with %d dimensions; %d entries have vectors"
	textVectorsWaiting = "; %d at most are waiting for theirs"
	textNoVectors      = "; recall finds by words alone until they are made"
	textOtherVectors   = "; these are of %s with %d dimensions: recall finds by words alone until they are made anew"
	textWordsAlone     = "; recall finds by words alone what it has no vectors of, and all while it can't ask this model"
	textVectorsRemedy  = "a running server makes them"
	textIndexRemedy    = "a running server indexes what is missing, and notices within a day if it has to index everything anew"
)
