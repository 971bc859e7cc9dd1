// Package sqldb opens a SQL database and makes writes to it durable.
//
// All of Parley's SQL data goes through it: the embedded bus, the store and the book. A place is the path
// of a SQLite file or the URL of a PostgreSQL database. Statements have a ? for each argument, and most
// are the same for both.
//
// SQLite allows one writer at a time, and a durable commit costs a disk flush; so one goroutine writes,
// and all writes that queue up during a flush are committed together by the next one. PostgreSQL runs
// writes in parallel and groups their flushes itself; single statements can still be sent to it in
// groups, which saves round trips.
//
// The files, in reading order: sqldb.go is what users see; sqlite.go, prepared.go,
// writer.go and commit.go are SQLite, its queries and its group commit; postgres.go, driver.go
// and group.go are PostgreSQL, its connections and its groups; migrate.go keeps the versions
// of schemas; text.go has texts that every database can store, and column.go reads a column of them.
// Operators need the rest: probe.go, read_only.go and examine.go check a database, snapshot.go copies SQLite files,
// transfer.go moves tables to PostgreSQL or takes over those of another file, and purge.go removes the
// traces of deleted rows.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// ErrClosed says that the database was closed.
var ErrClosed = errors.New("database is closed")

// A DB is one database.
type DB struct {
	// Read is for queries. Nobody writes through it, and nobody uses it inside of Write,
	// which would wait for a second connection while it holds one.
	Read *sql.DB

	backend    backend
	isPostgres bool
	isLent     bool // whether somebody else closes the database
}

// A backend carries out writes on one kind of database.
type backend interface {
	write(ctx context.Context, fn func(*Tx) error) error
	soon(ctx context.Context, within time.Duration, fn func(*Tx) error) error
	start(fn func(*Tx) error, lost func(error))
	onLost(report func(writes int, err error))
	flush()
	lastWrite() time.Time
	single(ctx context.Context, st *statement) error
	group(ctx context.Context, st *statement) error
	purge(ctx context.Context, tables []string) error
	close() error
}

// A Schema describes the tables of one component in a database that it may share with
// others. Each migration is a script that runs once, in order, with all others or not at
// all.
//
// Migrations only add: tables, indexes, columns with defaults. What a release has read
// or written, the next one leaves in place and goes on filling. So the processes of a
// fleet can be replaced one by one: those of release N and of N-1 work on one schema,
// and what N no longer needs is removed by N+2 at the earliest.
type Schema struct {
	Name     string   // the component's name: store, book, bus
	SQLite   []string // its migrations for SQLite
	Postgres []string
	// AdoptStatements contains the statements with which DB.AdoptStatements copies the rows of another file, {from}, to the
	// tables of this one, main, so that repeating them changes nothing. If it is empty, each table gets
	// the rows whose keys it does not have.
	AdoptStatements []string
	// DerivedTables names tables whose rows are computed from those of others. They are not copied to another
	// database; there their component computes them again.
	DerivedTables []string
	// PreviousMigrations is how many of the PostgreSQL migrations the release before this one knows. Older releases
	// are refused from now on.
	PreviousMigrations int
	// LockOrder names tables in the order in which the release before writes to them. A migration on PostgreSQL locks
	// those that are there already before it changes anything, so that it and a writer never wait for each other.
	LockOrder []string
}

// Open opens or creates the SQLite file at path, readable by its owner alone, and brings it to the newest
// version of its schema. Each migration is a script that runs once, in order, in a transaction of its
// own; in a new file, all run in one. A file that has seen more migrations than are known here was
// written by a newer release and is refused.
func Open(ctx context.Context, path string, migrations []string) (*DB, error) {
	return openSQLite(ctx, path, 1, func(ctx context.Context, conn *sql.Conn) error { return migrateSQLite(ctx, conn, migrations) })
}

// OpenAt opens the database at place: the PostgreSQL database that a URL names, or a
// SQLite file, as Open does. Several processes may open a PostgreSQL database at the
// same time: one migrates, the others wait.
func OpenAt(ctx context.Context, place string, s Schema) (*DB, error) {
	if IsURL(place) {
		return OpenURL(ctx, place, s)
	}
	return Open(ctx, place, s.SQLite)
}

