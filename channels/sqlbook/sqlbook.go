// Package sqlbook stores the channels' book in a SQL database: what was sent, and what is known of chats, people and asks.
//
// Several processes may have the same database open: each reads at once what another has
// written, so that a command may approve a pairing while the bot serves. A book that Use opens
// belongs to one process, and keeps in memory what each message asks of it.
//
// The files, in reading order: sqlbook.go opens the book, copies it to another database,
// and has its first tables; sends.go records what is sent, part by part, and lookup.go reads that; submissions.go
// what programs have posted; pairings.go who may talk to the bot; chats.go and threads.go
// where people have spoken to the bot, and how far chats were read; people.go the names of
// people, and which of them are the same human; memory.go what agents remember of them;
// asks.go what parked turns wait for; processes.go what running processes understand;
// notes.go what the bot has told people; ratings.go what people think of answers; erase.go
// erases; postgres.go has the statements that differ on
// PostgreSQL.
package sqlbook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// A Book is a channels.Book in one database.
type Book struct {
	db                 *sqldb.DB
	begins             atomic.Uint64 // counts calls of Begin; at every pruneEvery-th, old sends are deleted
	doubts             uncertainSends
	early              earlySends
	sharer             Sharer        // publishes messages in the book's writes; nil if it cannot
	submissions        atomic.Uint64 // counts calls of pruneSometimes; at every pruneEvery-th, old submissions are deleted
	doubtfulAdmissions sync.Map      // by channels.Admission: the channels.Pairing that was written, if the commit succeeded whose answer was lost

	// Nil if other processes may write to the database.
	paired   *readCache[string, channels.Pairing]      // by person: what Paired has found
	recalled *readCache[[2]string, [2]channels.Memory] // by agent and person: what RecallFor has found
}

// Schema returns the book's tables, for backup and doctor.
func Schema() sqldb.Schema {
	return sqldb.Schema{
		Name:     "book",
		SQLite:   []string{schema, schemaPosts, schemaCursors, schemaDrafts, schemaNames, schemaAsks, schemaNotes, schemaRatings, schemaPeople, schemaCompact, schemaWriters},
		Postgres: []string{asPostgres(schema), asPostgres(schemaPosts), asPostgres(schemaCursors), schemaDrafts, asPostgres(schemaNames), asPostgres(schemaAsks), asPostgres(schemaNotes), asPostgres(schemaRatings), asPostgres(schemaPeople), asPostgres(schemaWriters)},
	}
}

// Open opens the book at place: in a PostgreSQL database by its URL, or else in
// the SQLite file of that path, which it creates if need be.
func Open(ctx context.Context, place string) (*Book, error) {
	db, err := sqldb.OpenAt(ctx, place, Schema())
	if err != nil {
		return nil, fmt.Errorf("open the book: %w", err)
	}
	return use(ctx, db)
}

// OnLost has report called when writes that nobody waits for are lost; see [sqldb.DB].
func (b *Book) OnLost(report func(writes int, err error)) { b.db.OnLost(report) }

// Use opens the book in a database that was opened with its Schema, and in which no other Book
// writes to the book's tables. The caller closes the database after the book.
func Use(ctx context.Context, db *sqldb.DB) (*Book, error) {
	b, err := use(ctx, db.Lend())
	if err != nil || db.Postgres() {
		return b, err
	}
	b.paired, b.recalled = &readCache[string, channels.Pairing]{}, &readCache[[2]string, [2]channels.Memory]{}
	return b, nil
}

func use(ctx context.Context, db *sqldb.DB) (*Book, error) {
	b := &Book{db: db}
	if err := db.Write(ctx, func(tx *sqldb.Tx) error {
		return errors.Join(prune(tx, time.Now()), pruneSubmissions(tx, time.Now()), pruneAsks(tx, time.Now()))
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("prune the book: %w", err), db.Close())
	}
	return b, nil
}

// writeOfPeople is sqldb.DB.Write for a transaction that may write to pairings, links or memories.
// What was read of them is forgotten once the transaction has ended, however it has: SQLite's
// writer answers only then.
func (b *Book) writeOfPeople(ctx context.Context, fn func(*sqldb.Tx) error) error {
	defer b.paired.clear()
	defer b.recalled.clear()
	return b.db.Write(ctx, fn)
}

// maxReadCache bounds how many answers a readCache keeps, and longestRead how long what agents
// remember may be in one of them.
const (
	maxReadCache = 2048
	longestRead  = 2048
)

