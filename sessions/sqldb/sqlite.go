package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"reflect"
	"runtime"
	"time"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// openSQLite opens the SQLite file at path for a number of components, and has migrate bring their
// tables to the newest version.
func openSQLite(ctx context.Context, path string, components int, migrate func(context.Context, *sql.Conn) error) (*DB, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	connector, err := newPreparing(ctx, dsn(path))
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	pool := sql.OpenDB(connector)
	// Without a bound a burst of readers opens a connection each and drops it
	// again. The writer's is one of them.
	conns := 2 + components*runtime.GOMAXPROCS(0)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), pool.Close())
	}
	logPages, err := boundLog(ctx, conn)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), conn.Close(), pool.Close())
	}
	if err := migrate(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate database %s: %w", path, err), conn.Close(), pool.Close())
	}
	return &DB{Read: pool, backend: startWriter(conn, logPages)}, nil
}

const (
	// pageSize is the size of a new file's pages. A commit writes each page that it changes whole,
	// and what one message changes is a few short rows in many places. A file that exists keeps the
	// pages that it was made with: only a rewrite without the log could change them.
	pageSize = 1024
	// logSize is about how large the log beside the file becomes before its pages are moved to the
	// file. As long as writes follow one another, it becomes twice that.
	logSize = 4 << 20
	// logRest is how long nobody has written before the log's pages are moved.
	logRest = 20 * time.Millisecond
)

// boundLog returns how many pages logSize is, as SQLite counts pages, whose size differs between
// files. Left to itself SQLite moves the log's pages within a commit, whose callers wait for that;
// it shall do so only where the writer does not: in a transaction that is itself larger than the log
// may become, and after somebody has read an earlier state for so long that it could not be moved.
func boundLog(ctx context.Context, conn *sql.Conn) (pages int, err error) {
	var size int
	if err := conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil {
		return 0, err
	}
	pages = logSize / size
	_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", 3*pages))
	return pages, err
}

// A fileLog is the log beside a SQLite file, SQLite's WAL, to which each commit appends the pages
// that it has changed. To move them to the file takes as long as several commits. So the writer does
// it when nobody has written for a moment, or at last between two groups, whose callers then know
// their outcome already. Only the writer's goroutine uses it.
type fileLog struct {
	tx      *Tx
	counter sqlite.DBStatus // counts the pages that the writer's connection writes; nil if it does not
	pages   int             // how many pages may stay in the log
	written int             // how many pages were written since some were moved
	rest    *time.Timer     // fires when nobody has written for logRest; set only if there are pages to move
}

func newFileLog(tx *Tx, pages int) *fileLog {
	l := &fileLog{tx: tx, pages: pages, rest: time.NewTimer(time.Hour)}
	l.rest.Stop()
	_ = tx.conn.Raw(func(dc any) error {
		if c, ok := dc.(*preparedConn); ok {
			l.counter, _ = c.sqliteConn.(sqlite.DBStatus)
		}
		return nil
	}) // without a counter SQLite moves the pages
	return l
}

// grew says that a group has ended.
func (l *fileLog) grew() {
	if l.counter == nil {
		return
	}
	n, _, err := l.counter.Status(sqlite.DBStatusCacheWrite, true)
	if err != nil {
		return
	}
	l.written += n
	switch {
	case l.written >= 2*l.pages:
		l.move()
	case l.written >= l.pages:
		l.rest.Reset(logRest)
	}
}

// move moves the log's pages to the file, and the next commit begins the log anew. It waits for
// nobody: what was written after somebody began to read has to stay until they are done, so what is
// left is tried again at the next rest. So is a move that fails, as on a full disk. That loses
// nothing, since the log has all pages, and whoever commits learns it once the log finds no room.
func (l *fileLog) move() {
	var busy, pages, moved int
	err := l.tx.Get("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &moved)
	l.rest.Stop()
	l.written = 0
	if err != nil || busy != 0 || moved < pages {
		l.written = l.pages
	}
}

// dsn returns the data source name of a SQLite file, with the settings of each
// connection. The driver applies those of _pragma first. The size of pages must be
// among them, since it is fixed once the file has a journal mode.
func dsn(path string) string {
	q := url.Values{
		"_pragma": {
			"busy_timeout(10000)", // another process reads or backs up
			"foreign_keys(ON)",
			fmt.Sprintf("page_size(%d)", pageSize),
		},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
	}
	return fileURI(path) + "?" + q.Encode()
}

// fileURI returns the URI of a file, whatever characters its path has.
func fileURI(path string) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
}

