package sqlbook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// An Erasure says what to erase from the book. Pairings stay: they are not something
// that a person said.
type Erasure struct {
	// Sends are the ids of sends to erase in whatever state, as their messages have
	// been taken off the bus.
	Sends []string
	// Waiting are the ids of the messages that were on the bus at the time Asked. An
	// unfinished send from before Asked that is not among them will never be finished,
	// so it is erased. Nothing is, if Asked is zero: nobody has looked at the bus.
	Waiting []string
	Asked   time.Time
	// At are addresses: finished sends to them are erased.
	At []bus.Address
	// Sessions are keys: the record that people spoke to the bot in their chats is
	// erased, what was asked in them, and what people think of their answers.
	Sessions []string
	// Person is CHANNEL:USER: the name by which the platform calls them is erased, what
	// was noted about them, what was asked in their turns, what they answered, what they
	// think of answers, what is remembered of them and with whom they are one. "" is nobody.
	Person string
	// Origin is a token or a webhook: its submissions are erased. "" is none.
	Origin string
	// Before is a time: finished sends from before it are erased.
	Before time.Time
}

// Erased counts what was erased.
type Erased struct {
	Sends int64 `json:"sends"`
	Posts int64 `json:"posts"`
	Chats int64 `json:"chats"`
	Asks  int64 `json:"asks"`
	// Ratings are what people think of answers.
	Ratings int64 `json:"ratings"`
	// Memories are what agents remember of a person in all of their conversations.
	Memories int64 `json:"memories,omitempty"`
}

// finished is the condition that no part of a send is still to be sent.
const finished = ` AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.send = sends.id AND state IN ('queued', 'sending'))`

// Erase erases, and removes the traces of deleted texts from the database's files.
func (b *Book) Erase(ctx context.Context, what Erasure) (done Erased, err error) {
	err = b.db.Write(ctx, func(tx *sqldb.Tx) error {
		done = Erased{}
		return what.erase(tx, &done)
	})
	if err == nil {
		err = b.db.Purge(ctx, "sends", "parts", "posts", "post_keys", "subjects", "chats", "pairings", "asks", "notes", "ratings", "links", "link_codes", "memories")
	}
	if err != nil {
		return done, fmt.Errorf("erase from the book: %w", err)
	}
	return done, nil
}

func (what Erasure) erase(tx *sqldb.Tx, done *Erased) error {
	for _, id := range what.Sends {
		if err := sends(tx, done, `id = ?`, texts(id)...); err != nil {
			return err
		}
	}
	if !what.Asked.IsZero() {
		if err := what.stray(tx, done); err != nil {
			return err
		}
	}
	for _, at := range what.At {
		err := sends(tx, done, `channel = ? AND chat = ? AND thread = ?`+finished, texts(at.Channel, at.Chat, at.Thread)...)
		if err != nil {
			return err
		}
	}
	for _, key := range what.Sessions {
		if err := count(tx, &done.Chats, `DELETE FROM chats WHERE session = ?`, texts(key)...); err != nil {
			return err
		}
		if err := count(tx, &done.Asks, `DELETE FROM asks WHERE session = ?`, texts(key)...); err != nil {
			return err
		}
		if err := count(tx, &done.Ratings, `DELETE FROM ratings WHERE session = ?`, texts(key)...); err != nil {
			return err
		}
	}
	if what.Person != "" {
		if err := erasePeople(tx, done, what.Person); err != nil {
			return err
		}
		if err := errors.Join(eraseName(tx, what.Person), eraseNotes(tx, what.Person), eraseAsks(tx, done, what.Person),
			count(tx, &done.Ratings, `DELETE FROM ratings WHERE person = ?`, texts(what.Person)...)); err != nil {
			return err
		}
	}
	if what.Origin != "" {
		if err := submissions(tx, done, `origin = ?`, `origin = ?`, texts(what.Origin)...); err != nil {
			return err
		}
	}
	if what.Before.IsZero() {
		return nil
	}
	if err := sends(tx, done, `begun < ?`+finished, stamp(what.Before)); err != nil {
		return err
	}
	if err := count(tx, &done.Asks, `DELETE FROM asks WHERE state <> 'open' AND ended < ?`, stamp(what.Before)); err != nil {
		return err
	}
	if err := count(tx, &done.Ratings, `DELETE FROM ratings WHERE rated < ?`, stamp(what.Before)); err != nil {
		return err
	}
	if err := count(tx, &done.Memories, `DELETE FROM memories WHERE scope = 'person' AND changed < ?`, stamp(what.Before)); err != nil {
		return err
	}
	return submissions(tx, done, `made < ?`, `used < ?`, stamp(what.Before))
}

// stray erases unfinished sends whose message is on no bus any more.
func (what Erasure) stray(tx *sqldb.Tx, done *Erased) error {
	const unfinished = `SELECT DISTINCT send FROM parts JOIN sends ON sends.id = send WHERE state IN ('queued', 'sending') AND begun < ?`
	ids, err := idsOf(tx, unfinished, stamp(what.Asked))
	if err != nil {
		return err
	}
	waiting := map[string]bool{}
	for _, id := range texts(what.Waiting...) {
		waiting[id.(string)] = true
	}
	return remove(tx, done, slices.DeleteFunc(ids, func(id string) bool { return waiting[id] }))
}

func sends(tx *sqldb.Tx, done *Erased, which string, args ...any) error {
	ids, err := idsOf(tx, `SELECT id FROM sends WHERE `+which, args...)
	if err != nil {
		return err
	}
	return remove(tx, done, ids)
}

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

// remove deletes sends with their parts, by their ids as the table has them.
func remove(tx *sqldb.Tx, done *Erased, ids []string) error {
	for _, id := range ids {
		if _, err := tx.Exec(`DELETE FROM parts WHERE send = ?`, id); err != nil {
			return err
		}
		if err := count(tx, &done.Sends, `DELETE FROM sends WHERE id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}

// submissions erases submissions, their keys and their subjects.
func submissions(tx *sqldb.Tx, done *Erased, made, used string, args ...any) error {
	if _, err := tx.Exec(`DELETE FROM post_keys WHERE `+made, args...); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM subjects WHERE `+used, args...); err != nil {
		return err
	}
	return count(tx, &done.Posts, `DELETE FROM posts WHERE `+made, args...)
}

func count(tx *sqldb.Tx, into *int64, query string, args ...any) error {
	n, err := tx.Exec(query, args...)
	*into += n
	return err
}
