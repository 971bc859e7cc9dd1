package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// purgeWithin bounds a purge of PostgreSQL's, whose statements are bounded otherwise.
const purgeWithin = 30 * time.Minute

// Purge makes the database let go of what was deleted. Until then it can stand
// in pages that nothing points to, and on SQLite in the log beside the file.
//
// On SQLite nothing of it is left in any of the database's files when Purge
// returns nil. It rewrites the file, so it takes as long as that is large, needs
// as much room again, and writes wait for it; that the pages of deleted rows be
// overwritten would not do, for rows leave copies behind where a page is split
// or joined. On PostgreSQL the space of the dead rows of those tables is given
// free to be written over, beside everybody's work; what the server's own log
// and backups hold is theirs.
func (db *DB) Purge(ctx context.Context, tables ...string) error {
	if err := db.backend.purge(ctx, tables); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}

// purge works on the writer's connection, between two groups: writes queue up
// behind it, where on a connection of its own they would run into its lock.
func (w *writer) purge(ctx context.Context, _ []string) error {
	done := make(chan error, 1)
	select {
	case w.asides <- func(conn *sql.Conn) { done <- rewrite(ctx, conn) }:
		return <-done
	case <-w.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

func rewrite(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "VACUUM"); err != nil {
		return fmt.Errorf("rewrite the file: %w", err)
	}
	for {
		// Who still reads what was before keeps the log from being emptied.
		var busy, frames, moved int
		err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
		if err != nil {
			return fmt.Errorf("empty the log: %w", err)
		}
		if busy == 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("empty the log: somebody reads it: %w", ctx.Err())
		}
	}
}

func (s *server) purge(ctx context.Context, tables []string) (err error) {
	if !s.enter() {
		return ErrClosed
	}
	defer s.under.Done()
	ctx, cancel := context.WithTimeout(ctx, purgeWithin)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it was used: whether it can be used again the next one asks
	const set = "SELECT set_config('statement_timeout', ?, false)"
	var before string
	if err := conn.QueryRowContext(ctx, "SELECT current_setting('statement_timeout')").Scan(&before); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, set, "0"); err != nil {
		return err
	}
	defer func() {
		_, undo := conn.ExecContext(context.WithoutCancel(ctx), set, before)
		err = errors.Join(err, undo)
	}()
	_, err = conn.ExecContext(ctx, "VACUUM "+strings.Join(tables, ", "))
	return err
}
