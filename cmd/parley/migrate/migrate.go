// Package migrate takes a bot from the SQLite files of a home to Redis and PostgreSQL.
//
// Everything goes: the logs, the book, and the mail that waits. A migration has
// an id, which stands in the home before anything is written anywhere, and then
// in all that it writes to. So it can be killed at any point and run again: what
// was taken is known there and not taken twice, and until all of it is, neither
// the home nor what it is taken to can be served.
//
// The order is that of what is safe without what follows: the logs and the book
// first, each in one transaction, and then the mail, which somebody might answer.
//
// The files: migrate.go runs a migration, note.go is the note in the home that names it,
// moves.go is the table in which a database notes what was taken to it, mail.go takes the
// mail.
package migrate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"time"

	"parley/bus/redisbus"
	"parley/bus/sqlitebus"
	"parley/channels/sqlbook"
	"parley/sessions/sqlstore"
)

// Errors that callers decide on.
var (
	// ErrNothing says that the home has nothing to take.
	ErrNothing = errors.New("there is nothing to take")
	// ErrNowhere says that no other place is named.
	ErrNowhere = errors.New("no other place is named")
	// ErrOther says that something else was taken to the same place, or begun to be.
	ErrOther = errors.New("another migration was begun")
)

// Config says what is taken where.
type Config struct {
	// Home is the directory in which the migration is noted; BusFile, StoreFile
	// and BookFile are the files there.
	Home                         string
	BusFile, StoreFile, BookFile string
	// Bus is where the mail goes; without a URL it stays.
	Bus redisbus.Config
	// StoreURL is where the logs and the book go.
	StoreURL string
	// BusName and StoreName are those two as people may read them.
	BusName, StoreName string
	Log                *slog.Logger
	Point              func(name string) // is told how far it has come; for tests
}

// A Report says what was taken.
type Report struct {
	ID    string           `json:"id"`
	Rows  map[string]int64 `json:"rows"` // of logs and book, by table; none that an earlier run has taken
	Mail  Mail             `json:"mail"`
	Store string           `json:"store"`
	Bus   string           `json:"bus,omitempty"`
	Took  time.Duration    `json:"took_ns"`
}

// A migration is one run of one.
type migration struct {
	Config
	note   Note
	report Report

	from struct {
		bus   *sqlitebus.Bus
		store *sqlstore.Store
		book  *sqlbook.Book
	}
	to struct {
		bus   *redisbus.Bus
		store *sqlstore.Store
		book  *sqlbook.Book
		moves *moves
	}
	intake *redisbus.Intake
}

// Run takes everything, or goes on with what an earlier run has begun. It gives
// a *sqlitebus.InUseError while a process has the home, and errors of package
// redisbus and sqldb where the place is not empty.
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
	done, err := m.begin(ctx)
	if err != nil {
		return nil, err
	}
	if !done {
		if err := m.takeAll(ctx); err != nil {
			return nil, err
		}
	}
	m.Point("recorded")
	m.note.Done = time.Now().UTC()
	if err := m.note.write(c.Home); err != nil {
		return nil, err
	}
	m.report.ID, m.report.Store, m.report.Bus, m.report.Took = m.note.ID, m.note.Store, m.note.Bus, time.Since(began)
	return &m.report, nil
}

// plan finds out which parts are to be taken, and under which id.
func (m *migration) plan() error {
	note, err := Read(m.Home)
	if err != nil {
		return err
	}
	if note.Unfinished() {
		if note.Store != m.StoreName || note.Has(PartBus) != (m.Bus.URL != "") {
			return fmt.Errorf("%w from this home, to %s: finish that one first, or delete %s to give it up", ErrOther, note.Places(), Path(m.Home))
		}
		m.note = note
		if m.note.Has(PartBus) {
			m.note.Bus = m.BusName
		}
		return nil
	}
	var parts []string
	if note.Store == "" && there(m.StoreFile, m.BookFile) {
		parts = append(parts, PartStore)
	}
	if note.Bus == "" && m.Bus.URL != "" && there(m.BusFile) {
		parts = append(parts, PartBus)
	}
	switch {
	case len(parts) == 0 && note.ID != "":
		return fmt.Errorf("%w: what was in the home was taken to %s on %s", ErrNothing, note.Places(), note.Done.Format(time.DateOnly))
	case len(parts) == 0:
		return fmt.Errorf("%w: %s has no data", ErrNothing, m.Home)
	case note.Store != "" && note.Store != m.StoreName:
		return fmt.Errorf("%w: the logs are in %s, and this is %s", ErrOther, note.Store, m.StoreName)
	}
	m.note = Note{ID: rand.Text(), Parts: parts, Store: m.StoreName, Bus: note.Bus, Began: time.Now().UTC()}
	if m.note.Has(PartBus) {
		m.note.Bus = m.BusName
	}
	return nil
}

