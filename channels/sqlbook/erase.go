package sqlbook

import (
	"context"
	"fmt"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// An Erasure says what to erase from the book. Pairings stay, because they are not something that a person said.
type Erasure struct {
	// Sends are the ids of sends to erase no matter what their states are: their messages have been taken off the
	// bus.
	Sends []string
	// Waiting are the ids of the messages that were on the bus at the time Asked. An unfinished send from before
	// Asked whose message is not among them will never be finished, so it is erased. If Asked is zero, nobody has
	// looked at the bus, and no such sends are erased.
	Waiting []string
	Asked   time.Time
	// At are addresses; finished sends to them are erased, whoever wrote them.
	At []bus.Address
	// Sessions are keys of sessions, for each of which these are erased: the finished sends that it wrote, the
	// record of its chats, its asks, the ratings of its answers, what was proposed there, and the notes about it.
	Sessions []string
	// Places are the addresses of Sessions. Finished sends to them are erased if it is not known which session
	// wrote them, because an earlier release may have recorded them.
	Places []bus.Address
	// Person is CHANNEL:USER. The person's name is erased, as well as the notes about them, the asks in their
	// turns, their answers to asks, their ratings, the memories of them, the proposals to them and their links. ""
	// means nobody.
	Person string
	// Origin is a token or a webhook whose submissions are erased. "" means none.
	Origin string
	// Before is a time. Finished sends, asks that have ended, ratings, memories of people, proposals, submissions
	// and subjects from before it are erased.
	Before time.Time
}

// Erased counts what was erased. Posts are submissions.
type Erased struct {
	Sends int64 `json:"sends"`
	Posts int64 `json:"posts"`
	Chats int64 `json:"chats"`
	Asks  int64 `json:"asks"`
	// Ratings counts erased ratings of answers.
	Ratings int64 `json:"ratings"`
	// Memories counts erased memories that agents had of a person.
	Memories int64 `json:"memories,omitempty"`
}

// schemaErasing adds the indexes with which an erasure finds what to erase. Without them it would read whole
// tables, some of them once for each session. Each answer adds an entry to two of these indexes.
const schemaErasing = `
CREATE INDEX sends_by_session ON sends (session, id) WHERE session <> '';
CREATE INDEX sends_by_writer ON sends (writer, id) WHERE writer <> '';
CREATE INDEX sends_by_address ON sends (channel, chat, thread, id) WHERE session = '' AND writer = '';
CREATE INDEX parts_open ON parts (send) WHERE state IN ('queued', 'sending');
CREATE INDEX chats_by_session ON chats (session);
CREATE INDEX chats_by_person ON chats (person) WHERE person <> '';
CREATE INDEX notes_by_about ON notes (about);
CREATE INDEX ratings_by_age ON ratings (rated);
CREATE INDEX memories_by_age ON memories (changed) WHERE scope = 'person';
CREATE INDEX posts_by_origin ON posts (origin)`

// schemaPlaces replaces the index, by address, of the sends that no session wrote by an index of all sends. It
// finds the sends to somebody's private chat, whoever wrote them.
const schemaPlaces = `
CREATE INDEX sends_by_place ON sends (channel, chat, thread, id);
DROP INDEX sends_by_address`

// An erasure works in steps. Each step is a transaction that ends after stepTime or stepUnits, so that other
// writers, for example for a message that arrives, wait for at most one step. A unit is short: no statement changes
// more than unitRows rows.
const (
	stepTime  = 10 * time.Millisecond
	stepUnits = 100
	unitRows  = 50
)

// An eraser erases from all parts of the book.
type eraser struct {
	people *people
	sends  *sends

	// now is the clock that limits the steps of an erasure, and afterStep, if set, is called after each step: tests
	// set them.
	now       func() time.Time
	afterStep func()
}

// Erase erases what the Erasure names, and removes the traces of deleted texts from the database's files. It does
// so in many transactions, so that others can write in between. If it is interrupted, the same call erases the
// rest: the record of a session's chats, by which the rest is found, is erased last.
func (e *eraser) Erase(ctx context.Context, what Erasure) (done Erased, err error) {
	sent, err := e.sendsTo(ctx, what.At)
	if err == nil {
		err = e.inSteps(ctx, &done, what.units(sent))
	}
	e.sends.forgetErased(ctx)
	if err == nil {
		err = e.people.db.Purge(ctx, "sends", "parts", "posts", "post_keys", "subjects", "chats", "pairings", "asks", "notes", "ratings", "links", "link_codes", "memories", "proposals")
	}
	if err != nil {
		return done, fmt.Errorf("erase from the book: %w", err)
	}
	return done, nil
}

// inSteps does the units one after another, as many in one transaction as the limits of a step allow, and adds to
// done what the durable transactions have erased.
func (e *eraser) inSteps(ctx context.Context, done *Erased, units unitList) error {
	for at, after := 0, ""; at < units.count; {
		var erased Erased
		next, from := at, after
		err := e.people.write(ctx, func(tx *sqldb.Tx) error {
			erased, next, from = Erased{}, at, after // the function may run again
			began := e.now()
			for n := 0; next < units.count && n < stepUnits && (n == 0 || e.now().Sub(began) < stepTime); n++ {
				reached, more, err := units.run(next, tx, from, &erased)
				if err != nil {
					return err
				}
				if from = reached; !more {
					next, from = next+1, ""
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		at, after = next, from
		done.add(erased)
		if e.afterStep != nil {
			e.afterStep()
		}
	}
	return nil
}

// add adds the counts of what else was erased.
func (e *Erased) add(more Erased) {
	e.Sends += more.Sends
	e.Posts += more.Posts
	e.Chats += more.Chats
	e.Asks += more.Asks
	e.Ratings += more.Ratings
	e.Memories += more.Memories
}

// sendsTo returns the ids of the sends to some addresses, in their stored form. It is called before the erasure
// begins because nobody asked to erase what is sent there later, and a time can't separate the two: the clocks of
// the senders differ.
func (e *eraser) sendsTo(ctx context.Context, addresses []bus.Address) (ids []string, err error) {
	for _, at := range addresses {
		to, err := sqldb.Column(e.people.db.Read.QueryContext(ctx,
			`SELECT id FROM sends WHERE channel = ? AND chat = ? AND thread = ?`, textArgs(at.Channel, at.Chat, at.Thread)...))
		if err != nil {
			return nil, err
		}
		ids = append(ids, to...)
	}
	return ids, nil
}
