package sqlbook

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/sessions/sqldb"
)

// proposals stores what agents propose to remember.
type proposals struct{ people *people }

// schemaProposals adds the tables for proposals, and for the entry of each session up to which a model was asked
// for proposals.
const schemaProposals = `
CREATE TABLE proposals (
	id      TEXT PRIMARY KEY,
	session TEXT NOT NULL,
	covers  BIGINT NOT NULL,
	n       INTEGER NOT NULL,
	cause   TEXT NOT NULL,
	scope   TEXT NOT NULL,
	owner   TEXT NOT NULL,
	person  TEXT NOT NULL,
	place   TEXT NOT NULL,
	content TEXT NOT NULL,
	state   TEXT NOT NULL,
	made    BIGINT NOT NULL,
	expires BIGINT NOT NULL
);
CREATE INDEX proposals_by_person ON proposals (person);
CREATE INDEX proposals_by_session ON proposals (session, covers);
CREATE INDEX proposals_by_owner ON proposals (scope, owner);
CREATE INDEX proposals_by_age ON proposals (made);
CREATE INDEX proposals_by_expiry ON proposals (expires);
CREATE TABLE proposal_rounds (
	session TEXT PRIMARY KEY,
	covers  BIGINT NOT NULL,
	told    INTEGER NOT NULL
)`

const (
	// keepRefusedProposals is how long a refused proposal is remembered, so that it is not proposed again.
	keepRefusedProposals = 365 * 24 * time.Hour
	// proposalIDLength is the length of a proposal's id. People type it.
	proposalIDLength = 6
)

// LastProposed implements channels.Proposals.
func (ps *proposals) LastProposed(ctx context.Context, session string) (covers int64, told bool, err error) {
	n := 0
	err = ps.people.db.Read.QueryRowContext(ctx, `SELECT covers, told FROM proposal_rounds WHERE session = ?`, textArgs(session)...).Scan(&covers, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("read what was proposed last: %w", err)
	}
	return covers, n != 0, nil
}