func there(files ...string) bool {
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return true
		}
	}
	return false
}

// open opens both sides. The old bus is first: its lock keeps everybody else out
// of the home.
func (m *migration) open(ctx context.Context) (err error) {
	if m.from.bus, err = sqlitebus.Open(ctx, sqlitebus.Config{Path: m.BusFile, Log: m.Log}); err != nil {
		return err
	}
	if m.from.store, err = sqlstore.Open(ctx, m.StoreFile); err != nil {
		return err
	}
	if m.from.book, err = sqlbook.Open(ctx, m.BookFile); err != nil {
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
	if m.note.Has(PartBus) {
		m.to.bus, err = redisbus.Open(ctx, m.Bus)
	}
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

// begin looks whether everything can be taken, and then notes on both sides that
// it is, the home first. Done says that an earlier run has taken it all.
func (m *migration) begin(ctx context.Context) (done bool, err error) {
	move, err := m.to.moves.find(ctx, m.note.ID)
	if err != nil || move.done {
		return move.done, err
	}
	if m.note.Has(PartStore) && !move.store {
		if err := sqlstore.CheckEmpty(ctx, m.from.store, m.to.store); err != nil {
			return false, err
		}
	}
	if m.note.Has(PartStore) && !move.book {
		if err := sqlbook.CheckEmpty(ctx, m.from.book, m.to.book); err != nil {
			return false, err
		}
	}
	if m.note.Has(PartBus) {
		if m.intake, err = redisbus.NewIntake(ctx, m.to.bus, m.note.ID); err != nil {
			return false, err
		}
	}
	if err := m.note.write(m.Home); err != nil {
		return false, err
	}
	m.Point("noted")
	return false, m.to.moves.begin(ctx, m.note.ID)
}

// takeAll takes the parts, and then records that they are whole.
func (m *migration) takeAll(ctx context.Context) error {
	if m.note.Has(PartStore) {
		if err := m.takeStore(ctx); err != nil {
			return err
		}
	}
	if m.note.Has(PartBus) {
		if err := m.takeBus(ctx); err != nil {
			return err
		}
	}
	return m.to.moves.finish(ctx, m.note.ID)
}

// takeStore takes the logs and the book.
func (m *migration) takeStore(ctx context.Context) error {
	move, err := m.to.moves.find(ctx, m.note.ID)
	if err != nil {
		return err
	}
	m.report.Rows = map[string]int64{}
	if !move.store {
		m.Point("before the store")
		rows, err := sqlstore.Copy(ctx, m.from.store, m.to.store, m.to.moves.within(m.note.ID, "store"))
		if err != nil {
			return fmt.Errorf("take the logs: %w", err)
		}
		maps.Copy(m.report.Rows, rows)
		m.Log.Info("the logs are taken", slog.Int64("sessions", rows["sessions"]), slog.Int64("entries", rows["entries"]))
	}
	if !move.book {
		m.Point("before the book")
		rows, err := sqlbook.Copy(ctx, m.from.book, m.to.book, m.to.moves.within(m.note.ID, "book"))
		if err != nil {
			return fmt.Errorf("take the book: %w", err)
		}
		maps.Copy(m.report.Rows, rows)
		m.Log.Info("the book is taken", slog.Int64("sends", rows["sends"]), slog.Int64("pairings", rows["pairings"]))
	}
	return nil
}