// A readCache keeps what queries have found, until something is written that they read. If it is
// nil, it keeps nothing.
type readCache[K comparable, V any] struct {
	mu    sync.Mutex
	found map[K]V
	round int // counts calls of clear
}

// get returns what was found under a key. If nothing is kept, it calls query, which reports whether
// to keep what it finds.
func (r *readCache[K, V]) get(key K, query func() (found V, keep bool, err error)) (V, error) {
	if r == nil {
		found, _, err := query()
		return found, err
	}
	r.mu.Lock()
	kept, ok := r.found[key]
	round := r.round
	r.mu.Unlock()
	if ok {
		return kept, nil
	}
	found, keep, err := query()
	if err != nil || !keep {
		return found, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.round != round { // what was found may be older than what was written meanwhile
		return found, nil
	}
	if r.found == nil || len(r.found) >= maxReadCache {
		r.found = map[K]V{}
	}
	r.found[key] = found
	return found, nil
}

// clear forgets everything.
func (r *readCache[K, V]) clear() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = nil
	r.round++
}

// closePatience is how long Close waits at most for what it writes.
const closePatience = 5 * time.Second

// Close waits for the writes under way, and closes the database unless it was lent to the book.
// Nobody may send messages any more.
func (b *Book) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	return errors.Join(b.requeueEarly(ctx), b.db.Close())
}

// Times are stored as microseconds since 1970, booleans as 0 or 1.
const schema = `
CREATE TABLE IF NOT EXISTS sends (
	id      TEXT PRIMARY KEY,
	channel TEXT NOT NULL,
	chat    TEXT NOT NULL,
	thread  TEXT NOT NULL,
	begun   BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS sends_by_age ON sends (begun);
CREATE TABLE IF NOT EXISTS parts (
	send        TEXT NOT NULL,
	part        INTEGER NOT NULL,
	state       TEXT NOT NULL,
	body        TEXT NOT NULL,
	plain       TEXT NOT NULL,
	platform_id TEXT NOT NULL,
	interrupted INTEGER NOT NULL,
	code        TEXT NOT NULL,
	changed     BIGINT NOT NULL,
	PRIMARY KEY (send, part)
);
CREATE INDEX IF NOT EXISTS parts_unknown ON parts (send) WHERE state = 'unknown';
CREATE TABLE IF NOT EXISTS pairings (
	person   TEXT PRIMARY KEY,
	chat     TEXT NOT NULL,
	code     TEXT NOT NULL,
	approved INTEGER NOT NULL,
	owner    INTEGER NOT NULL,
	changed  BIGINT NOT NULL,
	expires  BIGINT NOT NULL
);
CREATE INDEX IF NOT EXISTS pairings_by_code ON pairings (code);
CREATE INDEX IF NOT EXISTS pairings_by_age ON pairings (approved, expires, person);
CREATE TABLE IF NOT EXISTS offers (
	channel TEXT PRIMARY KEY,
	code    TEXT NOT NULL,
	made    BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS chats (
	channel TEXT NOT NULL,
	chat    TEXT NOT NULL,
	thread  TEXT NOT NULL,
	session TEXT NOT NULL,
	shared  INTEGER NOT NULL,
	seen    BIGINT NOT NULL,
	PRIMARY KEY (channel, chat, thread)
)`

// textArgs returns the strings as arguments of a statement, in a form that every database can
// store.
func textArgs(list ...string) []any {
	held := make([]any, len(list))
	for i, s := range list {
		held[i] = sqldb.Text(s)
	}
	return held
}

// restoreTexts converts strings that were read from the database back, in place.
func restoreTexts(list ...*string) {
	for _, s := range list {
		*s = sqldb.Untext(*s)
	}
}

// stamp returns a time in its stored form. 0 means no time, so the first microsecond of
// 1970 is stored as the second.
func stamp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return cmp.Or(t.UnixMicro(), 1)
}

// timeOf returns the time of a stored stamp.
func timeOf(stamp int64) time.Time {
	if stamp == 0 {
		return time.Time{}
	}
	return time.UnixMicro(stamp)
}

// bit returns a boolean in its stored form.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// CheckEmpty returns a *sqldb.NotEmptyError if a table of the book to has rows.
func CheckEmpty(ctx context.Context, to *Book) error {
	return sqldb.CheckEmpty(ctx, Schema(), to.db)
}

// Copy copies a whole book from SQLite to PostgreSQL, or nothing of it; see
// [sqldb.Transfer].
func Copy(ctx context.Context, from, to *Book, within func(*sqldb.Tx) error) (rows map[string]int64, err error) {
	return sqldb.Transfer(ctx, Schema(), from.db, to.db, within)
}
