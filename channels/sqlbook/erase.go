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

// An Erasure says what the book is to forget. Who is paired stays: that is no
// word that anybody said.
type Erasure struct {
	// Sends are messages by id, whatever has become of them: they are on no bus
	// any more.
	Sends []string
	// Waiting are the messages that were on a bus at Asked, by id: what was begun
	// before and is not among them nobody will go on with, so it goes. The zero
	// Asked is that nobody has looked.
	Waiting []string
	Asked   time.Time
	// At are addresses: what was sent there and is through goes.
	At []bus.Address
	// Sessions are keys: that the bot was spoken to in their chats goes.
	Sessions []string
	// Person is CHANNEL:USER: what they are called goes. "" is nobody.
	Person string
	// Origin is a token or a webhook: what it handed in goes. "" is none.
	Origin string
	// Before is a time: what was begun earlier and is through goes.
	Before time.Time
}

// Erased counts what was erased.
type Erased struct {
	Sends int64 `json:"sends"`
	Posts int64 `json:"posts"`
	Chats int64 `json:"chats"`
}

// What was sent and is through: nothing of it is still to be done.
const through = ` AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.send = sends.id AND state IN ('queued', 'sending'))`

// Erase forgets, and leaves nothing of it in the book's own files, nor of any
// text that was sent before.
func (b *Book) Erase(ctx context.Context, what Erasure) (done Erased, err error) {
	err = b.db.Write(ctx, func(tx *sqldb.Tx) error {
		done = Erased{}
		return what.erase(tx, &done)
	})
	if err == nil {
		err = b.db.Purge(ctx, "sends", "parts", "posts", "post_keys", "subjects", "chats", "pairings")
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
		err := sends(tx, done, `channel = ? AND chat = ? AND thread = ?`+through, texts(at.Channel, at.Chat, at.Thread)...)
		if err != nil {
			return err
		}
	}
	for _, key := range what.Sessions {
		if err := count(tx, &done.Chats, `DELETE FROM chats WHERE session = ?`, texts(key)...); err != nil {
			return err
		}
	}
	if what.Person != "" {
		if err := eraseName(tx, what.Person); err != nil {
			return err
		}
	}
	if what.Origin != "" {
		if err := posts(tx, done, `origin = ?`, `origin = ?`, texts(what.Origin)...); err != nil {
			return err
		}
	}
	if what.Before.IsZero() {
		return nil
	}
	if err := sends(tx, done, `begun < ?`+through, stamp(what.Before)); err != nil {
		return err
	}
	return posts(tx, done, `made < ?`, `used < ?`, stamp(what.Before))
}

// stray erases what was begun and is on no bus any more.
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

// remove deletes messages, as the table has their ids, with their parts.
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

// posts erases what was handed in, by which keys, and about what.
func posts(tx *sqldb.Tx, done *Erased, made, used string, args ...any) error {
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
