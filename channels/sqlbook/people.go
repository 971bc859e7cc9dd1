package sqlbook

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// schemaNames is what platforms call people, for those who read a list of them.
const schemaNames = `
ALTER TABLE pairings ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN name TEXT NOT NULL DEFAULT ''`

// longestName is how much of a name is kept.
const longestName = 128 // bytes

// nameText is a name as it is kept.
func nameText(name string) string {
	if len(name) > longestName {
		name = strings.ToValidUTF8(name[:longestName], "")
	}
	return sqldb.Text(name)
}

// SetName implements channels.Pairings.
func (b *Book) SetName(ctx context.Context, person, name string) error {
	kept := nameText(name)
	if _, err := b.db.Exec(ctx, `UPDATE pairings SET name = ? WHERE person = ? AND name <> ?`, kept, sqldb.Text(person), kept); err != nil {
		return fmt.Errorf("note a name: %w", err)
	}
	return nil
}

// eraseName forgets what a person was called.
func eraseName(tx *sqldb.Tx, person string) error {
	for _, query := range []string{
		`UPDATE pairings SET name = '' WHERE person = ? AND name <> ''`,
		`UPDATE chats SET name = '', person = '' WHERE person = ?`,
	} {
		if _, err := tx.Exec(query, sqldb.Text(person)); err != nil {
			return err
		}
	}
	return nil
}

// schemaPeople is which people are one, and what agents remember beyond a conversation.
const schemaPeople = `
CREATE TABLE links (
	person  TEXT PRIMARY KEY,
	account TEXT NOT NULL,
	chat    TEXT NOT NULL,
	cause   TEXT NOT NULL,
	linked  BIGINT NOT NULL
);
CREATE INDEX links_by_account ON links (account);
CREATE TABLE link_codes (
	code    TEXT PRIMARY KEY,
	person  TEXT NOT NULL,
	chat    TEXT NOT NULL,
	cause   TEXT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE TABLE memories (
	scope     TEXT NOT NULL,
	owner     TEXT NOT NULL,
	content   TEXT NOT NULL,
	untrusted INTEGER NOT NULL,
	calls     TEXT NOT NULL,
	changed   BIGINT NOT NULL,
	PRIMARY KEY (scope, owner)
)`

// lockPeople admits one transaction at a time that changes links or memories.
func (b *Book) lockPeople(tx *sqldb.Tx) error {
	if !b.db.Postgres() {
		return nil
	}
	_, err := tx.Exec("LOCK TABLE links, memories IN SHARE ROW EXCLUSIVE MODE")
	return err
}

const linkCodeLives = 10 * time.Minute

