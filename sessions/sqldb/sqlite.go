package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
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
	if err := migrate(ctx, conn); err != nil {
		return nil, errors.Join(fmt.Errorf("migrate database %s: %w", path, err), conn.Close(), pool.Close())
	}
	return &DB{Read: pool, backend: startWriter(conn)}, nil
}

// dsn returns the data source name of a SQLite file, with the settings of each
// connection.
func dsn(path string) string {
	q := url.Values{"_pragma": {
		"busy_timeout(10000)", // another process reads or backs up
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(ON)",
	}}
	return fileURI(path) + "?" + q.Encode()
}

// fileURI returns the URI of a file, whatever characters its path has.
func fileURI(path string) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String()
}
