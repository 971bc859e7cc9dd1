package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// purgeTimeout bounds a purge on PostgreSQL, in place of the timeout of statements.
const purgeTimeout = 30 * time.Minute

// Purge removes what deleted rows leave behind: until then their content may be in
// unused pages, and on SQLite in the log beside the file.
//
// On SQLite none of it is in any of the database's files once Purge returns nil. Purge rewrites the file, so it
// takes time and disk space in proportion to the file's size, and writes wait for that. Then it waits for those who
// read an earlier state, but writes do not. Overwriting deleted rows (secure_delete) would not be enough, because
// rows leave copies behind when a page is split or joined. On PostgreSQL Purge lets the space of the tables' dead
// rows be overwritten, while everybody goes on working; without tables, that of all tables. The server's write-ahead
// log and backups keep what they have.
//
// If ctx comes from PurgeOnce, PurgeIf or [Purges.Collect], the database is only purged later.
func (db *DB) Purge(ctx context.Context, tables ...string) error {
	return db.purgeThen(ctx, nil, tables)
}

// PurgeThen does what Purge does, and calls afterwards once that is done. By then the caller may
// forget that something was to be purged.
func (db *DB) PurgeThen(ctx context.Context, afterwards func(context.Context) error, tables ...string) error {
	return db.purgeThen(ctx, afterwards, tables)
}

// purgeThen does what PurgeThen does; afterwards may be nil.
func (db *DB) purgeThen(ctx context.Context, afterwards func(context.Context) error, tables []string) error {
	if put, ok := ctx.Value(purgesKey{}).(*Purges); ok {
		put.add(duePurge{db: db.backend, tables: tables, afterwards: []func(context.Context) error{afterwards}})
		return nil
	}
	if err := db.backend.purge(ctx, tables); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	if afterwards == nil {
		return nil
	}
	return afterwards(ctx)
}

// purgesKey is the key of a *Purges in a context. If there is one, Purge only adds to it instead of purging; see
// Purges.Collect.
type purgesKey struct{}

// Purges are the databases that must still be purged. The zero value contains none.
type Purges struct {
	mu  sync.Mutex
	due []duePurge
}

// A duePurge is a database that must be purged, and what its users want done afterwards.
type duePurge struct {
	db         backend
	tables     []string // the tables to purge; only for PostgreSQL
	afterwards []func(context.Context) error
}

// add adds a purge to the one of the same database that is already due.
func (p *Purges) add(more duePurge) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.due, func(d duePurge) bool { return d.db == more.db })
	if i < 0 {
		i, p.due = len(p.due), append(p.due, duePurge{db: more.db})
	}
	d := &p.due[i]
	for _, table := range more.tables {
		if !slices.Contains(d.tables, table) {
			d.tables = append(d.tables, table)
		}
	}
	for _, do := range more.afterwards {
		if do != nil {
			d.afterwards = append(d.afterwards, do)
		}
	}
}

// take returns the purges that are due, and forgets them.
func (p *Purges) take() []duePurge {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := p.due
	p.due = nil
	return due
}

// IsEmpty reports whether nothing is to be purged.
func (p *Purges) IsEmpty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.due) == 0
}

// Collect calls fn with a context in which Purge only records in p that a database is to be purged. If fn
// returns that it has erased nothing, and no error, this is forgotten again, unless PurgeThen was called,
// whose caller knows that something is to be purged.
func (p *Purges) Collect(ctx context.Context, fn func(context.Context) (erased bool, err error)) error {
	if ctx.Value(purgesKey{}) != nil {
		_, err := fn(ctx)
		return err
	}
	noted := &Purges{}
	erased, err := fn(context.WithValue(ctx, purgesKey{}, noted))
	due := noted.take()
	if !erased && err == nil && !slices.ContainsFunc(due, func(d duePurge) bool { return len(d.afterwards) > 0 }) {
		return nil
	}
	for _, d := range due {
		p.add(d)
	}
	return err
}

