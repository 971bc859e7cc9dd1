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

// links stores which people are the same human.
type links struct{ people *people }

// schemaPeople adds the links between people, and what agents remember beyond a conversation.
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

const linkCodeLifetime = 10 * time.Minute

// OfferLink implements channels.Links: it returns the code with the same Cause, or makes one.
func (ls *links) OfferLink(ctx context.Context, o channels.LinkRequest) (code string, err error) {
	made := strings.ToLower(rand.Text()[:10])
	now := time.Now()
	err = ls.people.db.Write(ctx, func(tx *sqldb.Tx) error {
		err := tx.Get(`SELECT code FROM link_codes WHERE person = ? AND cause = ? AND expires > ?`, append(textArgs(o.Person, o.Cause), toStamp(now)), &code)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		code = made
		if _, err := tx.Exec(`DELETE FROM link_codes WHERE person = ? OR expires <= ?`, sqldb.Text(o.Person), toStamp(now)); err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO link_codes (code, person, chat, cause, expires) VALUES (?, ?, ?, ?, ?)`,
			append(textArgs(code, o.Person, o.Chat, o.Cause), toStamp(now.Add(linkCodeLifetime)))...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("offer a link: %w", err)
	}
	return code, nil
}

// Link implements channels.Links: it uses up the code and joins the two people's accounts.
func (ls *links) Link(ctx context.Context, l channels.Linking) (all []channels.Link, err error) {
	refused := false
	err = ls.people.write(ctx, func(tx *sqldb.Tx) error {
		all, refused = nil, false
		if err := ls.people.lockPeople(tx); err != nil {
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
			return nil // the command has already been carried out, and its answer was lost
		}
		var first, chat string
		err = tx.Get(`SELECT person, chat FROM link_codes WHERE code = ? AND expires > ? AND person <> ?`,
			[]any{sqldb.Text(l.Code), toStamp(time.Now()), sqldb.Text(l.Person)}, &first, &chat)
		if errors.Is(err, sql.ErrNoRows) {
			refused = true
			return nil
		}
		if err != nil {
			return err
		}
		restoreTexts(&first, &chat)
		all, err = joinAccounts(tx, l, account, first, chat)
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

// joinAccounts moves all people in an account, and its memory, to the account of first, the person who made the
// code.
func joinAccounts(tx *sqldb.Tx, l channels.Linking, account, first, chat string) ([]channels.Link, error) {
	if _, err := tx.Exec(`DELETE FROM link_codes WHERE code = ?`, sqldb.Text(l.Code)); err != nil {
		return nil, err
	}
	to, err := accountOf(tx, first)
	if err != nil {
		return nil, err
	}
	const put = `INSERT INTO links (person, account, chat, cause, linked) VALUES (?, ?, ?, ?, ?) ON CONFLICT (person) DO UPDATE SET chat = excluded.chat`
	now := toStamp(time.Now())
	if _, err := tx.Exec(put, append(textArgs(first, to, chat, ""), now)...); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(`UPDATE links SET account = ? WHERE account = ?`, textArgs(to, account)...); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(put+`, cause = excluded.cause, account = excluded.account`, append(textArgs(l.Person, to, l.Chat, l.Cause), now)...); err != nil {
		return nil, err
	}
	if to != account {
		if err := mergeMemories(tx, account, to); err != nil {
			return nil, err
		}
	}
	return linkedTo(tx, to)
}

// Unlink implements channels.Links: it separates the person, and both sides keep the memories.
func (ls *links) Unlink(ctx context.Context, person string) (others []channels.Link, err error) {
	err = ls.people.write(ctx, func(tx *sqldb.Tx) error {
		if err := ls.people.lockPeople(tx); err != nil {
			return err
		}
		others, err = splitAccount(tx, person, true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("part people: %w", err)
	}
	return others, nil
}

// splitAccount separates a person from the others in their account, and returns those. If keep is true, both sides
// keep the memories; keep is false if the caller has deleted them.
func splitAccount(tx *sqldb.Tx, person string, keep bool) (others []channels.Link, err error) {
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
	left := account // the person whose name the others' account has from now on
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
	if _, err := tx.Exec(`UPDATE links SET account = ? WHERE account = ?`, textArgs(left, account)...); err != nil {
		return nil, err
	}
	if len(others) == 1 { // a person who is alone has no link
		if _, err := tx.Exec(`DELETE FROM links WHERE person = ?`, sqldb.Text(others[0].Person)); err != nil {
			return nil, err
		}
	}
	return others, nil
}

// LinkedWith implements channels.Links: it lists all people in the person's account.
func (ls *links) LinkedWith(ctx context.Context, person string) ([]channels.Link, error) {
	all, err := queryAll(ctx, ls.people.db.Read, scanLink, `SELECT person, account, chat, cause FROM links
		WHERE account = (SELECT account FROM links WHERE person = ?) ORDER BY linked, person`, sqldb.Text(person))
	if err != nil {
		return nil, fmt.Errorf("list who is linked: %w", err)
	}
	return all, nil
}

// AllLinks implements channels.Links: one query reads all links.
func (ls *links) AllLinks(ctx context.Context) (map[string][]string, error) {
	all, err := queryAll(ctx, ls.people.db.Read, scanLink, `SELECT person, account, chat, cause FROM links ORDER BY linked, person`)
	if err != nil {
		return nil, fmt.Errorf("list all who are linked: %w", err)
	}
	accounts := map[string][]string{}
	for _, l := range all {
		accounts[l.Account] = append(accounts[l.Account], l.Person)
	}
	others := make(map[string][]string, len(all))
	for _, l := range all {
		others[l.Person] = slices.DeleteFunc(slices.Clone(accounts[l.Account]), func(p string) bool { return p == l.Person })
	}
	return others, nil
}

func scanLink(scan func(...any) error) (l channels.Link, err error) {
	err = scan(&l.Person, &l.Account, &l.Chat, &l.Cause)
	restoreTexts(&l.Person, &l.Account, &l.Chat, &l.Cause)
	return l, err
}

// Account returns the person under whose name a person is counted: the person themselves if they have no links.
func (ls *links) Account(ctx context.Context, person string) (string, error) {
	found, err := queryAll(ctx, ls.people.db.Read, func(scan func(...any) error) (account string, err error) {
		err = scan(&account)
		restoreTexts(&account)
		return account, err
	}, `SELECT account FROM links WHERE person = ?`, textArgs(person)...)
	if err != nil {
		return "", fmt.Errorf("look for whose account it is: %w", err)
	}
	if len(found) == 0 {
		return person, nil
	}
	return found[0], nil
}

// linkedTo lists the people who share an account.
func linkedTo(tx *sqldb.Tx, account string) ([]channels.Link, error) {
	rows, err := tx.Query(`SELECT person, account, chat, cause FROM links WHERE account = ? ORDER BY linked, person`, textArgs(account)...)
	if err != nil {
		return nil, err
	}
	return readAll(rows, scanLink)
}

// erasePeople deletes the memories of a person, adding their number to erased, and the person's links.
func erasePeople(tx *sqldb.Tx, erased *int64, person string) error {
	account, err := accountOf(tx, person)
	if err != nil {
		return err
	}
	if err := execCounting(tx, erased, `DELETE FROM memories WHERE scope = 'person' AND owner = ?`, textArgs(account)...); err != nil {
		return err
	}
	if _, err := splitAccount(tx, person, false); err != nil {
		return err
	}
	_, err = tx.Exec(`DELETE FROM link_codes WHERE person = ?`, textArgs(person)...)
	return err
}
