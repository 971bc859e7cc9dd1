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

// purgeWithin bounds a purge on PostgreSQL, in place of the timeout of statements.
const purgeWithin = 30 * time.Minute

// Purge removes what deleted rows leave behind: until then their content may be in
// unused pages, and on SQLite in the log beside the file.
//
// On SQLite nothing of it is in any of the database's files once Purge returns nil. It
// rewrites the file, so it takes time and room in proportion to the file's size, and
// writes wait for that. Then it waits for those who read an earlier state, and writes do
// not. To overwrite deleted rows (secure_delete) would not be enough, because rows leave
// copies behind where a page is split or joined. On PostgreSQL Purge frees the space of
// the tables' dead rows to be written over, while everybody goes on working. The server's
// write-ahead log and backups keep what they have.
//
// If ctx is one of PurgeOnce, PurgeIf or [Purges.Collect], the database is only purged later.
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
		put.add(duePurge{db: db.backend, tables: tables, then: []func(context.Context) error{afterwards}})
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

// purgesKey is the key by which a context has the Purges that note what is put off.
type purgesKey struct{}

// Purges are the databases that must still be purged. The zero value has none.
type Purges struct {
	mu  sync.Mutex
	due []duePurge
}

// A duePurge is a database that must be purged, and what is to be done after that by those who know
// of it.
type duePurge struct {
	db     backend
	tables []string // of PostgreSQL
	then   []func(context.Context) error
}

// add adds what is due to what is due already of the same database.
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
	for _, do := range more.then {
		if do != nil {
			d.then = append(d.then, do)
		}
	}
}

// take returns what is due, which is not due then any more.
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

// Collect calls fn with a context in which Purge of a database only notes in p that it is to be
// purged. If fn has erased nothing, which it returns, this is forgotten again, unless fn has
// failed or PurgeThen was called, by somebody who knows that something is to be purged.
func (p *Purges) Collect(ctx context.Context, fn func(context.Context) (erased bool, err error)) error {
	if ctx.Value(purgesKey{}) != nil {
		_, err := fn(ctx)
		return err
	}
	noted := &Purges{}
	erased, err := fn(context.WithValue(ctx, purgesKey{}, noted))
	due := noted.take()
	if !erased && err == nil && !slices.ContainsFunc(due, func(d duePurge) bool { return len(d.then) > 0 }) {
		return nil
	}
	for _, d := range due {
		p.add(d)
	}
	return err
}

// Run purges each database that is to be purged, once. One that cannot be purged stays to be purged.
func (p *Purges) Run(ctx context.Context) (err error) {
	for _, d := range p.take() {
		if wrong := d.db.purge(ctx, d.tables); wrong != nil {
			p.add(d)
			err = errors.Join(err, fmt.Errorf("purge: %w", wrong))
			continue
		}
		for _, then := range d.then {
			err = errors.Join(err, then(ctx))
		}
	}
	return err
}

// PurgeOnce calls fn with a context in which Purge of a database only notes that it is to be purged;
// then it purges each of these once, also if fn has failed. It is for those who erase in several
// rounds, or from several components that share a file, whose writes wait while it is rewritten.
func PurgeOnce(ctx context.Context, fn func(context.Context) error) error {
	return PurgeIf(ctx, func(ctx context.Context) (bool, error) { return true, fn(ctx) })
}

// PurgeIf does what PurgeOnce does if do has erased something, which it returns, or has failed. Else
// it purges nothing, unless PurgeThen was called meanwhile, by somebody who knows that something is
// to be purged.
func PurgeIf(ctx context.Context, do func(context.Context) (erased bool, err error)) error {
	var due Purges
	err := due.Collect(ctx, do)
	return errors.Join(err, due.Run(ctx))
}

// Between two tries to empty the log, writes go on for as long as a try may hold them up.
const emptyLogWithin = 250 * time.Millisecond

// purge runs between two groups, so that writes queue up behind it. If it had a connection of its
// own, they would fail on its lock. While somebody reads an earlier state, which keeps the log from
// being emptied, writes go on: a reader may take as long as it likes.
func (w *writer) purge(ctx context.Context, _ []string) error {
	err := w.between(ctx, func(conn *sql.Conn) error {
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
		err := w.between(ctx, func(conn *sql.Conn) (err error) {
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
		case <-time.After(emptyLogWithin):
		case <-ctx.Done():
			return fmt.Errorf("empty the log: somebody reads it: %w", ctx.Err())
		}
	}
}

// compactIndexes rewrites the indexes of words that the file has. Until their parts are merged, these keep what was
// deleted from them, although nobody finds it any more.
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

// emptyLog moves the log's pages to the file and empties the log. It returns false if somebody has
// read an earlier state all the time.
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
	if _, err := conn.ExecContext(ctx, fmt.Sprintf(set, emptyLogWithin.Milliseconds())); err != nil {
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
	ctx, cancel := context.WithTimeout(ctx, purgeWithin)
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
