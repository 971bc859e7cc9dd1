package sqlbook

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/channels"
	"parley/sessions/sqldb"
)

const (
	requestLifetime = time.Hour
	offerLifetime   = time.Hour
	maxRequests     = 1000
	// codeAlphabet contains no characters that people confuse.
	codeAlphabet = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
	codeLength   = 8
)

// pairings stores who may talk to the bot, and who asks to.
type pairings struct {
	people              *people
	uncertainAdmissions sync.Map // by channels.Admission: the channels.Pairing that was written, for a commit whose answer was lost and that may have succeeded
}

const pairingFields = `person, chat, code, approved, owner, changed, expires, name`

// scanPairing reads a pairing from the columns pairingFields.
func scanPairing(scan func(...any) error) (p channels.Pairing, err error) {
	var approved, owner int
	var changed, expires int64
	err = scan(&p.Person, &p.Chat, &p.Code, &approved, &owner, &changed, &expires, &p.Name)
	restoreTexts(&p.Person, &p.Chat, &p.Name)
	p.Approved, p.Owner, p.At, p.Expires = approved != 0, owner != 0, timeOf(changed), timeOf(expires)
	return p, err
}

// getPairing returns the pairing of a person; false if there is none.
func getPairing(tx *sqldb.Tx, person string) (channels.Pairing, bool, error) {
	p, err := scanPairing(func(dest ...any) error {
		return tx.Get(`SELECT `+pairingFields+` FROM pairings WHERE person = ?`, textArgs(person), dest...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return channels.Pairing{}, false, nil
	}
	return p, err == nil, err
}

// putPairing inserts or replaces the pairing of a person.
func putPairing(tx *sqldb.Tx, p channels.Pairing) error {
	_, err := tx.Exec(`INSERT INTO pairings (`+pairingFields+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (person) DO UPDATE SET chat = excluded.chat, code = excluded.code, approved = excluded.approved,
		owner = excluded.owner, changed = excluded.changed, expires = excluded.expires, name = excluded.name`,
		sqldb.Text(p.Person), sqldb.Text(p.Chat), p.Code, toBit(p.Approved), toBit(p.Owner), toStamp(p.At), toStamp(p.Expires), toStoredName(p.Name))
	return err
}

// RequestPairing implements channels.Pairings: it returns the person's open request, or makes one.
func (ps *pairings) RequestPairing(ctx context.Context, person, chat string) (asked channels.Pairing, err error) {
	err = ps.people.write(ctx, func(tx *sqldb.Tx) error {
		now := time.Now()
		var found bool
		if err := ps.people.lockPairings(tx); err != nil {
			return err
		}
		if asked, found, err = getPairing(tx, person); err != nil {
			return err
		}
		if found && (asked.Approved || asked.Expires.After(now)) {
			return nil
		}
		if err := dropOldRequests(tx, now); err != nil {
			return err
		}
		asked = channels.Pairing{Person: person, Chat: chat, Code: newCode(), At: timeOf(toStamp(now)), Expires: timeOf(toStamp(now.Add(requestLifetime)))}
		return putPairing(tx, asked)
	})
	if err != nil {
		return channels.Pairing{}, fmt.Errorf("ask for admission: %w", err)
	}
	return asked, nil
}

// dropOldRequests deletes expired requests, and as many of the oldest others as necessary to stay within maxRequests after
// one more is added.
func dropOldRequests(tx *sqldb.Tx, now time.Time) error {
	if _, err := tx.Exec(`DELETE FROM pairings WHERE approved = 0 AND expires <= ?`, toStamp(now)); err != nil {
		return err
	}
	var open int
	if err := tx.Get(`SELECT count(*) FROM pairings WHERE approved = 0`, nil, &open); err != nil || open < maxRequests {
		return err
	}
	_, err := tx.Exec(`DELETE FROM pairings WHERE person IN (
		SELECT person FROM pairings WHERE approved = 0 ORDER BY expires, person LIMIT ?)`, open-maxRequests+1)
	return err
}

// newCode makes a code with 39 random bits: too many to guess within the code's hour.
func newCode() string {
	code := make([]byte, 0, codeLength)
	var random [2 * codeLength]byte
	for {
		_, _ = rand.Read(random[:]) // never fails
		for _, r := range random {
			if int(r) >= 256/len(codeAlphabet)*len(codeAlphabet) {
				continue // beyond the last whole multiple, which would favor some letters
			}
			if code = append(code, codeAlphabet[int(r)%len(codeAlphabet)]); len(code) == codeLength {
				return string(code)
			}
		}
	}
}

// normalizeCode returns a code in its stored form, no matter which case, spaces and dashes a person used.
func normalizeCode(code string) string {
	return strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
}

// Admit implements channels.Pairings: it uses up the code. A code that is said in a chat can only be an owner's
// code, because nobody may approve their own request.
func (ps *pairings) Admit(ctx context.Context, by channels.Admission) (channels.Pairing, error) {
	by.Code = normalizeCode(by.Code)
	if by.Code == "" {
		return channels.Pairing{}, channels.ErrNoCode
	}
	admitted, good, err := ps.admit(ctx, by)
	if good && err == nil {
		return admitted, nil
	}
	if good {
		ps.uncertainAdmissions.Store(by, admitted)
	}
	if known, ok := ps.committedEarlier(ctx, by); ok {
		return known, nil
	}
	if err != nil {
		return channels.Pairing{}, fmt.Errorf("admit: %w", err)
	}
	return channels.Pairing{}, channels.ErrNoCode
}

// admit uses up a code and stores the admission; good says whether the code was valid. If it returns good together
// with an error, the outcome of the commit is unknown, and the code may have been used up.
func (ps *pairings) admit(ctx context.Context, by channels.Admission) (admitted channels.Pairing, good bool, err error) {
	use := approveRequest
	if by.Person != "" {
		if known, err := ps.isOwnersCode(ctx, by); err != nil || !known {
			return channels.Pairing{}, false, err
		}
		use = makeOwner
	}
	err = ps.people.write(ctx, func(tx *sqldb.Tx) (err error) {
		if err := ps.people.lockPairings(tx); err != nil {
			return err
		}
		admitted, good, err = use(tx, by, time.Now())
		return err
	})
	return admitted, good, err
}

// committedEarlier reports whether an admission was stored by a commit in this process whose answer was lost, and
// returns the pairing. The person must still be paired in the way that that commit wrote. It returns true only once.
func (ps *pairings) committedEarlier(ctx context.Context, by channels.Admission) (channels.Pairing, bool) {
	was, ok := ps.uncertainAdmissions.Load(by)
	if !ok {
		return channels.Pairing{}, false
	}
	wrote := was.(channels.Pairing)
	is, found, err := ps.FindPairing(ctx, wrote.Person)
	if err != nil || !found || !is.At.Equal(wrote.At) || is.Owner != wrote.Owner {
		return channels.Pairing{}, false
	}
	ps.uncertainAdmissions.Delete(by)
	return is, true
}

// isOwnersCode reports whether a code is an owner's code for the channel. It only reads, so that guessing codes
// causes no writes.
func (ps *pairings) isOwnersCode(ctx context.Context, by channels.Admission) (bool, error) {
	channel, _, _ := strings.Cut(by.Person, ":")
	var n int
	err := ps.people.db.Read.QueryRowContext(ctx, `SELECT count(*) FROM offers WHERE channel = ? AND code = ? AND made > ?`,
		append(textArgs(channel, by.Code), toStamp(time.Now().Add(-offerLifetime)))...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look up an offer: %w", err)
	}
	return n > 0, nil
}

// approveRequest approves the request with the code; good is false if there is none.
func approveRequest(tx *sqldb.Tx, by channels.Admission, now time.Time) (channels.Pairing, bool, error) {
	p, err := scanPairing(func(dest ...any) error {
		return tx.Get(`SELECT `+pairingFields+` FROM pairings WHERE code = ? AND approved = 0 AND expires > ?`,
			append(textArgs(by.Code), toStamp(now)), dest...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	p.Approved, p.Code, p.At, p.Expires = true, "", timeOf(toStamp(now)), time.Time{}
	return p, true, putPairing(tx, p)
}

// makeOwner uses up an owner's code and makes the person who said it an owner; good is false if the code is not
// valid, or if the channel already has an owner.
func makeOwner(tx *sqldb.Tx, by channels.Admission, now time.Time) (p channels.Pairing, good bool, err error) {
	channel, _, _ := strings.Cut(by.Person, ":")
	n, err := tx.Exec(`DELETE FROM offers WHERE channel = ? AND code = ? AND made > ?`,
		append(textArgs(channel, by.Code), toStamp(now.Add(-offerLifetime)))...)
	if err != nil || n == 0 {
		return p, false, err
	}
	owners, prefix := 0, channel+":"
	err = tx.Get(`SELECT count(*) FROM pairings WHERE owner = 1 AND approved = 1 AND substr(person, 1, ?) = ?`,
		[]any{utf8.RuneCountInString(prefix), prefix}, &owners)
	if err != nil || owners > 0 {
		return p, false, err
	}
	p = channels.Pairing{Person: by.Person, Chat: by.Chat, Approved: true, Owner: true, At: timeOf(toStamp(now))}
	return p, true, putPairing(tx, p)
}

// OfferOwner implements channels.Pairings: it stores a new code, which is too long to guess.
func (ps *pairings) OfferOwner(ctx context.Context, channel string) (string, error) {
	code := rand.Text()
	_, err := ps.people.db.Exec(ctx, `INSERT INTO offers (channel, code, made) VALUES (?, ?, ?)
		ON CONFLICT (channel) DO UPDATE SET code = excluded.code, made = excluded.made`,
		append(textArgs(channel, code), toStamp(time.Now()))...)
	if err != nil {
		return "", fmt.Errorf("offer %s: %w", channel, err)
	}
	return code, nil
}

// StandingOffer implements channels.Pairings: it returns the channel's current owner's code, or a new one if there
// is none or it has expired.
func (ps *pairings) StandingOffer(ctx context.Context, channel string) (code string, err error) {
	now := time.Now()
	old := toStamp(now.Add(-offerLifetime))
	err = ps.people.db.Get(ctx, `INSERT INTO offers (channel, code, made) VALUES (?, ?, ?)
		ON CONFLICT (channel) DO UPDATE SET code = CASE WHEN offers.made > ? THEN offers.code ELSE excluded.code END,
		made = CASE WHEN offers.made > ? THEN offers.made ELSE excluded.made END RETURNING code`,
		append(textArgs(channel, rand.Text()), toStamp(now), old, old), &code)
	if err != nil {
		return "", fmt.Errorf("offer %s: %w", channel, err)
	}
	return code, nil
}

// Pairings implements channels.Pairings: it lists admissions and open requests, sorted by person.
func (ps *pairings) Pairings(ctx context.Context) ([]channels.Pairing, error) {
	return queryAll(ctx, ps.people.db.Read, scanPairing, `SELECT `+pairingFields+` FROM pairings WHERE approved = 1 OR expires > ? ORDER BY person`, toStamp(time.Now()))
}

// PairingOf returns a person's admission or open request; the zero Pairing if there is neither.
func (ps *pairings) PairingOf(ctx context.Context, person string) (channels.Pairing, error) {
	found, err := queryAll(ctx, ps.people.db.Read, scanPairing, `SELECT `+pairingFields+` FROM pairings WHERE person = ? AND (approved = 1 OR expires > ?)`,
		sqldb.Text(person), toStamp(time.Now()))
	if err != nil || len(found) == 0 {
		return channels.Pairing{}, err
	}
	return found[0], nil
}

// FindPairing implements channels.Pairings: a single query reads a person's admission and account.
func (ps *pairings) FindPairing(ctx context.Context, person string) (p channels.Pairing, known bool, err error) {
	p, err = ps.people.pairingCache.get(person, func() (channels.Pairing, bool, error) {
		found, err := ps.readPairing(ctx, person)
		return found, true, err
	})
	if err != nil {
		return channels.Pairing{}, false, fmt.Errorf("look up pairing: %w", err)
	}
	return p, p.Approved, nil
}

// readPairing reads a person's admission, if there is one, and their account.
func (ps *pairings) readPairing(ctx context.Context, person string) (channels.Pairing, error) {
	const query = `SELECT coalesce(p.person, ''), coalesce(p.chat, ''), coalesce(p.code, ''), coalesce(p.approved, 0), coalesce(p.owner, 0),
			coalesce(p.changed, 0), coalesce(p.expires, 0), coalesce(p.name, ''), coalesce(l.account, who.id)
		FROM (SELECT CAST(? AS TEXT) AS id) AS who
		LEFT JOIN pairings p ON p.person = who.id AND p.approved = 1
		LEFT JOIN links l ON l.person = who.id`
	var account string
	p, err := scanPairing(func(dest ...any) error {
		args, dest := textArgs(person), append(dest, &account)
		if ps.people.db.IsPostgres() { // on PostgreSQL, it shares a round trip with other statements from the channel
			_, err := ps.people.db.Group(ctx, query, args, dest...)
			return err
		}
		return ps.people.db.Read.QueryRowContext(ctx, query, args...).Scan(dest...)
	})
	restoreTexts(&account)
	p.Account = account
	return p, err
}

// Revoke implements channels.Pairings: it deletes a person's admission or request.
func (ps *pairings) Revoke(ctx context.Context, person string) error {
	defer ps.people.pairingCache.clear()
	n, err := ps.people.db.Exec(ctx, `DELETE FROM pairings WHERE person = ?`, textArgs(person)...)
	if err != nil {
		return fmt.Errorf("revoke: %w", err)
	}
	if n == 0 {
		return channels.ErrNoCode
	}
	return nil
}

// schemaNames adds people's names on their platforms, which the owner's lists show.
const schemaNames = `
ALTER TABLE pairings ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE chats ADD COLUMN name TEXT NOT NULL DEFAULT ''`

// SetName implements channels.Pairings: it updates the person's name if it has changed.
func (ps *pairings) SetName(ctx context.Context, person, name string) error {
	kept := toStoredName(name)
	defer ps.people.pairingCache.clear()
	if _, err := ps.people.db.Exec(ctx, `UPDATE pairings SET name = ? WHERE person = ? AND name <> ?`, kept, sqldb.Text(person), kept); err != nil {
		return fmt.Errorf("note a name: %w", err)
	}
	return nil
}

// eraseName deletes the name in a person's pairing.
func eraseName(tx *sqldb.Tx, person string) error {
	_, err := tx.Exec(`UPDATE pairings SET name = '' WHERE person = ? AND name <> ''`, sqldb.Text(person))
	return err
}
