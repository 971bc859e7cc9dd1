// Package sqlitebus is the bus of one process: messages in a SQLite file, and the scheduler
// in memory.
//
// Messages, dead letters, known ids and pauses are rows. The bus keeps in memory which mailboxes may be
// claimed and when, and rebuilds that from the rows when it is opened. Only one process may have the file
// open at a time, so a lease needs no heartbeat: it ends when it is settled, when it was held for too
// long, or with the process.
//
// The files, in reading order: bus.go, lock.go, schema.go and load.go open the file and build the bus
// from its parts; mailboxes.go and numbers.go are what every part uses; publish.go stores a message;
// scheduler.go and mailbox.go know who may work on what; claim.go, lease.go and settle.go lease mailboxes
// and settle leases; hold.go, events.go, inspect.go, dead_letters.go, pause.go, roster.go and forget.go
// are the bus's other interfaces; contents.go reads everything, for a migration.
package sqlitebus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// DefaultMaxHold is Config.MaxHold if that is left out. It is longer than the longest turn.
const DefaultMaxHold = 35 * time.Minute

// A Config says where the bus stores its data, and sets its limits.
type Config struct {
	// Path is the database file. The file Path.lock beside it refuses a second process.
	Path string
	// Database, if set, opens a database that the bus shares with other components, in place of the file at Path. It
	// must contain the tables of Schema. The bus calls Database once no other process can open the bus, and closes the
	// database before other processes can open it again, so other users of the database must close before the bus.
	Database func(context.Context) (*sqldb.DB, error)
	// Caps bounds the mailboxes; zero means no bound.
	Caps bus.Caps
	// MaxHold bounds how long a lease may be held; DefaultMaxHold if zero.
	MaxHold time.Duration
	// Lost, if set, is called with the number of writes that did not reach the disk and whose outcome nobody waited
	// for. It is not called for a shared database, which reports to the component that opened it.
	Lost func(writes int)
	// Log gets what operators should know; if it is nil, nothing is logged.
	Log *slog.Logger
}

// A Bus implements every interface of package bus. Its messages, dead letters and pauses
// are durable; its events and holds live as long as the process.
type Bus struct {
	*mailboxes

	*publisher
	*claims
	*inspector
	*deadLetters
	*pauser
	*forgetter
	*contents
	*feeds
	*holds

	self  string // the name of this process
	lock  *lockedFile
	clock *clock
}

var _ interface {
	bus.Bus
	bus.Events
	bus.History
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	bus.Holder
	bus.Roster
	bus.Forgetter
} = (*Bus)(nil)

// Open opens or creates the bus. It returns an *InUseError while another process has the
// bus open.
func Open(ctx context.Context, c Config) (*Bus, error) {
	if c.MaxHold == 0 {
		c.MaxHold = DefaultMaxHold
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	lock, err := lockFile(c.Path)
	if err != nil {
		return nil, fmt.Errorf("open bus: %w", err)
	}
	db, err := c.open(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open bus: %w", err), lock.Close())
	}
	b, err := load(ctx, c, db)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open bus %s: %w", c.Path, err), db.Close(), lock.Close())
	}
	b.lock = lock
	return b, nil
}

// load makes a bus from its parts, and fills its memory from the database's rows.
func load(ctx context.Context, c Config, db *sqldb.DB) (*Bus, error) {
	stamp, seq, err := readNumbers(ctx, db)
	if err != nil {
		return nil, err
	}
	clock := newClock(stamp)
	mail := &mailboxes{db: db, sched: newScheduler(clock, c.MaxHold), undeleted: new(undeletedMail), news: newFeeds(clock), log: c.Log}
	if err := mail.reserveAndLoad(ctx, stamp, seq); err != nil {
		return nil, err
	}
	b := &Bus{
		mailboxes: mail,
		publisher: &publisher{mailboxes: mail, caps: c.Caps, seqs: newSequence(seq)},
		claims:    &claims{mailboxes: mail, clock: clock},
		inspector: &inspector{mail},
		pauser:    &pauser{mail},
		contents:  &contents{mailboxes: mail, clock: clock},
		feeds:     mail.news,
		holds:     &holds{names: map[string]*hold{}},
		self:      rand.Text()[:12], clock: clock,
	}
	b.deadLetters = &deadLetters{mailboxes: mail, publisher: b.publisher}
	b.forgetter = &forgetter{mailboxes: mail}
	return b, nil
}

// open opens the bus's own database, or the shared one.
func (c *Config) open(ctx context.Context) (*sqldb.DB, error) {
	if c.Database != nil {
		return c.Database(ctx)
	}
	db, err := sqldb.Open(ctx, c.Path, Schema().SQLite)
	if err != nil {
		return nil, err
	}
	db.OnLost(func(writes int, err error) {
		c.Log.Error("the disk does not take what was to be written: what nobody waits for is lost", slog.String("file", c.Path), slog.Int("writes", writes), slog.Any("error", err))
		if c.Lost != nil {
			c.Lost(writes)
		}
	})
	return db, nil
}

// Close ends every claim, lease, hold and subscription, makes accepted messages durable,
// and frees the file. The next Open finds the mail that was being worked on.
func (b *Bus) Close() error {
	if !b.sched.close() {
		return nil
	}
	b.holds.close()
	b.feeds.close()
	// The reserved numbers that were not used are given back, so that the next process's
	// fences begin at the wall clock.
	last := b.clock.last.Load()
	left := b.undeleted.take()
	err := b.db.Write(context.Background(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec(setMeta, metaClock, last)
		return errors.Join(err, deleteAll(tx, left))
	})
	if err != nil {
		err = fmt.Errorf("close bus: %w", err)
	}
	return errors.Join(err, b.db.Close(), b.lock.Close())
}
