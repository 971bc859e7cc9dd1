package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/slack"
	"parley/channels/sqlbook"
	"parley/cmd/parley/backup"
	"parley/cmd/parley/config"
	"parley/cmd/parley/erase"
	"parley/cmd/parley/metrics"
	"parley/sessions"
	"parley/sessions/sqlstore"
	"parley/sessions/workspace"
)

// The files of a home.
const (
	busFile    = "bus.db"
	storeFile  = "sessions.db"
	bookFile   = "book.db"
	tokenFile  = "token"
	socketFile = "parley.sock"
)

// A carrier is everything that a bus can do.
type carrier interface {
	bus.Bus
	bus.Events
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	bus.Holder
	Writable(ctx context.Context) error
	Dropped() uint64
	Close() error
}

// A store is everything that a store of sessions can do.
type store interface {
	sessions.Store
	sessions.Budget
	erase.Store
	Writable(ctx context.Context) error
	Close() error
}

// A book is everything that the channel side remembers.
type book interface {
	channels.Book
	channels.Posts
	channels.Subjects
	channels.Drafts
	slack.Joins
	slack.Cursors
	metrics.Book
	Erase(ctx context.Context, what sqlbook.Erasure) (sqlbook.Erased, error)
	Close() error
}

// A home is what Parley remembers, opened. With SQLite one process has it at a
// time; with Redis and PostgreSQL each process has a home for its own matters,
// and what it remembers is shared.
type home struct {
	dir        string
	bus        carrier
	store      store
	book       book
	workspaces *workspace.Workspaces
	lent       lent
	borrowed   *workspace.Workspaces // lent's directory; nil where there is none

	owner     homeOwner // of dir
	root      string    // of the workspaces
	rootOwner homeOwner
}

// A lent is a person's own directory for the one session that they talk in. All
// others, whose mail may wait here too, have nothing to do with it.
type lent struct{ dir, session string }

// openHome opens the home of a configuration, creating it if need be.
func openHome(ctx context.Context, c *config.Config, own lent, log *slog.Logger) (h *home, err error) {
	h = &home{dir: c.Home, lent: own, root: c.Workspace.Root, owner: ownerOfHome(c.Home), rootOwner: ownerOfHome(c.Workspace.Root)}
	if inside(c.Home, h.root) {
		h.rootOwner = h.owner
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := checkElsewhere(c); err != nil {
		return h, err
	}
	if err := checkGuarded(c); err != nil {
		return h, err
	}
	if err := os.MkdirAll(c.Home, 0o700); err != nil {
		return h, fmt.Errorf("create the home: %w", err)
	}
	// What a restore or a backup that was cut off has left.
	if err := errors.Join(backup.Finish(c.Home), backup.Sweep(c.Home)); err != nil {
		return h, err
	}
	// The bus is first: the lock of an embedded one keeps a second process out
	// of the rest.
	if h.bus, err = openBus(ctx, c, log); err != nil {
		return h, pointed(c, "bus.url", err)
	}
	opened, err := sqlstore.Open(ctx, place(c, storeFile))
	if err != nil {
		return h, pointed(c, "store.url", err)
	}
	h.store = opened
	written, err := sqlbook.Open(ctx, place(c, bookFile))
	if err != nil {
		return h, pointed(c, "store.url", err)
	}
	h.book = written
	if err := checkArrived(ctx, c); err != nil {
		return h, err
	}
	if own.dir != "" {
		if h.borrowed, err = workspace.Fixed(own.dir); err != nil {
			return h, err
		}
	}
	h.workspaces, err = workspace.New(workspace.Config{Root: c.Workspace.Root, MaxBytes: int64(c.Workspace.MaxMB) << 20})
	if err != nil {
		return h, err
	}
	if err := checkWorkable(c); err != nil {
		return h, err
	}
	if err := errors.Join(markWorkspace(c), noteFleet(c)); err != nil {
		return h, err
	}
	return h, h.give()
}

// give gives what was made here to whom the home belongs.
func (h *home) give() error {
	return errors.Join(h.owner.giveHome(h.dir), h.rootOwner.giveTree(h.root))
}

// pointed says of what could not be opened which setting named it, if one did.
func pointed(c *config.Config, key string, err error) error {
	if from := originOf(c, key); from != "" {
		return fmt.Errorf("%s: %s: %w (parley doctor says more)", from, key, err)
	}
	return err
}

// workspace opens the directory that a session works in.
func (h *home) workspace(session string) (*workspace.Dir, error) {
	if h.borrowed != nil && session == h.lent.session {
		return h.borrowed.Open(session)
	}
	dir, err := h.workspaces.Open(session)
	if err != nil {
		return nil, err
	}
	return dir, h.rootOwner.givePath(h.root, dir.Path())
}

// waitingBytes bounds what waits in one mailbox, in bytes.
const waitingBytes = 64 << 20

func openBus(ctx context.Context, c *config.Config, log *slog.Logger) (carrier, error) {
	caps := bus.Caps{Inbound: c.Limits.Waiting, Outbound: c.Limits.Outbound, Bytes: waitingBytes}
	if c.Bus.URL == "" {
		return orNil(sqlitebus.Open(ctx, sqlitebus.Config{Path: filepath.Join(c.Home, busFile), Caps: caps, Log: log}))
	}
	return orNil(redisbus.Open(ctx, redisbus.Config{URL: string(c.Bus.URL), Prefix: c.Bus.Prefix, Caps: caps, Log: log}))
}

// orNil keeps a failed opening from becoming an interface that is not nil.
func orNil[B carrier](b B, err error) (carrier, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

// place is where a part of the home's memory is kept: in the shared database,
// or in a file of its own.
func place(c *config.Config, file string) string {
	if c.Store.URL != "" {
		return string(c.Store.URL)
	}
	return filepath.Join(c.Home, file)
}

// Close closes what is open, the bus last: its lock guards the rest.
func (h *home) Close() error {
	var errs []error
	for _, w := range []*workspace.Workspaces{h.borrowed, h.workspaces} {
		if w != nil {
			errs = append(errs, w.Close())
		}
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
	return errors.Join(append(errs, h.give())...)
}

// token is the owner's own, made at first use and readable by the owner alone.
func (h *home) token() (string, error) {
	path := filepath.Join(h.dir, tokenFile)
	raw, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(raw))) >= 16 {
		return strings.TrimSpace(string(raw)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the owner's token: %w", err)
	}
	made := "pk_" + rand.Text() + rand.Text()
	next := path + ".new"
	if err := os.WriteFile(next, []byte(made+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write the owner's token: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return "", fmt.Errorf("write the owner's token: %w", err)
	}
	return made, nil
}
