package home

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/redisbus/shards"
	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/homedb"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/tools/crash"
)

// openDatabases opens the bus, the store and the book at the same time, because each waits for the disk or the
// network. It locks an embedded bus first: that keeps a second process out of all three. If the store is embedded,
// too, all three share the home's database, and the store's logs publish the messages that follow from their
// entries in the same write. On a server, the store and the book share their connections.
func (h *Home) openDatabases(ctx context.Context, c *config.Config, log *slog.Logger) (err error) {
	var beside errgroup.Group
	if c.Store.URL != "" {
		beside.Go(func() error { return h.openServer(sqldb.OnMigration(ctx, homedb.LogMigration(log)), c, log) })
	}
	var sharing *sqlstore.Store // nil if the bus keeps its messages elsewhere
	opened, err := openBus(ctx, c, h.noteLost, log, func(ctx context.Context) (*sqldb.DB, error) {
		db, err := homedb.Open(ctx, c.Home, homedb.Options{Log: log, Lost: h.noteLost, Point: crash.Points()})
		if err == nil {
			use := func() (_ *sqlstore.Store, err error) { sharing, err = sqlstore.Use(ctx, db); return sharing, err }
			h.openBeside(&beside, c, use, func() (*sqlbook.Book, error) { return sqlbook.Use(ctx, db) })
		}
		return db, err
	})
	if err != nil {
		_ = beside.Wait() // the reason why the bus cannot be opened comes first; the caller closes what is open
		if errors.Is(err, redisbus.ErrShards) {
			return NameSetting(c, "bus.shards", err)
		}
		return NameSetting(c, "bus.url", err)
	}
	h.Bus = opened
	if err := beside.Wait(); err != nil {
		return err
	}
	h.Book.RecordEvents(h.Store.Subscriptions())
	if sharer, ok := opened.(sqlstore.Sharer); ok && sharing != nil {
		sharing.PublishBy(sharer)
		h.Book.PublishBy(sharer)
		h.shared = &sharedDatabase{sharing, sharer}
	}
	return nil
}

// openServer opens the store and the book in the database on a server. It counts and logs the writes that the server
// rejects and that nobody waits for: these only remove what is old, and the next caller removes the same.
func (h *Home) openServer(ctx context.Context, c *config.Config, log *slog.Logger) (err error) {
	if h.server, err = sqldb.OpenURL(ctx, string(c.Store.URL), sqlstore.Schema(), sqlbook.Schema()); err != nil {
		return NameSetting(c, "store.url", err)
	}
	h.server.OnLost(func(writes int, err error) {
		log.Warn("the database does not take what was to be written and nobody waits for: what is old is removed later", slog.Int("writes", writes), slog.Any("error", err))
		h.noteLost(writes)
	})
	var both errgroup.Group
	h.openBeside(&both, c, func() (*sqlstore.Store, error) { return sqlstore.Use(ctx, h.server) }, func() (*sqlbook.Book, error) { return sqlbook.Use(ctx, h.server) })
	return both.Wait()
}

// openBeside opens the store and the book in goroutines of their own.
func (h *Home) openBeside(beside *errgroup.Group, c *config.Config, openStore func() (*sqlstore.Store, error), openBook func() (*sqlbook.Book, error)) {
	beside.Go(func() error {
		opened, err := openStore()
		if err != nil {
			return NameSetting(c, "store.url", err)
		}
		h.Store = opened
		return nil
	})
	beside.Go(func() error {
		opened, err := openBook()
		if err != nil {
			return NameSetting(c, "store.url", err)
		}
		h.Book = opened
		return nil
	})
}

// LostWrites returns how many writes that nobody waited for were rejected by the disk, or the database server,
// since the start.
func (h *Home) LostWrites() uint64 { return h.lost.Load() }

func (h *Home) noteLost(writes int) { h.lost.Add(uint64(writes)) }

// waitingBytes limits the messages that wait in one mailbox, in bytes.
const waitingBytes = 64 << 20

// openBus opens the bus. It calls database if the bus is embedded together with the store and no other process has
// the home open, to get the database that they share.
func openBus(ctx context.Context, c *config.Config, lost func(writes int), log *slog.Logger, database func(context.Context) (*sqldb.DB, error)) (fullBus, error) {
	caps := bus.Caps{Inbound: c.Limits.Waiting, Outbound: c.Limits.Outbound, Bytes: waitingBytes}
	if c.Bus.URL != "" {
		return openRedis(ctx, redisbus.Config{URL: string(c.Bus.URL), Prefix: c.Bus.Prefix, Caps: caps, Log: log}, c.Bus.ShardCount())
	}
	embedded := sqlitebus.Config{Path: filepath.Join(c.Home, BusFile), Caps: caps, Lost: lost, Log: log}
	if c.Store.URL == "" {
		embedded.Database = database
	}
	return orNil(sqlitebus.Open(ctx, embedded))
}

// openRedis opens a bus in Redis with that many shards.
func openRedis(ctx context.Context, c redisbus.Config, count int) (fullBus, error) {
	if err := shards.Prepare(ctx, c, count); err != nil {
		return nil, err
	}
	if count == 1 {
		return orNil(redisbus.Open(ctx, c))
	}
	return orNil(shards.Open(ctx, c, count))
}

// orNil returns a nil interface with an error, because an interface that holds a nil
// pointer would not be nil.
func orNil[B fullBus](b B, err error) (fullBus, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}
