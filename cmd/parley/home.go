package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/sessions/sqlstore"
	"parley/sessions/workspace"

	"parley/bus"
)

// The files of a home.
const (
	busFile   = "bus.db"
	storeFile = "sessions.db"
	bookFile  = "book.db"
)

// A home is what Parley remembers on one machine, opened. One process has it at
// a time.
type home struct {
	bus        *sqlitebus.Bus
	store      *sqlstore.Store
	book       *sqlbook.Book
	workspaces *workspace.Workspaces
}

// openHome opens the home of a configuration, creating it if need be. fixed is
// a directory that every session works in, or "".
func openHome(ctx context.Context, c *config.Config, fixed string, log *slog.Logger) (h *home, err error) {
	h = &home{}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := os.MkdirAll(c.Home, 0o700); err != nil {
		return h, fmt.Errorf("create the home: %w", err)
	}
	// The bus is first: its lock keeps a second process out of the rest.
	h.bus, err = sqlitebus.Open(ctx, sqlitebus.Config{
		Path: filepath.Join(c.Home, busFile),
		Caps: bus.Caps{Inbound: c.Limits.Waiting, Outbound: c.Limits.Outbound},
		Log:  log,
	})
	if err != nil {
		return h, err
	}
	if h.store, err = sqlstore.Open(ctx, filepath.Join(c.Home, storeFile)); err != nil {
		return h, err
	}
	if h.book, err = sqlbook.Open(ctx, filepath.Join(c.Home, bookFile)); err != nil {
		return h, err
	}
	if fixed != "" {
		h.workspaces, err = workspace.Fixed(fixed)
	} else {
		h.workspaces, err = workspace.New(workspace.Config{Root: c.Workspace.Root, MaxBytes: int64(c.Workspace.MaxMB) << 20})
	}
	return h, err
}

// Close closes what is open, the bus last: its lock guards the rest.
func (h *home) Close() error {
	var errs []error
	if h.workspaces != nil {
		errs = append(errs, h.workspaces.Close())
	}
	if h.book != nil {
		errs = append(errs, h.book.Close())
	}
	if h.store != nil {
		errs = append(errs, h.store.Close())
	}
	if h.bus != nil {
		errs = append(errs, h.bus.Close())
	}
	return errors.Join(errs...)
}
