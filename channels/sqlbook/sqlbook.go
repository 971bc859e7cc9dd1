// Package sqlbook stores the channels' book in a SQL database: what was sent, and what is known about chats, people
// and asks.
//
// Several processes may have the same database open: each immediately reads what another one has written, so that a
// command can approve a pairing while the bot is running. A book that Use opens belongs to one process, and caches
// what is read for each message.
//
// The files, in reading order: sqlbook.go opens the book, which consists of parts, and copies it to another
// database; schema.go lists its tables. Each part has its own file: sends.go records what is sent, part by part
// (begin.go before anything is sent; doubts.go if the answer to that was lost; share.go and early.go together with
// the message's publication; lookup.go reads it); submissions.go, what programs have posted; pairings.go, who may
// talk to the bot; links.go, which people are the same human; memories.go, what agents remember; proposals.go, what
// they propose to remember; chats.go, where people have talked to the bot; cursors.go, how far chats have been
// read; asks.go, what parked turns wait for; notes.go, what the bot has told people; ratings.go, what people think
// of answers; processes.go, which formats the running processes can read, and what they are; sign_ins.go, who has signed in to the web
// page. erase.go erases from all of them, in steps whose statements are in units.go.
//
// Pairings, links and memories are read for each message: people.go lets the parts that write them clear what
// cache.go has cached. columns.go defines the forms in which values are stored.
package sqlbook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// A Book is a channels.Book in one database. It consists of one part for each of the things that it remembers.
type Book struct {
	db *sqldb.DB

	sends
	submissions
	pairings
	links
	memories
	proposals
	chats
	cursors
	asks
	notes
	ratings
	processes
	signIns
	eraser
}

// Open opens the book at place: in a PostgreSQL database, given its URL, or otherwise in the SQLite file with that
// path, which it creates if necessary.
func Open(ctx context.Context, place string) (*Book, error) {
	db, err := sqldb.OpenAt(ctx, place, Schema())
	if err != nil {
		return nil, fmt.Errorf("open the book: %w", err)
	}
	return use(ctx, db, false)
}

// OnLost sets report to be called when writes that nobody waits for are lost; see [sqldb.DB].
func (b *Book) OnLost(report func(writes int, err error)) { b.db.OnLost(report) }

// Use opens the book in a database that was opened with the book's Schema, and in which no other Book writes to the
// book's tables. The caller closes the database after the book.
func Use(ctx context.Context, db *sqldb.DB) (*Book, error) {
	return use(ctx, db.Lend(), !db.IsPostgres())
}

// use opens the book in a database. alone says that no other process writes to its tables.
func use(ctx context.Context, db *sqldb.DB, alone bool) (*Book, error) {
	people := &people{db: db}
	if alone {
		people.pairingCache, people.memoryCache = &readCache[string, channels.Pairing]{}, &readCache[[2]string, [2]channels.Memory]{}
	}
	b := &Book{
		db: db, sends: sends{db: db}, submissions: submissions{db: db},
		pairings: pairings{people: people}, links: links{people: people}, memories: memories{people: people}, proposals: proposals{people: people},
		chats: chats{db: db}, cursors: cursors{db: db}, asks: asks{db: db},
		notes: notes{db: db}, ratings: ratings{db: db}, processes: processes{db: db},
		signIns: signIns{db: db},
	}
	b.eraser = eraser{people: people, sends: &b.sends, now: time.Now}
	if err := db.Write(ctx, func(tx *sqldb.Tx) error {
		return errors.Join(prune(tx, time.Now()), pruneSubmissions(tx, time.Now()), pruneAsks(tx, time.Now()))
	}); err != nil {
		return nil, errors.Join(fmt.Errorf("prune the book: %w", err), db.Close())
	}
	return b, nil
}

// closeTimeout is the maximum time that Close waits for its own writes.
const closeTimeout = 5 * time.Second

// Close records that nothing was sent of the sends that wait for their Begin, waits for the writes in progress, and
// closes the database unless it was opened by the caller of Use. Nobody may send messages anymore.
func (b *Book) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return errors.Join(b.requeueEarly(ctx), b.db.Close())
}

// CheckEmpty returns a *sqldb.NotEmptyError if a table of the book to has rows.
func CheckEmpty(ctx context.Context, to *Book) error {
	return sqldb.CheckEmpty(ctx, Schema(), to.db)
}

// Copy copies a whole book from SQLite to PostgreSQL, or nothing of it; see [sqldb.Transfer].
func Copy(ctx context.Context, from, to *Book, within func(*sqldb.Tx) error) (rows map[string]int64, err error) {
	return sqldb.Transfer(ctx, Schema(), from.db, to.db, within)
}