// OfferLink implements channels.Links.
func (b *Book) OfferLink(ctx context.Context, o channels.Offer) (code string, err error) {
	made := strings.ToLower(rand.Text()[:10])
	now := time.Now()
	err = b.db.Write(ctx, func(tx *sqldb.Tx) error {
		err := tx.Get(`SELECT code FROM link_codes WHERE person = ? AND cause = ? AND expires > ?`, append(texts(o.Person, o.Cause), stamp(now)), &code)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		code = made
		if _, err := tx.Exec(`DELETE FROM link_codes WHERE person = ? OR expires <= ?`, sqldb.Text(o.Person), stamp(now)); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO link_codes (code, person, chat, cause, expires) VALUES (?, ?, ?, ?, ?)`,
			append(texts(code, o.Person, o.Chat, o.Cause), stamp(now.Add(linkCodeLives)))...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("offer a link: %w", err)
	}
	return code, nil
}

// Link implements channels.Links.
func (b *Book) Link(ctx context.Context, l channels.Linking) (all []channels.Link, err error) {
	refused := false
	err = b.db.Write(ctx, func(tx *sqldb.Tx) error {
		all, refused = nil, false
		if err := b.lockPeople(tx); err != nil {
			return err
		}
		account, err := accountOf(tx, l.Person)
		if err != nil {
			return err
		}
		if all, err = linkedTo(tx, account); err != nil {
			return err
		}
		if slices.ContainsFunc(all, func(o channels.Link) bool { return o.Person == l.Person && o.Cause == l.Cause }) {
			return nil // it was done, and the answer was lost
		}
		var first, chat string
		err = tx.Get(`SELECT person, chat FROM link_codes WHERE code = ? AND expires > ? AND person <> ?`,
			[]any{sqldb.Text(l.Code), stamp(time.Now()), sqldb.Text(l.Person)}, &first, &chat)
		if errors.Is(err, sql.ErrNoRows) {
			refused = true
			return nil
		}
		if err != nil {
			return err
		}
		untext(&first, &chat)
		all, err = join(tx, l, account, first, chat)
		return err
	})
	if err == nil && refused {
		err = channels.ErrNoCode
	}
	if err != nil {
		return nil, fmt.Errorf("link people: %w", err)
	}
	return all, nil
}

// join makes one of the people of an account and of whoever made a code.
func join(tx *sqldb.Tx, l channels.Linking, account, first, chat string) ([]channels.Link, error) {
	if _, err := tx.Exec(`DELETE FROM link_codes WHERE code = ?`, sqldb.Text(l.Code)); err != nil {
		return nil, err
	}
	to, err := accountOf(tx, first)
	if err != nil {
		return nil, err
	}
	const put = `INSERT INTO links (person, account, chat, cause, linked) VALUES (?, ?, ?, ?, ?) ON CONFLICT (person) DO UPDATE SET chat = excluded.chat`
	now := stamp(time.Now())
	if _, err := tx.Exec(put, append(texts(first, to, chat, ""), now)...); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(`UPDATE links SET account = ? WHERE account = ?`, texts(to, account)...); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(put+`, cause = excluded.cause, account = excluded.account`, append(texts(l.Person, to, l.Chat, l.Cause), now)...); err != nil {
		return nil, err
	}
	if to != account {
		if err := mergeMemories(tx, account, to); err != nil {
			return nil, err
		}
	}
	return linkedTo(tx, to)
}

// Unlink implements channels.Links.
func (b *Book) Unlink(ctx context.Context, person string) (others []channels.Link, err error) {
	err = b.db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := b.lockPeople(tx); err != nil {
			return err
		}
		others, err = part(tx, person, true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("part people: %w", err)
	}
	return others, nil
}

// part parts a person from those with whom they are one, and returns these. With keep each
// side has what was remembered; else the others have nothing of it.
func part(tx *sqldb.Tx, person string, keep bool) (others []channels.Link, err error) {
	account, err := accountOf(tx, person)
	if err != nil {
		return nil, err
	}
	if others, err = linkedTo(tx, account); err != nil {
		return nil, err
	}
	others = slices.DeleteFunc(others, func(l channels.Link) bool { return l.Person == person })
	if len(others) == 0 {
		return nil, nil
	}
	left := account // whose account is that of the others from now on
	if account == person {
		left = others[0].Person
	}
	if keep {
		from, to := account, person
		if account == person {
			from, to = person, left
		}
		if err := copyMemories(tx, from, to); err != nil {
			return nil, err
		}
	}
	if _, err := tx.Exec(`DELETE FROM links WHERE person = ?`, sqldb.Text(person)); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(`UPDATE links SET account = ? WHERE account = ?`, texts(left, account)...); err != nil {
		return nil, err
	}
	if len(others) == 1 { // who is alone has no link
		if _, err := tx.Exec(`DELETE FROM links WHERE person = ?`, sqldb.Text(others[0].Person)); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// Linked implements channels.Links.
func (b *Book) Linked(ctx context.Context, person string) ([]channels.Link, error) {
	all, err := list(ctx, b.db.Read, scanLink, `SELECT person, account, chat, cause FROM links
		WHERE account = (SELECT account FROM links WHERE person = ?) ORDER BY linked, person`, sqldb.Text(person))
	if err != nil {
		return nil, fmt.Errorf("list who is linked: %w", err)
	}
	return all, nil
}

func scanLink(scan func(...any) error) (l channels.Link, err error) {
	err = scan(&l.Person, &l.Account, &l.Chat, &l.Cause)
	untext(&l.Person, &l.Account, &l.Chat, &l.Cause)
	return l, err
}

// Account is the person in whose name another is counted: themselves if they are linked to
// nobody.
func (b *Book) Account(ctx context.Context, person string) (string, error) {
	found, err := list(ctx, b.db.Read, func(scan func(...any) error) (account string, err error) {
		err = scan(&account)
		untext(&account)
		return account, err
	}, `SELECT account FROM links WHERE person = ?`, texts(person)...)
	if err != nil {
		return "", fmt.Errorf("look for whose account it is: %w", err)
	}
	if len(found) == 0 {
		return person, nil
	}
	return found[0], nil
}

// accountOf is the person on whose account another is; themselves if they are linked to
// nobody.
func accountOf(tx *sqldb.Tx, person string) (string, error) {
	var account string
	err := tx.Get(`SELECT account FROM links WHERE person = ?`, texts(person), &account)
	if errors.Is(err, sql.ErrNoRows) {
		return person, nil
	}
	untext(&account)
	return account, err
}

// linkedTo lists who is on an account.
func linkedTo(tx *sqldb.Tx, account string) (all []channels.Link, err error) {
	rows, err := tx.Query(`SELECT person, account, chat, cause FROM links WHERE account = ? ORDER BY linked, person`, texts(account)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		l, err := scanLink(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

// erasePeople forgets what is remembered of a person, and with whom they are one.
func erasePeople(tx *sqldb.Tx, done *Erased, person string) error {
	account, err := accountOf(tx, person)
	if err != nil {
		return err
	}
	if err := count(tx, &done.Memories, `DELETE FROM memories WHERE scope = 'person' AND owner = ?`, texts(account)...); err != nil {
		return err
	}
	if _, err := part(tx, person, false); err != nil {
		return err
	}
	_, err = tx.Exec(`DELETE FROM link_codes WHERE person = ?`, texts(person)...)
	return err
}