// unlessEnded returns the error err of a ROLLBACK, and nil if there was no transaction any more: SQLite
// has undone it by itself then, as it does when the disk is full, and only that is to be reported.
func unlessEnded(err error) error {
	if code, ok := resultCode(err); ok && code == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}

// resultCode returns the code with which SQLite has failed, with the bits that say more; false if err
// is not SQLite's. Its errors have two types: the driver's, and that of statements which directStmts
// runs.
func resultCode(err error) (code int, ok bool) {
	e, ok := errors.AsType[interface {
		error
		Code() int
	}](err)
	if !ok {
		return 0, false
	}
	return e.Code(), true
}

// maxRoom is how many bytes the texts of a statement may have that directStmts runs.
const maxRoom = 64 << 10

// directStmts are prepared statements with arguments that the writer has SQLite run without the driver
// in between. The driver takes memory from SQLite for each text and gives it back, and asks for the
// name of each argument, which is a fifth of what a short statement costs; here texts are copied to a
// room that is kept. Only the writer's goroutine uses them.
type directStmts struct {
	tls  *libc.TLS
	db   uintptr // SQLite's handle of the connection
	kept map[string]directStmt
	room uintptr // memory of SQLite's, seen by Go as view
	view []byte
}

// A directStmt is a prepared statement of directStmts.
type directStmt struct {
	handle uintptr // 0 if the driver has to run it, because it is a script, or wrong
	params int     // how many arguments it takes
}

// A directError is why a statement of directStmts has failed. It is for callers what *sqlite.Error is,
// which only the driver can make.
type directError struct {
	text string
	code int
}

// Error returns SQLite's text and code.
func (e *directError) Error() string { return fmt.Sprintf("%s (%d)", e.text, e.code) }

// Code returns SQLite's result code.
func (e *directError) Code() int { return e.code }

// newDirectStmts returns nil if this release of the driver keeps the connection's handle elsewhere, or
// if somebody watches the statements. Then the driver runs all of them, which takes longer.
func newDirectStmts(conn *sql.Conn) *directStmts {
	d := &directStmts{kept: map[string]directStmt{}}
	_ = conn.Raw(func(dc any) error {
		if c, ok := dc.(*preparedConn); ok {
			if v := reflect.Indirect(reflect.ValueOf(c.sqliteConn)); v.Kind() == reflect.Struct && v.FieldByName("db").Kind() == reflect.Uintptr {
				d.db = uintptr(v.FieldByName("db").Uint())
			}
		}
		return nil
	})
	if d.db == 0 {
		return nil
	}
	d.tls = libc.NewTLS()
	d.room = sqlite3.Xsqlite3_malloc(d.tls, maxRoom)
	if d.room == 0 {
		d.tls.Close()
		return nil
	}
	d.view = unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&d.room))), maxRoom)
	return d
}

// exec runs a statement and returns how many rows it changed. If the driver has to run it, exec does
// nothing and returns false.
func (d *directStmts) exec(query string, args []driver.NamedValue) (changed int64, done bool, err error) {
	s, known := d.kept[query]
	if !known {
		s = d.prepare(query)
		d.kept[query] = s
	}
	if s.handle == 0 || s.params != len(args) || !d.bind(s.handle, args) {
		return 0, false, nil
	}
	code := int32(sqlite3.SQLITE_ROW)
	for code == sqlite3.SQLITE_ROW { // nobody wants the rows that it may return
		code = sqlite3.Xsqlite3_step(d.tls, s.handle)
	}
	if code == sqlite3.SQLITE_DONE {
		changed = sqlite3.Xsqlite3_changes64(d.tls, d.db)
	} else {
		err = &directError{libc.GoString(sqlite3.Xsqlite3_errmsg(d.tls, d.db)), int(code)}
	}
	sqlite3.Xsqlite3_reset(d.tls, s.handle) // its error is that of the step
	return changed, true, err
}

