package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"time"

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
	// Without a limit, a burst of readers would open a connection each and drop it again. One of these
	// connections is the writer's.
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
	// pageSize is the size of a new file's pages. A commit writes every page that it changes as a whole,
	// and one message changes a few short rows in many places. An existing file keeps the page size with
	// which it was created: only a rewrite without the log could change it.
	pageSize = 1024
	// logSize is about how large the log beside the file becomes before its pages are moved to the file.
	// While there is no pause between writes, it grows to twice that.
	logSize = 4 << 20
	// logMovePause is how long nobody may have written before the log's pages are moved.
	logMovePause = 20 * time.Millisecond
)

// boundLog limits the log, and returns logSize in pages of the file, whose size differs between files. By
// default SQLite moves the log's pages within a commit, whose callers wait for that. Now it does so only
// where the writer does not: in a transaction that is itself larger than the log may become, and after
// somebody has read an earlier state for so long that the pages could not be moved.
func boundLog(ctx context.Context, conn *sql.Conn) (pages int, err error) {
	var size int
	if err := conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil {
		return 0, err
	}
	pages = logSize / size
	_, err = conn.ExecContext(ctx, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", 3*pages))
	return pages, err
}

// A fileLog is the log beside a SQLite file, SQLite's WAL, to which each commit appends the pages that it
// has changed. Moving them to the file takes as long as several commits. So the writer does it when
// nobody has written for a moment, or at the latest between two groups, when callers know their outcome
// already. Only the writer's goroutine uses it.
type fileLog struct {
	tx           *Tx
	pageCounter  sqlite.DBStatus // counts the pages that the writer's connection writes; nil if it does not
	maxPages     int             // how many pages may stay in the log
	writtenPages int             // how many pages were written since some were moved
	pauseTimer   *time.Timer     // fires when nobody has written for logMovePause; set only if there are pages to move
}

func newFileLog(tx *Tx, pages int) *fileLog {
	l := &fileLog{tx: tx, maxPages: pages, pauseTimer: time.NewTimer(time.Hour)}
	l.pauseTimer.Stop()
	_ = tx.conn.Raw(func(dc any) error {
		if c, ok := dc.(*preparedConn); ok {
			l.pageCounter, _ = c.sqliteConn.(sqlite.DBStatus)
		}
		return nil
	}) // without a counter, SQLite moves the pages itself
	return l
}

// groupEnded is called when a group has ended. It moves the log's pages now or soon if there are enough.
func (l *fileLog) groupEnded() {
	if l.pageCounter == nil {
		return
	}
	n, _, err := l.pageCounter.Status(sqlite.DBStatusCacheWrite, true)
	if err != nil {
		return
	}
	l.writtenPages += n
	switch {
	case l.writtenPages >= 2*l.maxPages:
		l.move()
	case l.writtenPages >= l.maxPages:
		l.pauseTimer.Reset(logMovePause)
	}
}

// move moves the log's pages to the file, after which the next commit starts the log from its beginning.
// It waits for nobody: what was written after somebody began to read has to stay until they are done, so
// the pages that are left are tried again at the next rest. So is a move that fails, for example because
// the disk is full. That loses nothing, since the log has all pages, and commits fail once there is no
// room for the log.
func (l *fileLog) move() {
	var busy, pages, moved int
	err := l.tx.Get("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &pages, &moved)
	l.pauseTimer.Stop()
	l.writtenPages = 0
	if err != nil || busy != 0 || moved < pages {
		l.writtenPages = l.maxPages
	}
}

// dsn returns the data source name of a SQLite file, with the settings of each
// connection. The driver applies those of _pragma first. The size of pages must be
// among them, since it is fixed once the file has a journal mode.
func dsn(path string) string {
	q := url.Values{
		"_pragma": {
			"busy_timeout(10000)", // for when another process reads or makes a backup
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

// ignoreAlreadyEnded returns err, the error of a ROLLBACK, or nil if the transaction had already ended: SQLite
// rolls back by itself when, for example, the disk is full, and only the cause is to be reported.
func ignoreAlreadyEnded(err error) error {
	if code, ok := resultCode(err); ok && code == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}

// resultCode returns SQLite's extended result code; false if err does not come from SQLite.
func resultCode(err error) (code int, ok bool) {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return 0, false
	}
	return e.Code(), true
}
