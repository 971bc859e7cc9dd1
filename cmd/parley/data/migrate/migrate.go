// Package migrate copies a bot from the SQLite files of a home to Redis and PostgreSQL.
//
// It copies the logs, the book, and the waiting mail. A migration has an id, which is written to
// the home before anything else, and then to everything that it copies to. So it can be killed at
// any point and run again: what was copied is marked with the id and not copied twice. Until
// everything is copied, no process can serve either the home or its new places.
//
// The logs and the book come first, each in one transaction. The mail comes last,
// because a bot that has mail answers it and needs the logs for that.
//
// The files: migrate.go runs a migration; progress.go says how far it is; note.go writes the note in the home that identifies it;
// moves.go is the table in which a database records what was copied to it; mail.go copies the mail.
package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
	"parley/bus/redisbus/shards"
	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/homedb"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// These are the errors that callers act on.
var (
	// ErrNothing says that the home contains nothing to copy.
	ErrNothing = errors.New("there's nothing to move")
	// ErrNowhere says that the new configuration names no place to copy to.
	ErrNowhere = errors.New("no other place is configured")
	// ErrOther says that another migration is in progress from this home or to this place.
	ErrOther = errors.New("another migration is in progress")
)

// Config says what to copy, and where.
type Config struct {
	// Home is the directory of the data, in which the migration is recorded.
	Home string
	// Bus is where the messages are copied to; if it has no URL, they stay in the home, in a
	// database of their own.
	Bus    redisbus.Config
	Shards int // number of shards of the new bus
	// StoreURL is the database that the logs and the book are copied to.
	StoreURL string
	// BusName and StoreName are the same two URLs without passwords, for people.
	BusName, StoreName string
	Log                *slog.Logger
	Progress           func(Progress)    // called again and again, and must be quick; may be nil
	Point              func(name string) // called at each step, where a test may kill the process; may be nil
}

// A Report says what was copied.
type Report struct {
	ID    string           `json:"id"`
	Rows  map[string]int64 `json:"rows"` // copied rows by table, without those of an earlier run
	Mail  Mail             `json:"mail"`
	Store string           `json:"store"`
	Bus   string           `json:"bus,omitempty"`
	Took  time.Duration    `json:"took_ns"`
}

// A migration is the state of one call of Run.
type migration struct {
	Config
	note   Note
	report Report

	from struct {
		db    *sqldb.DB // the home's database; nil if an earlier migration has left nothing in the home except the messages
		bus   *sqlitebus.Bus
		store *sqlstore.Store
		book  *sqlbook.Book
	}
	to struct {
		bus   newBus
		store *sqlstore.Store
		book  *sqlbook.Book
		moves *migrationTable
	}
	newIntake func() (intake, error) // makes intake; nil if the messages stay where they are
	intake    intake                 // writes into the new bus; nil if the messages stay where they are
}

// A newBus is what a migration needs of the bus it copies to, besides its intake.
type newBus interface {
	bus.Inspector
	bus.DeadLetters
	bus.Pauser
	Close() error
}

// An intake copies messages into a bus; see redisbus.Importer.
type intake interface {
	Begin(ctx context.Context, highest int64) error
	AddMessage(ctx context.Context, m redisbus.StoredMessage) error
	AddDead(ctx context.Context, m redisbus.StoredMessage) error
	AddKnown(ctx context.Context, topic bus.Topic, day int64, ids []string) error
	Messages(ctx context.Context) iter.Seq2[redisbus.StoredMessage, error]
	AwaitDurable(ctx context.Context) error
}