// OpenFile opens or creates the SQLite file at path, readable by its owner alone, for several
// components that share it, and brings their tables to the newest versions, all or none. What they
// write at the same time shares a disk flush. A file that only the first component has used, opened
// by Open until now, is taken over. A file that has seen more migrations of a component than are
// known here was written by a newer release and is refused; releases that know only Open refuse a
// shared file.
func OpenFile(ctx context.Context, path string, components ...Schema) (*DB, error) {
	return openSQLite(ctx, path, len(components), func(ctx context.Context, conn *sql.Conn) error { return migrateShared(ctx, conn, components, nil) })
}

// OpenAdopting does what OpenFile does, and in the same transaction copies the content of the files in
// from to the tables of their components: so the file becomes shared only once all is copied. The files
// may be of older versions, and are not changed, unless the database is shared already; then they are
// brought to the newest version first, and rows that were copied before are not copied again. Before it
// changes anything, OpenAdopting calls begin, with whether the database is shared already, and gives up
// if that fails.
func OpenAdopting(ctx context.Context, path string, from []Source, begin func(shared bool) error, components ...Schema) (*DB, error) {
	return openSQLite(ctx, path, len(components), func(ctx context.Context, conn *sql.Conn) error {
		if len(from) == 0 {
			return migrateShared(ctx, conn, components, nil)
		}
		layout, err := layoutOf(ctx, conn)
		if err == nil {
			err = begin(layout == sharedVersion)
		}
		if err == nil && layout == sharedVersion {
			err = MigrateFiles(ctx, from...)
		}
		if err != nil {
			return err
		}
		return withAttached(ctx, conn, from, func() error { return migrateShared(ctx, conn, components, from) })
	})
}

// Lend returns the same database for a component that shares it with others: closing the returned DB only
// waits until the queued writes are durable.
func (db *DB) Lend() *DB {
	lent := *db
	lent.isLent = true
	return &lent
}

// IsURL reports whether a place is the URL of a PostgreSQL database.
func IsURL(place string) bool {
	scheme, _, found := strings.Cut(place, "://")
	return found && (scheme == "postgres" || scheme == "postgresql")
}

// IsPostgres reports whether the database is PostgreSQL, for statements that the two kinds
// spell differently.
func (db *DB) IsPostgres() bool { return db.isPostgres }

// Write runs fn in a transaction and returns once the transaction is durable. On SQLite other
// writes may share the transaction; on PostgreSQL others run beside it at READ COMMITTED, so fn
// must lock the rows that its decisions depend on. fn may run more than once, so outside the
// database it must set variables and not add to them. An error of fn undoes only fn and is
// returned as it is. On SQLite that makes the other writes of its group run again; to refuse more
// cheaply, fn sets a variable and returns nil. Once queued, a write is carried out even if ctx
// ends, and Write waits for it, so that nil always means done.
//
// On PostgreSQL an error may also mean that the answer to a commit was lost. Then nobody knows
// whether it took place, so writes must be such that they can be repeated.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return db.backend.write(ctx, fn)
}

// Exec carries out one statement as a write of its own, in one round trip where
// there is a server, and returns how many rows it has changed.
func (db *DB) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	st := &statement{query: query, args: args}
	return st.result(db.backend.single(ctx, st))
}

// Get carries out one statement as Exec does and scans the first row that it returns; the error is
// sql.ErrNoRows if there is none.
func (db *DB) Get(ctx context.Context, query string, args []any, dest ...any) error {
	st := &statement{query: query, args: args, dest: dest}
	_, err := st.result(db.backend.single(ctx, st))
	return err
}

// Group carries out one statement as Exec does, or as Get does if there is a dest, but together
// with others that come at the same time, which share its round trip and its commit. It is meant
// for rows that usually nobody else changes: two groups that change the same rows in different
// orders wait for each other, until the server makes one of them try again.
func (db *DB) Group(ctx context.Context, query string, args []any, dest ...any) (int64, error) {
	st := &statement{query: query, args: args, dest: dest}
	return st.result(db.backend.group(ctx, st))
}

