package sqlbook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// An Erasure says what to erase from the book. Pairings stay, because they are nothing that
// a person said.
type Erasure struct {
	// Sends are the ids of sends to erase whatever their states: their messages have been
	// taken off the bus.
	Sends []string
	// Waiting are the ids of the messages that were on the bus at the time Asked. A send from
	// before Asked that is unfinished and whose message is not among them will never be
	// finished, so it is erased. If Asked is zero, nobody has looked at the bus, and no such
	// send is erased.
	Waiting []string
	Asked   time.Time
	// At are addresses to which finished sends are erased, whoever wrote them.
	At []bus.Address
	// Sessions are keys of sessions, of which four things are erased: the finished sends that
	// they wrote, the record of the chats in which people spoke to the bot, the asks, and the
	// ratings of answers.
	Sessions []string
	// Places are the addresses of Sessions. Finished sends to them are erased if it is not
	// known which session wrote them: an earlier release may have recorded them.
	Places []bus.Address
	// Person is CHANNEL:USER. Erased are the person's name, the notes about them, the asks
	// in their turns, their answers to asks, their ratings, the memories of them and their
	// links. "" means nobody.
	Person string
	// Origin is a token or a webhook whose submissions are erased. "" means none.
	Origin string
	// Before is a time; finished sends from before it are erased.
	Before time.Time
}

// Erased counts what was erased.
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

// finishedCondition is the SQL condition that every part of a send is in a final state.
const finishedCondition = ` AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.send = sends.id AND state IN ('queued', 'sending'))`

// toAddress is the SQL condition that a send goes to an address: a channel, a chat and a thread.
const toAddress = `channel = ? AND chat = ? AND thread = ?`

// Erase erases what the Erasure names, and removes the traces of deleted texts from the
// database's files.
func (b *Book) Erase(ctx context.Context, what Erasure) (done Erased, err error) {
	err = b.writeOfPeople(ctx, func(tx *sqldb.Tx) error {
		done = Erased{}
		return what.erase(tx, &done)
	})
	b.forgetErased(ctx)
	if err == nil {
		err = b.db.Purge(ctx, "sends", "parts", "posts", "post_keys", "subjects", "chats", "pairings", "asks", "notes", "ratings", "links", "link_codes", "memories")
	}
	if err != nil {
		return done, fmt.Errorf("erase from the book: %w", err)
	}
	return done, nil
}

// erase does the whole erasure in one transaction, and counts in done what it has erased.
func (what Erasure) erase(tx *sqldb.Tx, done *Erased) error {
	for _, id := range what.Sends {
		if err := eraseSends(tx, done, `id = ?`, textArgs(id)...); err != nil {
			return err
		}
	}
	if !what.Asked.IsZero() {
		if err := what.eraseStray(tx, done); err != nil {
			return err
		}
	}
	for _, at := range what.At {
		if err := eraseSends(tx, done, toAddress+finishedCondition, textArgs(at.Channel, at.Chat, at.Thread)...); err != nil {
			return err
		}
	}
	for _, at := range what.Places {
		if err := eraseSends(tx, done, toAddress+` AND session = '' AND writer = ''`+finishedCondition, textArgs(at.Channel, at.Chat, at.Thread)...); err != nil {
			return err
		}
	}
	if err := eraseSendsOf(tx, done, what.Sessions); err != nil {
		return err
	}
	for _, key := range what.Sessions {
		if err := eraseOfSession(tx, done, key); err != nil {
			return err
		}
	}
	if what.Person != "" {
		if err := erasePeople(tx, done, what.Person); err != nil {
			return err
		}
		if err := errors.Join(eraseName(tx, what.Person), eraseNotes(tx, what.Person), eraseAsks(tx, done, what.Person),
			execCounting(tx, &done.Ratings, `DELETE FROM ratings WHERE person = ?`, textArgs(what.Person)...)); err != nil {
			return err
		}
	}
	if what.Origin != "" {
		if err := eraseSubmissions(tx, done, `origin = ?`, `origin = ?`, textArgs(what.Origin)...); err != nil {
			return err
		}
	}
	if what.Before.IsZero() {
		return nil
	}
	if err := eraseSends(tx, done, `begun < ?`+finishedCondition, stamp(what.Before)); err != nil {
		return err
	}
	if err := execCounting(tx, &done.Asks, `DELETE FROM asks WHERE state <> 'open' AND ended < ?`, stamp(what.Before)); err != nil {
		return err
	}
	if err := execCounting(tx, &done.Ratings, `DELETE FROM ratings WHERE rated < ?`, stamp(what.Before)); err != nil {
		return err
	}
	if err := execCounting(tx, &done.Memories, `DELETE FROM memories WHERE scope = 'person' AND changed < ?`, stamp(what.Before)); err != nil {
		return err
	}
	return eraseSubmissions(tx, done, `made < ?`, `used < ?`, stamp(what.Before))
}

