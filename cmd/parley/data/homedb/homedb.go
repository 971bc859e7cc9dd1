// Package homedb opens the database of a home: one SQLite file that the store, the book and the bus share, so that
// what they write at the same time costs one flush of the disk.
//
// Earlier releases had a file for each. Open takes over what these files contain and sets them aside; see
// before.go.
package homedb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// These are the names of the files in a home.
const (
	// File is the database of the home. In earlier releases it was the store's file; they refuse it now because of
	// its version.
	File = "sessions.db"
	// BusFile is the bus's own database, used if the store and the book are on a server. The lock beside it keeps a
	// second process, of any release, out of everything in the home.
	BusFile = "bus.db"
	// BookFile is the book's file in earlier releases.
	BookFile = "book.db"
)

// Options are the options of Open. Each is optional.
type Options struct {
	Log   *slog.Logger      // logs takeovers of files and migrations of tables, which may take a while, and lost writes
	Lost  func(writes int)  // called with the number of writes that the disk rejected and that nobody waited for
	Point func(name string) // called at each step of taking over, where a test may kill the process
}

// LogMigration returns a function for sqldb.OnMigration that logs which tables are migrated.
func LogMigration(log *slog.Logger) func(component string) {
	return func(component string) {
		log.Info("tables of an earlier release are brought up to date; where they are large this takes a while", slog.String("component", component))
	}
}

// Open opens the home's database in dir, and creates it if there is none. The caller must hold the lock beside
// BusFile. If an older release has left files of its own, Open takes over what is in them, all or nothing, and sets
// them aside. If the process is killed meanwhile, the next Open continues.
func Open(ctx context.Context, dir string, o Options) (*sqldb.DB, error) {
	if o.Point == nil {
		o.Point = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	old, err := filesBefore(dir)
	if err != nil {
		return nil, fmt.Errorf("look for the files of an older release: %w", err)
	}
	begin := func(shared bool) error { return beginTakeover(dir, old, shared, o) }
	ctx = sqldb.OnMigration(ctx, LogMigration(o.Log))
	db, err := sqldb.OpenAdopting(ctx, filepath.Join(dir, File), old, begin, sqlstore.Schema(), sqlbook.Schema(), sqlitebus.Schema())
	if err != nil && len(old) > 0 {
		return nil, fmt.Errorf("take over the files of an older release: %w", err)
	}
	if err != nil {
		return nil, err
	}
	db.OnLost(func(writes int, err error) {
		o.Log.Error("the disk does not take what was to be written: what nobody waits for is lost", slog.String("file", File), slog.Int("writes", writes), slog.Any("error", err))
		if o.Lost != nil {
			o.Lost(writes)
		}
	})
	if err := endTakeover(dir, old, o); err != nil {
		return nil, errors.Join(fmt.Errorf("set aside the files of an older release: %w", err), db.Close())
	}
	return db, nil
}

// Check returns an error if the databases in dir, of this release or an earlier one, cannot be opened, for example
// because a newer release has written them. It migrates them to their newest version, but takes nothing over: if
// files are still to be taken over, File stays the store's alone, so that Open sees this and first makes sure that
// there is room.
func Check(ctx context.Context, dir string) error {
	path := filepath.Join(dir, File)
	old, err := filesBefore(dir)
	if err != nil {
		return err
	}
	shared, err := sqldb.IsShared(ctx, path)
	if err != nil {
		return err
	}
	if len(old) > 0 && !shared {
		return sqldb.MigrateFiles(ctx, append(old, sqldb.Source{Path: path, Schema: sqlstore.Schema()})...)
	}
	if err := sqldb.MigrateFiles(ctx, old...); err != nil {
		return err
	}
	db, err := sqldb.OpenFile(ctx, path, sqlstore.Schema(), sqlbook.Schema(), sqlitebus.Schema())
	if err != nil {
		return err
	}
	return db.Close()
}
