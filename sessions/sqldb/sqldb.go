// Package sqldb opens a SQL database and commits in groups what many goroutines write.
//
// It is the ground under everything that Parley keeps in SQL: the embedded bus,
// the store and the book. SQLite allows one writer at a time, and a durable
// commit costs a disk flush; so one goroutine writes, and what queues up while
// it flushes is committed together by the next flush.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"

	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// ErrClosed says that the database was closed.
var ErrClosed = errors.New("database is closed")

// maxGroup bounds how many writes share one commit, so that none waits long for
// those behind it.
const maxGroup = 256

// A DB is one database file.
type DB struct {
	// Read is for queries; it is never to be written through.
	Read *sql.DB

	writer *writer
}

// Open opens or creates the SQLite file at path, readable by its owner alone,
// and brings it to the newest version of its schema. Each migration is a script
// that runs once, in order, in a transaction of its own; a file that has seen
// more migrations than are known here was written by a newer release and is refused.
func Open(ctx context.Context, path string, migrations []string) (*DB, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	pool, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), pool.Close())
	}
	if err := migrate(ctx, conn, migrations); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate database %s: %w", path, err), conn.Close(), pool.Close())
	}
	return &DB{Read: pool, writer: startWriter(conn)}, nil
}

func dsn(path string) string {
	q := url.Values{"_pragma": {
		"busy_timeout(10000)", // another process reads or backs up
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(ON)",
	}}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

func migrate(ctx context.Context, conn *sql.Conn, migrations []string) error {
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("it has version %d and this release knows %d: use the newer release", version, len(migrations))
	}
	for i := version; i < len(migrations); i++ {
		script := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT;", migrations[i], i+1)
		if _, err := conn.ExecContext(ctx, script); err != nil {
			_, rollback := conn.ExecContext(ctx, "ROLLBACK")
			return errors.Join(fmt.Errorf("to version %d: %w", i+1, err), rollback)
		}
	}
	return nil
}

// Write runs fn in a transaction and returns once it is durable. Other writes
// may share the transaction, and fn may run more than once: it must set, not
// add to, what it leaves behind outside the database. An error of fn undoes fn
// alone and is returned as it is; to refuse without undoing others' work, set a
// variable and return nil. Once handed over a write is carried out even if ctx
// ends meanwhile; Write then waits for it all the same, so that nil and error
// mean what they say.
func (db *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return db.writer.do(ctx, fn)
}

// Start hands fn over as Write does but does not wait. It keeps its order with
// later writes: once one of those is durable, so is fn.
func (db *DB) Start(fn func(*Tx) error) { db.writer.start(fn) }

// Close carries out the writes handed over and closes the database.
func (db *DB) Close() error {
	return errors.Join(db.writer.close(), db.Read.Close())
}

// A Tx is the transaction of a group of writes. Statements are prepared once
// and kept, so queries are to be constants.
type Tx struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

func (tx *Tx) stmt(query string) (*sql.Stmt, error) {
	if s, ok := tx.stmts[query]; ok {
		return s, nil
	}
	s, err := tx.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	tx.stmts[query] = s
	return s, nil
}

// Exec runs a statement and returns how many rows it changed.
func (tx *Tx) Exec(query string, args ...any) (int64, error) {
	s, err := tx.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Get scans the first row of a query; it gives sql.ErrNoRows if there is none.
func (tx *Tx) Get(query string, args []any, dest ...any) error {
	s, err := tx.stmt(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(context.Background(), args...).Scan(dest...)
}

// Query runs a query; the caller closes the rows before the next statement.
func (tx *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	s, err := tx.stmt(query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(context.Background(), args...)
}

type write struct {
	fn   func(*Tx) error
	done chan error // buffered; nil where nobody waits
}

type writer struct {
	tx      *Tx
	writes  chan write
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
	mu      sync.RWMutex // held for reading while a write is handed over
	closed  bool
}

func startWriter(conn *sql.Conn) *writer {
	w := &writer{
		tx:      &Tx{conn: conn, stmts: map[string]*sql.Stmt{}},
		writes:  make(chan write, maxGroup),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
	go w.run()
	return w
}

func (w *writer) do(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	if !w.hand(write{fn: fn, done: done}) {
		return ErrClosed
	}
	return <-done
}

func (w *writer) start(fn func(*Tx) error) { w.hand(write{fn: fn}) }

func (w *writer) hand(wr write) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return false
	}
	w.writes <- wr
	return true
}

func (w *writer) close() error {
	w.once.Do(func() {
		w.mu.Lock()
		w.closed = true
		w.mu.Unlock()
		close(w.stop)
	})
	<-w.stopped
	return w.tx.conn.Close()
}

func (w *writer) run() {
	defer close(w.stopped)
	var group []write
	for {
		select {
		case wr := <-w.writes:
			group = w.gather(append(group[:0], wr))
		case <-w.stop:
			group = w.gather(group[:0])
			if len(group) == 0 {
				return
			}
		}
		w.commit(group)
		clear(group)
	}
}

func (w *writer) gather(group []write) []write {
	for len(group) < maxGroup {
		select {
		case wr := <-w.writes:
			group = append(group, wr)
		default:
			return group
		}
	}
	return group
}

// commit carries out a group in one transaction. A write that fails is told so
// and left out, and the others are run again without it.
func (w *writer) commit(group []write) {
	for len(group) > 0 {
		failed, err := w.try(group)
		if failed < 0 {
			for _, wr := range group {
				wr.tell(err)
			}
			return
		}
		group[failed].tell(err)
		group = append(group[:failed], group[failed+1:]...)
	}
}

func (wr write) tell(err error) {
	if wr.done != nil {
		wr.done <- err
	}
}

// try returns the index of the write that failed, with its error; or -1 and
// what became of the whole group.
func (w *writer) try(group []write) (int, error) {
	ctx := context.Background()
	if _, err := w.tx.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return -1, fmt.Errorf("begin: %w", err)
	}
	for i, wr := range group {
		if err := wr.fn(w.tx); err != nil {
			if _, undo := w.tx.conn.ExecContext(ctx, "ROLLBACK"); undo != nil {
				err = errors.Join(err, fmt.Errorf("roll back: %w", undo))
			}
			return i, err
		}
	}
	if _, err := w.tx.conn.ExecContext(ctx, "COMMIT"); err != nil {
		_, undo := w.tx.conn.ExecContext(ctx, "ROLLBACK")
		return -1, errors.Join(fmt.Errorf("commit: %w", err), undo)
	}
	return -1, nil
}
