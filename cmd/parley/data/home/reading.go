package home

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"parley/cmd/parley/config"
	"parley/sessions/sqldb"
)

// WithTable calls read with the store's database, for queries only. It does nothing if there is no database, or if it
// has no table of that name. A server may have the store open, and nothing is migrated.
func WithTable(ctx context.Context, cfg *config.Config, table string, read func(*sqldb.DB) error) error {
	place := string(cfg.Store.URL)
	if place == "" {
		place = filepath.Join(cfg.Home, StoreFile)
		if _, err := os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return sqldb.WithReadOnly(ctx, place, func(db *sqldb.DB) error {
		has, err := db.HasTable(ctx, table)
		if err != nil || !has {
			return err
		}
		return read(db)
	})
}
