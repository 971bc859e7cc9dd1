package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// migrationTimeout limits the time of a migration, because it takes long to index a large table.
const migrationTimeout = 30 * time.Minute

// migrationLock is the number of the advisory lock under which one process at a
// time migrates a database, whatever the component.
const migrationLock = 0x7061726c6579 // the letters "parley"

// migrationKey is the context key of OnMigration's function.
type migrationKey struct{}

// OnMigration returns a context. A call that opens a database with it calls tell with the name of each
// component whose tables it is about to migrate from an earlier release. Indexing many rows takes a
// while, and on PostgreSQL writers to the table wait for it.
func OnMigration(ctx context.Context, tell func(component string)) context.Context {
	return context.WithValue(ctx, migrationKey{}, tell)
}

// tellMigration calls OnMigration's function if a component's tables are of an earlier version and are
// about to be migrated.
func tellMigration(ctx context.Context, component string, version, newest int) {
	tell, wanted := ctx.Value(migrationKey{}).(func(string))
	if wanted && version > 0 && version < newest {
		tell(component)
	}
}

// migratePostgres brings a component's tables to the newest version, or refuses
// them. If it and others wait for each other, it tries again, up to maxAttempts times in all.
func migratePostgres(ctx context.Context, pool *sql.DB, s Schema) error {
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	for n := 1; ; n++ {
		err := tryMigration(ctx, pool, s)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != deadlockCode || n == maxAttempts {
			return err
		}
	}
}

// tryMigration migrates in one transaction: a process that dies leaves the tables as they were.
func tryMigration(ctx context.Context, pool *sql.DB, s Schema) (err error) {
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		if err != nil {
			if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
				err = errors.Join(err, fmt.Errorf("roll back: %w", undo))
			}
		}
	}()
	if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
		return fmt.Errorf("prepare to migrate: %w", err)
	}
	if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(?)", int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for another process that migrates: %w", err)
	}
	version, err := versionOf(ctx, tx, s)
	if err != nil {
		return err
	}
	tellMigration(ctx, s.Name, version, len(s.Postgres))
	if version > 0 && version < len(s.Postgres) {
		if err := lockTables(ctx, tx, s.LockOrder); err != nil {
			return err
		}
	}
	for i := version; i < len(s.Postgres); i++ {
		if _, err := tx.ExecContext(ctx, s.Postgres[i]); err != nil {
			return fmt.Errorf("migrate to version %d: %w", i+1, explainRights(err))
		}
	}
	const note = `
		INSERT INTO parley_schema (component, version, oldest) VALUES (?, ?, ?)
		ON CONFLICT (component) DO UPDATE
		SET version = greatest(parley_schema.version, excluded.version), oldest = greatest(parley_schema.oldest, excluded.oldest)
		WHERE parley_schema.version < excluded.version OR parley_schema.oldest < excluded.oldest`
	if _, err := tx.ExecContext(ctx, note, s.Name, len(s.Postgres), s.PreviousMigrations); err != nil {
		return fmt.Errorf("note the version: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit the migration: %w", err)
	}
	return nil
}

// lockTables locks those of the tables that are there, in this order.
func lockTables(ctx context.Context, tx *sql.Tx, tables []string) error {
	for _, table := range tables {
		var there bool
		if err := tx.QueryRowContext(ctx, "SELECT to_regclass(?) IS NOT NULL", table).Scan(&there); err != nil {
			return fmt.Errorf("look for the table %s: %w", table, err)
		}
		if !there {
			continue
		}
		if _, err := tx.ExecContext(ctx, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE"); err != nil {
			return fmt.Errorf("lock the table %s: %w", table, explainRights(err))
		}
	}
	return nil
}

// explainRights adds a remedy to the error of a database user who may not create tables.
func explainRights(err error) error {
	const denied = "42501" // insufficient_privilege
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == denied {
		return fmt.Errorf("%w: its user makes the tables at the first start of each release: GRANT CREATE ON SCHEMA public to it, or make it the owner of the database", err)
	}
	return err
}