// Run copies everything, or continues what an earlier run has begun. It returns ErrNowhere or ErrNothing if there is
// nothing that it can copy, ErrOther while another migration is in progress, a *sqlitebus.InUseError while a process
// has the home open, an error of package redisbus or sqldb if the new place is not empty, and ErrDiffers if the copied
// messages aren't the same.
func Run(ctx context.Context, c Config) (r *Report, err error) {
	began := time.Now()
	m := &migration{Config: c}
	if m.Point == nil {
		m.Point = func(string) {}
	}
	if c.StoreURL == "" {
		return nil, ErrNowhere
	}
	if err := m.plan(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := m.open(ctx); err != nil {
		return nil, err
	}
	m.Point("opened")
	done, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	if !done {
		if err := m.copyAll(ctx); err != nil {
			return nil, err
		}
	} else if err := m.leaveMail(ctx); err != nil { // opening the home has put the mail back into the shared database
		return nil, err
	}
	m.Point("recorded")
	m.note.Done = time.Now().UTC()
	if err := m.note.write(c.Home); err != nil {
		return nil, err
	}
	if err := homedb.RemoveBefore(c.Home); err != nil { // the data left by an older release was copied
		return nil, err
	}
	m.report.ID, m.report.Store, m.report.Bus, m.report.Took = m.note.ID, m.note.Store, m.note.Bus, time.Since(began)
	return &m.report, nil
}

// plan decides which parts to copy, and under which migration id. It returns ErrNothing if there are none, and ErrOther
// if the home's logs are in another place, or a migration to another place is unfinished.
func (m *migration) plan() error {
	note, err := Read(m.Home)
	if err != nil {
		return err
	}
	if note.Unfinished() {
		if note.Store != m.StoreName || note.HasPart(PartBus) != (m.Bus.URL != "") {
			return fmt.Errorf("%w from this home to %s: finish that one first, or delete %s to abandon it", ErrOther, note.Places(), Path(m.Home))
		}
		m.Log.Info("the migration goes on that has begun before", slog.Time("began", note.Began))
		m.note = note
		if m.note.HasPart(PartBus) {
			m.note.Bus = m.BusName
		}
		return nil
	}
	var parts []string
	shared := note.Store == "" && m.exist(homedb.File, homedb.BookFile)
	if shared {
		parts = append(parts, PartStore)
	}
	if note.Bus == "" && m.Bus.URL != "" && (shared || m.exist(homedb.BusFile)) {
		parts = append(parts, PartBus)
	}
	switch {
	case len(parts) == 0 && note.ID != "":
		return fmt.Errorf("%w: the home's data was moved to %s on %s", ErrNothing, note.Places(), note.Done.Format(time.DateOnly))
	case len(parts) == 0:
		return fmt.Errorf("%w: %s has no data", ErrNothing, m.Home)
	case note.Store != "" && note.Store != m.StoreName:
		return fmt.Errorf("%w: the logs are in %s, but the configuration names %s", ErrOther, note.Store, m.StoreName)
	}
	m.note = Note{ID: rand.Text(), Parts: parts, Store: m.StoreName, Bus: note.Bus, Began: time.Now().UTC()}
	if m.note.HasPart(PartBus) {
		m.note.Bus = m.BusName
	}
	return nil
}

// exist reports whether any of these files is in the home.
func (m *migration) exist(files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(filepath.Join(m.Home, file)); err == nil {
			return true
		}
	}
	return false
}

// open opens the home and the new places. It opens the home first, because the home's lock keeps
// every other process out of it.
func (m *migration) open(ctx context.Context) (err error) {
	if err := m.openHome(ctx); err != nil {
		return err
	}
	if m.to.store, err = sqlstore.Open(ctx, m.StoreURL); err != nil {
		return err
	}
	if m.to.book, err = sqlbook.Open(ctx, m.StoreURL); err != nil {
		return err
	}
	if m.to.moves, err = openMoves(ctx, m.StoreURL); err != nil {
		return err
	}
	if m.note.HasPart(PartBus) {
		return m.openBus(ctx)
	}
	return nil
}

// openBus opens the new bus, in shards if the configuration says so.
func (m *migration) openBus(ctx context.Context) error {
	if err := shards.Prepare(ctx, m.Bus, m.Shards); err != nil {
		return err
	}
	if m.Shards > 1 {
		opened, err := shards.Open(ctx, m.Bus, m.Shards)
		if err != nil {
			return err
		}
		m.to.bus = opened
		m.newIntake = func() (intake, error) { return shards.NewImporter(ctx, opened, m.note.ID) }
		return nil
	}
	opened, err := redisbus.Open(ctx, m.Bus)
	if err != nil {
		return err
	}
	m.to.bus = opened
	m.newIntake = func() (intake, error) { return redisbus.NewImporter(ctx, opened, m.note.ID) }
	return nil
}

// openHome opens what is in the home: the shared database, or the bus's own if an earlier migration
// has moved the rest.
func (m *migration) openHome(ctx context.Context) (err error) {
	c := sqlitebus.Config{Path: filepath.Join(m.Home, homedb.BusFile), Log: m.Log}
	if m.note.HasPart(PartStore) {
		c.Database = func(ctx context.Context) (db *sqldb.DB, err error) {
			db, err = homedb.Open(ctx, m.Home, homedb.Options{Log: m.Log, Point: m.Point})
			m.from.db = db
			return db, err
		}
	}
	if m.from.bus, err = sqlitebus.Open(ctx, c); err != nil || !m.note.HasPart(PartStore) {
		return err
	}
	if m.from.store, err = sqlstore.Use(ctx, m.from.db); err != nil {
		return err
	}
	m.from.book, err = sqlbook.Use(ctx, m.from.db)
	return err
}

