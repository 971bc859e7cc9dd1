package sqlbook

import (
	"context"

	"parley/sessions/sqldb"
)

// CheckEmpty returns a *sqldb.NotEmptyError if a table of to has rows.
func CheckEmpty(ctx context.Context, from, to *Book) error {
	return sqldb.CheckEmpty(ctx, from.db, to.db)
}

// Copy copies everything from a book in SQLite to one in PostgreSQL, all of it or
// nothing; see [sqldb.Transfer].
func Copy(ctx context.Context, from, to *Book, within func(*sqldb.Tx) error) (rows map[string]int64, err error) {
	return sqldb.Transfer(ctx, from.db, to.db, within)
}