// versionOf returns how many migrations were applied to the component's tables. That may be more
// than this release knows, if a newer release has recorded that this one may still work on them;
// otherwise such tables are refused. It makes the table of versions if there is none.
func versionOf(ctx context.Context, tx *sql.Tx, s Schema) (int, error) {
	const table = `
		CREATE TABLE IF NOT EXISTS parley_schema (
			component TEXT PRIMARY KEY,
			version   INTEGER NOT NULL, -- how many migrations its tables have seen
			oldest    INTEGER NOT NULL  -- how many a release must know to work on them
		)`
	// CREATE TABLE IF NOT EXISTS requires the right to create tables even if the table exists. The user
	// of a bot that is up to date need not have that right.
	var there bool
	if err := tx.QueryRowContext(ctx, "SELECT to_regclass('parley_schema') IS NOT NULL").Scan(&there); err != nil {
		return 0, fmt.Errorf("look for the table of versions: %w", err)
	}
	if !there {
		if _, err := tx.ExecContext(ctx, table); err != nil {
			return 0, fmt.Errorf("make the table of versions: %w", explainRights(err))
		}
	}
	var version, oldest int
	err := tx.QueryRowContext(ctx, "SELECT version, oldest FROM parley_schema WHERE component = ?", s.Name).Scan(&version, &oldest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read the version: %w", err)
	case oldest > len(s.Postgres):
		return 0, newerError(version, len(s.Postgres))
	}
	return version, nil
}

