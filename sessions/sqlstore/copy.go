package sqlstore

import (
	"context"
	"fmt"

	"parley/sessions/participants"
	"parley/sessions/search"
	"parley/sessions/sqldb"
)

// CheckEmpty returns a *sqldb.NotEmptyError if a table of the store to contains rows.
func CheckEmpty(ctx context.Context, to *Store) error {
	return sqldb.CheckEmpty(ctx, Schema(), to.db)
}

// Copy copies everything from a store in SQLite to one in PostgreSQL, all of it or
// nothing, and calls within in the same transaction; see [sqldb.Transfer].
func Copy(ctx context.Context, from, to *Store, within func(*sqldb.Tx) error) (rows map[string]int64, err error) {
	var vectors int64
	rows, err = sqldb.Transfer(ctx, Schema(), from.db, to.db, func(tx *sqldb.Tx) (err error) {
		if vectors, err = search.Copied(ctx, from.db, tx); err != nil {
			return err
		}
		if err := participants.Refill(tx); err != nil {
			return err
		}
		return within(tx)
	})
	if err == nil && vectors > 0 {
		rows["entry_vectors"] = vectors
	}
	return rows, err
}

// Fence returns the highest fence of all sessions, including erased ones.
func (s *Store) Fence(ctx context.Context) (int64, error) {
	var fence int64
	err := s.db.Read.QueryRowContext(ctx, `SELECT coalesce(max(fence), 0) FROM
		(SELECT fence FROM sessions UNION ALL SELECT fence FROM graves) AS known`).Scan(&fence)
	if err != nil {
		return 0, fmt.Errorf("look for the highest fence: %w", err)
	}
	return fence, nil
}
