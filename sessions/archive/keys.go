package archive

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"parley/sessions/sqldb"
)

// The kinds of keys.
const (
	keyOfPerson  = "person"
	keyOfSession = "session"
)

// pseudonyms makes the pseudonyms of a page of lines, within its transaction.
type pseudonyms struct {
	tx       *sqldb.Tx
	postgres bool
	known    map[[2]string]string // the keys, by kind and subject
	erased   map[string]string    // the keys of sessions that were erased, which are in memory alone until the file is full
}

// person returns the pseudonym of a person, or of the API token of a program.
func (p *pseudonyms) person(who string) (string, error) { return p.name(keyOfPerson, who, who) }

// session returns the pseudonym of a session's key.
func (p *pseudonyms) session(key string) (string, error) { return p.name(keyOfSession, key, key) }

// within returns the pseudonym of an id of something that belongs to a session, or else to a person.
func (p *pseudonyms) within(session, person, id string) (string, error) {
	if session != "" {
		return p.name(keyOfSession, session, "id\x00"+id)
	}
	return p.name(keyOfPerson, person, "id\x00"+id)
}

// name returns the pseudonym of a text, made with the key of its subject. It is "" if the text or its subject is.
func (p *pseudonyms) name(kind, subject, text string) (string, error) {
	if subject == "" || text == "" {
		return "", nil
	}
	key, err := p.key(kind, subject)
	if err != nil {
		return "", err
	}
	sum := hmac.New(sha256.New, []byte(key))
	sum.Write([]byte(text))
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// key returns the key of a subject, and makes one if there is none. The key of a session that was erased isn't stored:
// nobody could delete it anymore.
func (p *pseudonyms) key(kind, subject string) (string, error) {
	if key, known := p.known[[2]string{kind, subject}]; known {
		return key, nil
	}
	// In each statement the update changes nothing but locks the row, so that an erasure waits for this transaction.
	fresh, key := rand.Text(), ""
	var err error
	if kind == keyOfPerson {
		err = p.tx.Get(`INSERT INTO audit_keys (kind, subject, secret) VALUES (?, ?, ?)
			ON CONFLICT (kind, subject) DO UPDATE SET secret = audit_keys.secret RETURNING secret`, []any{kind, sqldb.Text(subject), fresh}, &key)
	} else {
		lock := ""
		if p.postgres {
			lock = " FOR KEY SHARE" // as a foreign key does: the session can't be erased meanwhile
		}
		err = p.tx.Get(`INSERT INTO audit_keys (kind, subject, secret) SELECT CAST(? AS TEXT), key, CAST(? AS TEXT) FROM sessions WHERE key = ?`+lock+`
			ON CONFLICT (kind, subject) DO UPDATE SET secret = audit_keys.secret RETURNING secret`, []any{kind, fresh, sqldb.Text(subject)}, &key)
		if errors.Is(err, sql.ErrNoRows) {
			if p.erased[subject] == "" {
				p.erased[subject] = fresh
			}
			key, err = p.erased[subject], nil
		}
	}
	if err != nil {
		return "", err
	}
	p.known[[2]string{kind, subject}] = key
	return key, nil
}

// ForgetPerson deletes the key of a person's pseudonyms. It is called once no record of the audit names the person
// anymore, or else the key might be made again. It returns how many keys were deleted.
func ForgetPerson(tx *sqldb.Tx, person string) (int64, error) { return forget(tx, keyOfPerson, person) }

// A Naming is an SQL query that returns 1 if the database still names a person outside of the archive, or else 0. Each ? in
// it stands for the person.
type Naming string

// peoplePerQuery is how many people one query looks at.
const peoplePerQuery = 200

// ForgetGone deletes the keys of all people whom nothing names anymore. Programs, which have a key by the name of their API
// token, keep it. forgotten is called in each transaction that has deleted one. If ForgetGone is interrupted, the next call
// deletes the rest.
func (t Table) ForgetGone(ctx context.Context, by Naming, forgotten func(*sqldb.Tx) error) error {
	for after := ""; ; {
		gone, last, err := t.gone(ctx, by, after)
		if err != nil || last == "" {
			return wrap("look for keys of pseudonyms that nobody needs", err)
		}
		for _, person := range gone {
			if err := t.DB.Write(ctx, func(tx *sqldb.Tx) error { return forgetIfGone(tx, person, by, forgotten) }); err != nil {
				return wrap("delete the key of somebody who is gone", err)
			}
		}
		after = last
	}
}

// gone looks at the next people who have keys, and returns those whom nothing names anymore, in the form of the database,
// and the last one at whom it has looked; "" if there are no more.
func (t Table) gone(ctx context.Context, by Naming, after string) (gone []string, last string, err error) {
	found, err := t.DB.Read.QueryContext(ctx, "SELECT subject, ("+strings.ReplaceAll(string(by), "?", "page.subject")+`) FROM
		(SELECT subject FROM audit_keys WHERE kind = ? AND subject > ? AND subject LIKE '%:%' ORDER BY subject LIMIT ?) AS page ORDER BY subject`, keyOfPerson, after, peoplePerQuery)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var named bool
		if err := found.Scan(&last, &named); err != nil {
			return nil, "", err
		}
		if !named {
			gone = append(gone, last)
		}
	}
	return gone, last, found.Err()
}

// args returns the arguments of the query for a person, in the form of the database.
func (n Naming) args(person string) []any {
	return slices.Repeat([]any{person}, strings.Count(string(n), "?"))
}

// forgetIfGone deletes the key of a person, in the form of the database, if still nothing names the person. Whoever makes a
// pseudonym of the person has committed by then, or makes a new key.
func forgetIfGone(tx *sqldb.Tx, person string, by Naming, forgotten func(*sqldb.Tx) error) error {
	// The update changes nothing but locks the row.
	if _, err := tx.Exec("UPDATE audit_keys SET secret = secret WHERE kind = ? AND subject = ?", keyOfPerson, person); err != nil {
		return err
	}
	var named int64
	if err := tx.Get(string(by), by.args(person), &named); err != nil || named != 0 {
		return err
	}
	if n, err := ForgetPerson(tx, sqldb.Untext(person)); err != nil || n == 0 {
		return err
	}
	return forgotten(tx)
}

// ForgetSession deletes the key of a session's pseudonyms, once the session is erased. It returns how many keys were
// deleted.
func ForgetSession(tx *sqldb.Tx, key string) (int64, error) { return forget(tx, keyOfSession, key) }

func forget(tx *sqldb.Tx, kind, subject string) (int64, error) {
	n, err := tx.Exec("DELETE FROM audit_keys WHERE kind = ? AND subject = ?", kind, sqldb.Text(subject))
	return n, wrap("delete a key of pseudonyms", err)
}