// Shared does what Group does, for a statement that changes one row which others change too; row is
// a name for it. All groups change such rows in the order of their names, so no two groups wait for
// each other.
func (db *DB) Shared(ctx context.Context, row, query string, args []any, dest ...any) (int64, error) {
	st := &statement{query: query, args: args, dest: dest, sharedRow: row}
	return st.result(db.backend.group(ctx, st))
}

// InTurn does what Group does, but only one group of such statements runs at a time, in all
// processes that have the database open. So a statement that counts rows sees what all those before
// it have written.
func (db *DB) InTurn(ctx context.Context, query string, args []any, dest ...any) (int64, error) {
	st := &statement{query: query, args: args, dest: dest, inTurn: true}
	return st.result(db.backend.group(ctx, st))
}

// Soon runs fn as Write does, but may return before the write is durable. Once a later write is durable,
// this one is too. On SQLite it returns as soon as fn has run, and the commit takes place within the
// given time, or with another write's, so that two writes in a row share a disk flush. If the process
// dies before that, or the commit fails, the write is lost, and so is what depends on it: so fn must
// leave a trace by which later writes notice that. fn may run again after Soon has returned, with the
// same outcome; whatever it hands to its caller must allow that. On PostgreSQL Soon does what Write does.
func (db *DB) Soon(ctx context.Context, within time.Duration, fn func(*Tx) error) error {
	return db.backend.soon(ctx, within, fn)
}

// Start runs fn as Write does but reports no outcome. Once a later write is durable, fn's write is too.
// On SQLite Start does not wait, and fn runs with the next write, or a little later if there is none. On
// PostgreSQL only a finished write certainly comes before the next one, so there Start returns after fn
// has run. A write that is started after Close is lost; on SQLite nobody hears of that.
func (db *DB) Start(fn func(*Tx) error) { db.backend.start(fn, nil) }

// StartOrReport does what Start does, and calls lost with the error if the write is lost. Like the
// function given to OnLost, lost must not wait for a write of this database.
func (db *DB) StartOrReport(fn func(*Tx) error, lost func(error)) { db.backend.start(fn, lost) }

// OnLost sets the function that is called when writes are lost whose callers do not learn of it: when the
// commit of writes of Soon or Start fails, for example because the disk is full, or when a function given
// to Start fails. report gets the number of these writes, and the reason. It must not wait for a write of
// this database.
func (db *DB) OnLost(report func(writes int, err error)) { db.backend.onLost(report) }

// LastWrite returns when something was last written to a SQLite database, or the zero time if nothing was
// written since it was opened. On PostgreSQL, where nobody waits for a purge, it returns the zero time.
func (db *DB) LastWrite() time.Time { return db.backend.lastWrite() }

// Flush waits until the writes that ran before are durable, or lost, and Read sees them.
func (db *DB) Flush() { db.backend.flush() }

// Close waits for the writes that are queued and closes the database. It may be called twice.
func (db *DB) Close() error {
	if db.isLent {
		db.Flush()
		return nil
	}
	return errors.Join(db.backend.close(), db.Read.Close())
}

// A Share is what one component writes in the transaction of another that uses the same database. For
// example, a log's entries and the messages that follow from them are stored together or not at all.
type Share interface {
	// Write writes within the transaction. Like every function of a write it may run again. If the
	// component does not want to write, refused says why, and it has written nothing.
	Write(tx *Tx) (refused, err error)
	// End is told whether what Write has written is durable. It must be called once after the last call
	// statement Write, when that is known, even if Write has failed or has written nothing.
	End(durable bool)
}

// A Tx is the transaction of a write, or of a group of writes.
type Tx struct{ conn *sql.Conn }

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	r, err := tx.conn.ExecContext(context.Background(), query, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Get scans the first row of a query; the error is sql.ErrNoRows if there is none.
func (tx *Tx) Get(query string, args []any, dest ...any) error {
	return tx.conn.QueryRowContext(context.Background(), query, args...).Scan(dest...)
}

// Query runs a query; the caller has to close the returned rows before the next statement.
func (tx *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	return tx.conn.QueryContext(context.Background(), query, args...)
}