func (m *migration) close() error {
	var errs []error
	if m.to.bus != nil {
		errs = append(errs, m.to.bus.Close())
	}
	if m.to.moves != nil {
		errs = append(errs, m.to.moves.close())
	}
	for _, b := range []*sqlbook.Book{m.to.book, m.from.book} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	for _, s := range []*sqlstore.Store{m.to.store, m.from.store} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if m.from.bus != nil {
		errs = append(errs, m.from.bus.Close())
	}
	return errors.Join(errs...)
}

// begin checks that everything can be copied, and then records the migration on both sides, in the
// home first: a database in which a migration has begun is not served, and only the home's note
// tells the operator which database that is. It returns done if an earlier run has copied
// everything.
func (m *migration) begin(ctx context.Context) (done bool, err error) {
	move, err := m.to.moves.find(ctx, m.note.ID)
	if err != nil || move.done {
		return move.done, err
	}
	if m.note.HasPart(PartStore) && !move.store {
		if err := sqlstore.CheckEmpty(ctx, m.to.store); err != nil {
			return false, err
		}
	}
	if m.note.HasPart(PartStore) && !move.book {
		if err := sqlbook.CheckEmpty(ctx, m.to.book); err != nil {
			return false, err
		}
	}
	if m.note.HasPart(PartBus) {
		if m.intake, err = m.newIntake(); err != nil {
			return false, err
		}
	}
	if err := m.note.write(m.Home); err != nil {
		return false, err
	}
	m.Point("noted")
	return false, m.to.moves.begin(ctx, m.note.ID)
}

// copyAll copies the parts, and then records that they are complete.
func (m *migration) copyAll(ctx context.Context) error {
	if m.note.HasPart(PartStore) {
		if err := m.copyStore(ctx); err != nil {
			return err
		}
	}
	if m.note.HasPart(PartBus) {
		if err := m.copyBus(ctx); err != nil {
			return err
		}
	}
	if err := m.leaveMail(ctx); err != nil {
		return err
	}
	return m.to.moves.finish(ctx, m.note.ID)
}

// leaveMail moves the mail to a database of the bus's own in the home, if the logs and the book
// were moved but the mail was not. If it is killed meanwhile, the mail may be in both places; the
// next run merges it before it begins, because opening the home takes over what is in the other
// place.
func (m *migration) leaveMail(ctx context.Context) error {
	if !m.note.HasPart(PartStore) || m.note.HasPart(PartBus) {
		return nil
	}
	m.Point("before the mail is left")
	if err := m.from.bus.Split(ctx, filepath.Join(m.Home, homedb.File), filepath.Join(m.Home, homedb.BusFile), m.Point); err != nil {
		return fmt.Errorf("leave the mail in the home: %w", err)
	}
	return nil
}

// copyStore copies the logs and the book.
func (m *migration) copyStore(ctx context.Context) error {
	move, err := m.to.moves.find(ctx, m.note.ID)
	if err != nil {
		return err
	}
	m.report.Rows = map[string]int64{}
	if !move.store {
		m.Point("before the store")
		rows, err := sqlstore.Copy(sqldb.OnTransfer(ctx, m.progressOf(Logs)), m.from.store, m.to.store, m.to.moves.recordCopied(m.note.ID, "store"))
		if err != nil {
			return fmt.Errorf("copy the logs: %w", err)
		}
		maps.Copy(m.report.Rows, rows)
		m.Log.Info("the logs are taken", slog.Int64("sessions", rows["sessions"]), slog.Int64("entries", rows["entries"]))
	}
	if !move.book {
		m.Point("before the book")
		rows, err := sqlbook.Copy(sqldb.OnTransfer(ctx, m.progressOf(Book)), m.from.book, m.to.book, m.to.moves.recordCopied(m.note.ID, "book"))
		if err != nil {
			return fmt.Errorf("copy the book: %w", err)
		}
		maps.Copy(m.report.Rows, rows)
		m.Log.Info("the book is taken", slog.Int64("sends", rows["sends"]), slog.Int64("pairings", rows["pairings"]))
	}
	return nil
}