// prepare prepares a statement that consists of all of a text.
func (d *directStmts) prepare(query string) directStmt {
	const handle, tail, text = 0, 8, 16 // where they are in the room
	if len(query) > maxRoom-text {
		return directStmt{}
	}
	copy(d.view[text:], query)
	if sqlite3.Xsqlite3_prepare_v2(d.tls, d.db, d.room+text, int32(len(query)), d.room+handle, d.room+tail) != sqlite3.SQLITE_OK {
		return directStmt{}
	}
	s := directStmt{handle: *(*uintptr)(unsafe.Pointer(&d.view[handle]))}
	if *(*uintptr)(unsafe.Pointer(&d.view[tail])) != d.room+text+uintptr(len(query)) {
		sqlite3.Xsqlite3_finalize(d.tls, s.handle)
		return directStmt{}
	}
	s.params = int(sqlite3.Xsqlite3_bind_parameter_count(d.tls, s.handle))
	return s
}

// bind gives a statement all its arguments. SQLite reads their texts where they are in the room, until
// the statement has run; before it runs again, it gets others. bind returns false if an argument has
// a type that only the driver knows, or if they are too long.
func (d *directStmts) bind(stmt uintptr, args []driver.NamedValue) bool {
	used, code := 0, int32(sqlite3.SQLITE_OK)
	for i := 0; i < len(args) && code == sqlite3.SQLITE_OK; i++ {
		n, size, at := int32(i+1), 0, d.room+uintptr(used)
		switch v := args[i].Value.(type) {
		case nil:
			code = sqlite3.Xsqlite3_bind_null(d.tls, stmt, n)
		case int64:
			code = sqlite3.Xsqlite3_bind_int64(d.tls, stmt, n, v)
		case bool:
			code = sqlite3.Xsqlite3_bind_int(d.tls, stmt, n, libc.Bool32(v))
		case float64:
			code = sqlite3.Xsqlite3_bind_double(d.tls, stmt, n, v)
		case string:
			if size = len(v); size >= maxRoom-used {
				return false
			}
			copy(d.view[used:], v)
			code = sqlite3.Xsqlite3_bind_text(d.tls, stmt, n, at, int32(size), 0)
		case []byte:
			if size = len(v); v == nil || size >= maxRoom-used {
				return false
			}
			copy(d.view[used:], v)
			code = sqlite3.Xsqlite3_bind_blob(d.tls, stmt, n, at, int32(size), 0)
		default:
			return false
		}
		used += size
	}
	return code == sqlite3.SQLITE_OK
}

// close frees the statements and the room. The connection must still be open.
func (d *directStmts) close() {
	if d == nil {
		return
	}
	for _, s := range d.kept {
		sqlite3.Xsqlite3_finalize(d.tls, s.handle)
	}
	clear(d.kept)
	sqlite3.Xsqlite3_free(d.tls, d.room)
	d.tls.Close()
}

// watching is the key by which a context has the function of Watch.
type watching struct{}

// Watch returns a context under which SQLite databases are opened that call saw with each statement
// that they run, for tests that count these. Several goroutines may call saw at once.
func Watch(ctx context.Context, saw func(query string)) context.Context {
	return context.WithValue(ctx, watching{}, saw)
}

// A watchedConn is a connection that tells of each statement that it runs.
type watchedConn struct {
	sqliteConn
	saw func(query string)
}

// ExecContext runs a statement.
func (c watchedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.saw(query)
	return c.sqliteConn.ExecContext(ctx, query, args)
}

// QueryContext runs a query.
func (c watchedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.saw(query)
	return c.sqliteConn.QueryContext(ctx, query, args)
}

// PrepareContext prepares a statement, which tells of itself each time it runs.
func (c watchedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return watchedStmt{s, func() { c.saw(query) }}, nil
}

// A watchedStmt is a prepared statement of a watchedConn.
type watchedStmt struct {
	driver.Stmt
	saw func()
}

// ExecContext runs the statement.
func (s watchedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.saw()
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

// QueryContext runs the query.
func (s watchedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.saw()
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}
