package sqlbook

import (
	"context"
	"database/sql"
	"errors"

	"parley/channels"
	"parley/sessions/sqldb"
)

// people is the database of what is recorded about people: pairings, links and memories. It caches what is read for
// each message.
type people struct {
	db *sqldb.DB

	// These are nil if other processes may write to the database.
	pairingCache *readCache[string, channels.Pairing]      // by person: what FindPairing has found
	memoryCache  *readCache[[2]string, [2]channels.Memory] // by agent and person: what MemoriesFor has found
}

// write does what sqldb.DB.Write does, for a transaction that may write to pairings, links or memories. It clears
// the caches once the transaction has ended, no matter how: SQLite's writer answers only then.
func (p *people) write(ctx context.Context, fn func(*sqldb.Tx) error) error {
	defer p.pairingCache.clear()
	defer p.memoryCache.clear()
	return p.db.Write(ctx, fn)
}

// lockPairings makes transactions that change pairings run one after another, so that what a transaction reads from
// them stays true until it commits. Reads outside of transactions do not wait. SQLite has only one writer anyway.
func (p *people) lockPairings(tx *sqldb.Tx) error {
	if !p.db.IsPostgres() {
		return nil
	}
	_, err := tx.Exec("LOCK TABLE pairings IN SHARE ROW EXCLUSIVE MODE")
	return err
}

// lockPeople makes transactions that change links or memories run one after another.
func (p *people) lockPeople(tx *sqldb.Tx) error {
	if !p.db.IsPostgres() {
		return nil
	}
	_, err := tx.Exec("LOCK TABLE links, memories IN SHARE ROW EXCLUSIVE MODE")
	return err
}

// accountOf returns the name of a person's account: the person themselves if they have no links.
func accountOf(tx *sqldb.Tx, person string) (string, error) {
	var account string
	err := tx.Get(`SELECT account FROM links WHERE person = ?`, textArgs(person), &account)
	if errors.Is(err, sql.ErrNoRows) {
		return person, nil
	}
	restoreTexts(&account)
	return account, err
}