// sessionsAtOnce is for how many sessions one query looks through the sends.
const sessionsAtOnce = 100

// eraseSendsOf erases the finished sends that sessions wrote. All sends have to be looked through
// for that, so one query does it for many sessions: retention may have erased thousands at once,
// and others wait for this transaction.
func eraseSendsOf(tx *sqldb.Tx, done *Erased, sessions []string) error {
	for keys := range slices.Chunk(sessions, sessionsAtOnce) {
		for len(keys) > 1 && len(keys) < sessionsAtOnce { // few queries differ, as each is kept prepared
			keys = append(keys, keys[0])
		}
		marks := strings.TrimSuffix(strings.Repeat("?,", len(keys)), ",")
		err := eraseSends(tx, done, `(session IN (`+marks+`) OR writer IN (`+marks+`))`+finishedCondition, textArgs(slices.Concat(keys, keys)...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// eraseOfSession erases what else the book has of one session.
func eraseOfSession(tx *sqldb.Tx, done *Erased, key string) error {
	return errors.Join(
		execCounting(tx, &done.Chats, `DELETE FROM chats WHERE session = ?`, textArgs(key)...),
		execCounting(tx, &done.Asks, `DELETE FROM asks WHERE session = ?`, textArgs(key)...),
		execCounting(tx, &done.Ratings, `DELETE FROM ratings WHERE session = ?`, textArgs(key)...))
}

// eraseStray erases the records of sends that were begun and never finished, where the bus no
// longer has the message: nobody would finish them.
func (what Erasure) eraseStray(tx *sqldb.Tx, done *Erased) error {
	const unfinished = `SELECT DISTINCT send FROM parts JOIN sends ON sends.id = send WHERE state IN ('queued', 'sending') AND begun < ?`
	ids, err := idsOf(tx, unfinished, stamp(what.Asked))
	if err != nil {
		return err
	}
	waiting := map[string]bool{}
	for _, id := range textArgs(what.Waiting...) {
		waiting[id.(string)] = true
	}
	return deleteSends(tx, done, slices.DeleteFunc(ids, func(id string) bool { return waiting[id] }))
}

// eraseSends erases the sends for which the SQL condition is true.
func eraseSends(tx *sqldb.Tx, done *Erased, condition string, args ...any) error {
	ids, err := idsOf(tx, `SELECT id FROM sends WHERE `+condition, args...)
	if err != nil {
		return err
	}
	return deleteSends(tx, done, ids)
}

// idsOf returns the ids that a query selects, in their stored form.
func idsOf(tx *sqldb.Tx, query string, args ...any) (ids []string, err error) {
	found, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var id string
		if err := found.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, found.Err()
}

// deleteSends deletes sends with their parts, by ids in their stored form.
func deleteSends(tx *sqldb.Tx, done *Erased, ids []string) error {
	for _, id := range ids {
		if _, err := tx.Exec(`DELETE FROM parts WHERE send = ?`, id); err != nil {
			return err
		}
		if err := execCounting(tx, &done.Sends, `DELETE FROM sends WHERE id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

// eraseSubmissions erases the submissions, and their keys, for which the SQL condition is true, and
// the subjects for which subjectCondition is.
func eraseSubmissions(tx *sqldb.Tx, done *Erased, condition, subjectCondition string, args ...any) error {
	if _, err := tx.Exec(`DELETE FROM post_keys WHERE `+condition, args...); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM subjects WHERE `+subjectCondition, args...); err != nil {
		return err
	}
	return execCounting(tx, &done.Posts, `DELETE FROM posts WHERE `+condition, args...)
}

// execCounting executes a statement and adds the number of changed rows to into.
func execCounting(tx *sqldb.Tx, into *int64, query string, args ...any) error {
	n, err := tx.Exec(query, args...)
	*into += n
	return err
}