// Run purges once each database that is to be purged, and then does what the callers of PurgeThen want. A database that
// can't be purged stays in p; what fails afterwards is not done again.
func (p *Purges) Run(ctx context.Context) (err error) {
	for _, d := range p.take() {
		if wrong := d.db.purge(ctx, d.tables); wrong != nil {
			p.add(d)
			err = errors.Join(err, fmt.Errorf("purge: %w", wrong))
			continue
		}
		for _, then := range d.afterwards {
			err = errors.Join(err, then(ctx))
		}
	}
	return err
}

// PurgeOnce calls fn with a context in which Purge only records that a database is to be purged; then it
// purges each of these once, even if fn has failed. It is for callers that erase in several rounds, or
// from several components that share a file, because writes wait while the file is rewritten.
func PurgeOnce(ctx context.Context, fn func(context.Context) error) error {
	return PurgeIf(ctx, func(ctx context.Context) (bool, error) { return true, fn(ctx) })
}

// PurgeIf does what PurgeOnce does if do returns that it has erased something, or an error. Otherwise it
// purges nothing, unless PurgeThen was called meanwhile, whose caller knows that something is to be
// purged.
func PurgeIf(ctx context.Context, do func(context.Context) (erased bool, err error)) error {
	var due Purges
	err := due.Collect(ctx, do)
	return errors.Join(err, due.Run(ctx))
}

// emptyLogTimeout is how long one try to empty the log may hold up writes, and how long writes go on
// between two tries.
const emptyLogTimeout = 250 * time.Millisecond

// purge runs between two groups, so that writes queue up behind it. If it used a connection of its own,
// they would fail on its lock. While somebody reads an earlier state, which keeps the log from being
// emptied, writes go on: a reader may take any length of time.
func (w *writer) purge(ctx context.Context, _ []string) error {
	err := w.runBetweenGroups(ctx, func(conn *sql.Conn) error {
		if err := compactIndexes(ctx, conn); err != nil {
			return err
		}
		_, err := conn.ExecContext(ctx, "VACUUM")
		return err
	})
	if err != nil {
		return fmt.Errorf("rewrite the file: %w", err)
	}
	for emptied := false; ; {
		err := w.runBetweenGroups(ctx, func(conn *sql.Conn) (err error) {
			emptied, err = emptyLog(ctx, conn)
			return err
		})
		if err != nil {
			return fmt.Errorf("empty the log: %w", err)
		}
		if emptied {
			return nil
		}
		select {
		case <-time.After(emptyLogTimeout):
		case <-ctx.Done():
			return fmt.Errorf("empty the log: somebody reads it: %w", ctx.Err())
		}
	}
}

// compactIndexes rewrites the full-text indexes of the file. Until their parts are merged, they still
// contain what was deleted from them, although no search finds it anymore.
func compactIndexes(ctx context.Context, conn *sql.Conn) error {
	indexes, err := Column(conn.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE % USING fts5%'"))
	if err != nil {
		return err
	}
	for _, name := range indexes {
		if _, err := conn.ExecContext(ctx, "INSERT INTO "+name+" ("+name+") VALUES ('optimize')"); err != nil {
			return fmt.Errorf("rewrite index %s: %w", name, err)
		}
	}
	return nil
}

// emptyLog moves the log's pages to the file and empties the log. It returns false if somebody was
// reading an earlier state the whole time.
func emptyLog(ctx context.Context, conn *sql.Conn) (emptied bool, err error) {
	var usual, busy, frames, moved int
	if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&usual); err != nil {
		return false, err
	}
	const set = "PRAGMA busy_timeout = %d"
	defer func() {
		_, undo := conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf(set, usual))
		err = errors.Join(err, undo)
	}()
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(set, emptyLogTimeout.Milliseconds())); err != nil {
		return false, err
	}
	err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	return busy == 0, err
}

func (s *postgresBackend) purge(ctx context.Context, tables []string) (err error) {
	if !s.beginWrite() {
		return ErrClosed
	}
	defer s.writing.Done()
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // ResetSession checks the connection before it is used again
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