// StoreProposals implements channels.Proposals: the round and its proposals are one write.
func (ps *proposals) StoreProposals(ctx context.Context, session string, covers int64, all []channels.Proposal) error {
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = strings.ToLower(rand.Text()[:proposalIDLength])
	}
	now := time.Now()
	err := ps.people.db.Write(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(`INSERT INTO proposal_rounds (session, covers, told) VALUES (?, ?, ?)
			ON CONFLICT (session) DO UPDATE SET covers = excluded.covers, told = excluded.told WHERE proposal_rounds.covers < excluded.covers`,
			sqldb.Text(session), covers, toBit(len(all) == 0))
		if err != nil || n == 0 {
			return err
		}
		if _, err := tx.Exec(`DELETE FROM proposals WHERE expires <= ?`, toStamp(now)); err != nil {
			return err
		}
		for i, p := range all {
			if _, err := tx.Exec(`INSERT INTO proposals (id, session, cause, scope, owner, person, place, content, state, covers, n, made, expires)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				append(textArgs(ids[i], session, p.Cause, p.Scope, p.Owner, p.Person, p.At.String(), p.Text, channels.ProposalOpen),
					covers, i, toStamp(now), toStamp(p.Expires))...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store what is proposed: %w", err)
	}
	return nil
}

// NoteProposalsTold implements channels.Proposals.
func (ps *proposals) NoteProposalsTold(ctx context.Context, session string, covers int64) error {
	err := ps.people.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`UPDATE proposal_rounds SET told = 1 WHERE session = ? AND covers = ?`, sqldb.Text(session), covers)
		return err
	})
	if err != nil {
		return fmt.Errorf("note that somebody was told of proposals: %w", err)
	}
	return nil
}

// ForgetProposals implements channels.Proposals.
func (ps *proposals) ForgetProposals(ctx context.Context, session string) error {
	var n int64
	err := ps.people.db.Write(ctx, func(tx *sqldb.Tx) (err error) {
		if n, err = tx.Exec(`DELETE FROM proposals WHERE session = ?`, sqldb.Text(session)); err != nil {
			return err
		}
		_, err = tx.Exec(`DELETE FROM proposal_rounds WHERE session = ?`, sqldb.Text(session))
		return err
	})
	if err == nil && n > 0 {
		err = ps.people.db.Purge(ctx, "proposals")
	}
	if err != nil {
		return fmt.Errorf("forget what was proposed: %w", err)
	}
	return nil
}

const selectProposals = `SELECT id, session, covers, cause, scope, owner, person, place, content, state, made, expires FROM proposals `

// ProposalsFrom implements channels.Proposals.
func (ps *proposals) ProposalsFrom(ctx context.Context, session string, covers int64) ([]channels.Proposal, error) {
	return ps.list(ctx, `WHERE session = ? AND covers = ? ORDER BY n`, sqldb.Text(session), covers)
}

// ProposalsTo implements channels.Proposals.
func (ps *proposals) ProposalsTo(ctx context.Context, person string) ([]channels.Proposal, error) {
	return ps.list(ctx, `WHERE person = ? OR person IN (SELECT person FROM links WHERE account = (SELECT account FROM links WHERE person = ?))
		ORDER BY made, session, n`, textArgs(person, person)...)
}

// list reads proposals.
func (ps *proposals) list(ctx context.Context, where string, args ...any) ([]channels.Proposal, error) {
	all, err := queryAll(ctx, ps.people.db.Read, scanProposal, selectProposals+where, args...)
	if err != nil {
		return nil, fmt.Errorf("list proposals: %w", err)
	}
	return all, nil
}

func scanProposal(scan func(...any) error) (p channels.Proposal, err error) {
	var place string
	var made, expires int64
	if err := scan(&p.ID, &p.Session, &p.Covers, &p.Cause, &p.Scope, &p.Owner, &p.Person, &place, &p.Text, &p.State, &made, &expires); err != nil {
		return p, err
	}
	restoreTexts(&p.ID, &p.Session, &p.Cause, &p.Scope, &p.Owner, &p.Person, &place, &p.Text, &p.State)
	p.Made, p.Expires = timeOf(made), timeOf(expires)
	p.At, err = bus.ParseAddress(place)
	return p, err
}

// DecideProposal implements channels.Proposals: the decision and the change of the memory are one transaction.
func (ps *proposals) DecideProposal(ctx context.Context, d channels.ProposalDecision) (p channels.Proposal, err error) {
	var refused error
	err = ps.people.write(ctx, func(tx *sqldb.Tx) error {
		refused = nil
		if err := ps.people.lockPeople(tx); err != nil {
			return err
		}
		if p, refused, err = findProposal(tx, d, time.Now()); err != nil || refused != nil || p.State != channels.ProposalOpen {
			return err
		}
		p.State = channels.ProposalRefused
		expires := toStamp(time.Now().Add(keepRefusedProposals))
		if d.Keep {
			p.State, expires = channels.ProposalKept, toStamp(p.Expires)
			if refused, err = keepProposal(tx, p, d.Append); refused != nil || err != nil {
				return err
			}
		}
		_, err = tx.Exec(`UPDATE proposals SET state = ?, expires = ? WHERE id = ?`, sqldb.Text(p.State), expires, sqldb.Text(p.ID))
		return err
	})
	if err != nil {
		return p, fmt.Errorf("decide about a proposal: %w", err)
	}
	return p, refused
}

// findProposal returns the proposal that a decision is about; refused is channels.ErrNoProposal if there is none, or if
// another person has to decide it.
func findProposal(tx *sqldb.Tx, d channels.ProposalDecision, now time.Time) (p channels.Proposal, refused, err error) {
	rows, err := tx.Query(selectProposals+`WHERE id = ? AND expires > ?`, sqldb.Text(d.ID), toStamp(now))
	if err != nil {
		return p, nil, err
	}
	found, err := readAll(rows, scanProposal)
	if err != nil {
		return p, nil, err
	}
	if len(found) == 0 {
		return p, channels.ErrNoProposal, nil
	}
	p = found[0]
	theirs, err := accountOf(tx, p.Person)
	if err != nil {
		return p, nil, err
	}
	account, err := accountOf(tx, d.By)
	if err == nil && (theirs != account || p.Scope == channels.ScopeAgent && !d.Owner) {
		return channels.Proposal{}, channels.ErrNoProposal, nil
	}
	return p, nil, err
}

// keepProposal adds a proposal to its memory; refused is the error of add, and nothing has changed then.
func keepProposal(tx *sqldb.Tx, p channels.Proposal, add func(old, text string) (string, error)) (refused, err error) {
	account := p.Owner
	if p.Scope == channels.ScopePerson {
		if account, err = accountOf(tx, p.Owner); err != nil {
			return nil, err
		}
	}
	m, err := readMemory(tx, p.Scope, account)
	if err != nil {
		return nil, err
	}
	if m.content, refused = add(m.content, p.Text); refused != nil {
		return refused, nil
	}
	return nil, writeMemory(tx, p.Scope, account, m)
}

// deleteProposals deletes the proposals for a memory: those for an agent's memory, or those to a person's accounts.
func deleteProposals(tx *sqldb.Tx, scope, account string) (n int64, err error) {
	if scope == channels.ScopeAgent {
		return tx.Exec(`DELETE FROM proposals WHERE scope = ? AND owner = ?`, textArgs(scope, account)...)
	}
	return tx.Exec(`DELETE FROM proposals WHERE scope = ? AND (owner = ? OR owner IN (SELECT person FROM links WHERE account = ?))`, textArgs(scope, account, account)...)
}
