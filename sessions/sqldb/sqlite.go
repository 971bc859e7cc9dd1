package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
)

func openSQLite(ctx context.Context, path string, migrations []string) (*DB, error) {
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
	conns := 2 + runtime.GOMAXPROCS(0)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), pool.Close())
	}
	if err := migrateSQLite(ctx, conn, migrations); err != nil {
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

func migrateSQLite(ctx context.Context, conn *sql.Conn, migrations []string) error {
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return newerError(version, len(migrations))
	}
	if version == 0 && len(migrations) > 0 { // nothing is there that a step could leave half done: one flush is enough
		return migrateTo(ctx, conn, len(migrations), migrations)
	}
	for i := version; i < len(migrations); i++ {
		if err := migrateTo(ctx, conn, i+1, migrations[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// migrateTo runs migrations that bring a file to a version, all or none.
func migrateTo(ctx context.Context, conn *sql.Conn, version int, migrations []string) error {
	script := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT;", strings.Join(migrations, ";\n"), version)
	if _, err := conn.ExecContext(ctx, script); err != nil {
		_, rollback := conn.ExecContext(ctx, "ROLLBACK")
		return errors.Join(fmt.Errorf("to version %d: %w", version, err), rollback)
	}
	return nil
}

// newerError returns the error for data of a version that this release does not know.
func newerError(version, known int) error {
	return fmt.Errorf("it has version %d and this release knows %d: use the newer release", version, known)
}
