package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"

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
	connector, err := newPreparing(dsn(path))
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
	if err := boundLog(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), conn.Close(), pool.Close())
	}
	if err := migrate(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate database %s: %w", path, err), conn.Close(), pool.Close())
	}
	return &DB{Read: pool, backend: startWriter(conn)}, nil
}

const (
	// pageSize is the size of a new file's pages. A commit writes each page that it changes whole,
	// and what one message changes is a few short rows in many places. A file that exists keeps the
	// pages that it was made with: only a rewrite without the log could change them.
	pageSize = 1024
	// logSize is about how large the log beside the file becomes before its pages are moved to the
	// file.
	logSize = 4 << 20
)

// boundLog has the writer's connection move the log's pages to the file once there are logSize of
// them. SQLite counts pages, whose size differs between files.
func boundLog(ctx context.Context, conn *sql.Conn) error {
	var size int
	if err := conn.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil {
		return err
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", logSize/size))
	return err
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
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}