// migrateSQLite brings the tables of a file that belongs to one component to the newest version, or
// refuses them.
func migrateSQLite(ctx context.Context, conn *sql.Conn, migrations []string) error {
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return newerError(version, len(migrations))
	}
	if version == 0 && len(migrations) > 0 { // there is nothing that a step could leave half done: one flush is enough
		return migrateTo(ctx, conn, len(migrations), migrations)
	}
	for i := version; i < len(migrations); i++ {
		if err := migrateTo(ctx, conn, i+1, migrations[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// migrateTo runs the migrations that bring a file to a version, all or none.
func migrateTo(ctx context.Context, conn *sql.Conn, version int, migrations []string) error {
	script := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT;", strings.Join(migrations, ";\n"), version)
	if _, err := conn.ExecContext(ctx, script); err != nil {
		_, rollback := conn.ExecContext(ctx, "ROLLBACK")
		return errors.Join(fmt.Errorf("to version %d: %w", version, err), ignoreAlreadyEnded(rollback))
	}
	return nil
}

// sharedVersion is the user_version of a file that several components share. It is higher than that of
// any file of one component, so that releases that know only such files refuse a shared one.
const sharedVersion = 1000

// IsShared reports whether several components share the SQLite file at path. It changes nothing; a file
// that does not exist is not shared.
func IsShared(ctx context.Context, path string) (shared bool, err error) {
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	db, err := sql.Open("sqlite", fileURI(path)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return false, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	layout, err := layoutOf(ctx, conn)
	if err != nil {
		return false, fmt.Errorf("look at database %s: %w", path, err)
	}
	return layout == sharedVersion, nil
}

// layoutOf returns the user_version of a file, which is sharedVersion if several components share it. It refuses a file
// of a newer release with a higher one.
func layoutOf(ctx context.Context, conn *sql.Conn) (layout int, err error) {
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&layout); err != nil {
		return 0, err
	}
	if layout > sharedVersion {
		return layout, newerError(layout, sharedVersion)
	}
	return layout, nil
}

// migrateShared brings the tables of all components to the newest versions, or refuses them. For a
// component whose file is in from, and attached, it also copies that file's rows. All of it is one
// transaction.
func migrateShared(ctx context.Context, conn *sql.Conn, components []Schema, from []Source) (err error) {
	layout, err := layoutOf(ctx, conn)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if err != nil {
			_, undo := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			err = errors.Join(err, ignoreAlreadyEnded(undo))
		}
	}()
	if layout < sharedVersion {
		if err := markShared(ctx, conn, components[0].Name, layout); err != nil {
			return err
		}
	}
	for _, c := range components {
		migrate := migrateComponent
		if i := slices.IndexFunc(from, func(s Source) bool { return s.Schema.Name == c.Name }); i >= 0 {
			migrate = func(ctx context.Context, conn *sql.Conn, c Schema) error {
				if err := adoptComponent(ctx, conn, c, attachedName(i)); err != nil {
					return fmt.Errorf("%s: %w", from[i].Path, err)
				}
				return nil
			}
		}
		if err := migrate(ctx, conn, c); err != nil {
			return fmt.Errorf("tables of the %s: %w", c.Name, err)
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// markShared makes a file that contains no tables, or those of one component, a shared file. version is that
// of the component's tables.
func markShared(ctx context.Context, conn *sql.Conn, component string, version int) error {
	_, err := conn.ExecContext(ctx, fmt.Sprintf(`
		CREATE TABLE parley_schema (component TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID;
		INSERT INTO parley_schema (component, version) VALUES ('%s', %d);
		PRAGMA user_version = %d`, component, version, sharedVersion))
	return err
}

// adoptComponent copies a component's rows from an attached file and brings its tables to their newest
// version. If there are no such tables yet, they are created as they are in the attached file, so that
// the migrations that the file lacks are then applied to the copy.
func adoptComponent(ctx context.Context, conn *sql.Conn, c Schema, attached string) error {
	var version int
	if err := conn.QueryRowContext(ctx, "PRAGMA "+attached+".user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(c.SQLite) {
		return newerError(version, len(c.SQLite))
	}
	there, err := componentVersion(ctx, conn, c)
	if err != nil {
		return err
	}
	as := c
	if version < len(c.SQLite) {
		if there > 0 {
			return fmt.Errorf("it has version %d and the tables here have %d", version, there)
		}
		as.SQLite, as.AdoptStatements = c.SQLite[:version], nil
	}
	if err := migrateComponent(ctx, conn, as); err != nil {
		return err
	}
	copying, err := as.adoption(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, strings.ReplaceAll(strings.Join(copying, ";\n"), "{from}", attached)); err != nil {
		return fmt.Errorf("copy the rows: %w", err)
	}
	return migrateComponent(ctx, conn, c)
}

// componentVersion returns the version of a component's tables in a shared file; 0 if there are none.
func componentVersion(ctx context.Context, conn *sql.Conn, c Schema) (version int, err error) {
	err = conn.QueryRowContext(ctx, "SELECT version FROM parley_schema WHERE component = ?", c.Name).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return version, err
}

// migrateComponent brings the tables of one component of a shared file to their newest version, or refuses them. The
// caller has begun the transaction.
func migrateComponent(ctx context.Context, conn *sql.Conn, c Schema) error {
	version, err := componentVersion(ctx, conn, c)
	if err != nil {
		return err
	}
	if version > len(c.SQLite) {
		return newerError(version, len(c.SQLite))
	}
	if version == len(c.SQLite) {
		return nil
	}
	tellMigration(ctx, c.Name, version, len(c.SQLite))
	if _, err := conn.ExecContext(ctx, strings.Join(c.SQLite[version:], ";\n")); err != nil {
		return fmt.Errorf("to version %d: %w", len(c.SQLite), err)
	}
	_, err = conn.ExecContext(ctx, `
		INSERT INTO parley_schema (component, version) VALUES (?, ?)
		ON CONFLICT (component) DO UPDATE SET version = excluded.version`, c.Name, len(c.SQLite))
	return err
}

// newerError returns the error for data of a version that this release does not know.
func newerError(version, known int) error {
	return fmt.Errorf("it has version %d and this release knows %d: use the newer release", version, known)
}
