package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// A NothingError says that a command has no data to read, or no channel to send to. Usually another
// bot was meant, so it names the configuration in effect.
type NothingError struct {
	what string
	cfg  *config.Config
}

// Error returns what is missing, and which configuration is in effect.
func (e *NothingError) Error() string { return e.what + "\n" + DescribeConfig(e.cfg) }

func noDataError(cfg *config.Config, what string) error {
	return &NothingError{what + ": there's nothing to show, and nothing was created", cfg}
}

// DescribeConfig returns in words which configuration is in effect, and how to name another.
func DescribeConfig(cfg *config.Config) string {
	words := "the configuration is " + cfg.File
	if cfg.File == "" {
		words = cfg.FileSearch.String()
	}
	return words + ": if you mean another bot, give its --config FILE and --home DIR"
}

// probeTimeout is how long a database may take to say what it contains.
const probeTimeout = 20 * time.Second

// RequireData returns a *NothingError if the home contains no data yet, or the store's database is still empty.
// Commands that only read call it before they open anything, because opening would create the data.
func RequireData(ctx context.Context, cfg *config.Config) error {
	if cfg.Bus.URL == "" {
		file := BusFile
		if cfg.Store.URL == "" {
			file = StoreFile
		}
		_, err := os.Stat(filepath.Join(cfg.Home, file))
		if errors.Is(err, fs.ErrNotExist) {
			return noDataError(cfg, fmt.Sprintf("the home %s has no data yet (no %s)", cfg.Home, file))
		}
		if err != nil {
			return fmt.Errorf("look for data in the home: %w", err)
		}
	}
	if cfg.Store.URL == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	h, err := sqldb.Probe(ctx, string(cfg.Store.URL))
	if err != nil {
		return NameSetting(cfg, "store.url", err)
	}
	if h.Versions[sqlbook.Schema().Name] == 0 || h.Versions[sqlstore.Schema().Name] == 0 {
		return noDataError(cfg, "the store "+StoreName(string(cfg.Store.URL))+" has no tables yet")
	}
	return nil
}

// Begin creates the data of a home, or the tables of a store, if there are none yet and no other
// process is creating them.
func Begin(ctx context.Context, cfg *config.Config, log *slog.Logger) error {
	err := RequireData(ctx, cfg)
	if _, nothing := errors.AsType[*NothingError](err); !nothing {
		return err
	}
	h, err := Open(ctx, cfg, WorkspaceOverride{}, log)
	if _, used := errors.AsType[*sqlitebus.InUseError](err); used {
		return nil
	}
	if err != nil {
		return err
	}
	return h.Close()
}

// RequireChannel returns a *NothingError if no channel is configured, so nothing can be sent.
func RequireChannel(cfg *config.Config) error {
	if len(cfg.Channels) > 0 {
		return nil
	}
	return &NothingError{"no channel is configured, so there's nowhere to send: add [channels.NAME]", cfg}
}
