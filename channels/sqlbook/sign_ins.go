package sqlbook

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/channels"
	"parley/sessions/sqldb"
)

// schemaSignIns adds the browsers in which people have signed in to the web page, and the codes with which more
// browsers can sign in. Secrets and codes are stored as hashes.
const schemaSignIns = `
CREATE TABLE sign_in_codes (
	code   TEXT PRIMARY KEY,
	caller TEXT NOT NULL,
	made   BIGINT NOT NULL
);
CREATE TABLE sign_ins (
	secret TEXT PRIMARY KEY,
	id     TEXT NOT NULL,
	caller TEXT NOT NULL,
	proof  TEXT NOT NULL,
	device TEXT NOT NULL,
	began  BIGINT NOT NULL,
	seen   BIGINT NOT NULL
);
CREATE UNIQUE INDEX sign_ins_by_id ON sign_ins (id);
CREATE INDEX sign_ins_by_use ON sign_ins (seen, id)`

const (
	// seenEvery is the minimum time between two writes that record that a browser was seen.
	seenEvery = time.Hour
	// maxSignIns is how many browsers are remembered for one caller. Somebody who may sign in can do so again and
	// again, and should not sign others out that way.
	maxSignIns = 100
	// maxListed is the maximum number of sign-ins that are listed.
	maxListed = 10_000
)

// signIns stores who has signed in to the web page.
type signIns struct{ db *sqldb.DB }

// hashOf returns the form in which a secret or a code is stored. Both are random and long, so that nobody can find
// them by trying out hashes.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// OfferSignIn implements channels.SignIns. It also deletes the expired codes that nobody has used.
func (s *signIns) OfferSignIn(ctx context.Context, caller string) (string, error) {
	code, now := rand.Text(), time.Now()
	err := s.db.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec(`DELETE FROM sign_in_codes WHERE made <= ?`, toStamp(now.Add(-channels.SignInCodeLasts))); err != nil {
			return err
		}
		_, err := tx.Exec(`INSERT INTO sign_in_codes (code, caller, made) VALUES (?, ?, ?)`, hashOf(code), sqldb.Text(caller), toStamp(now))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("offer a code to sign in: %w", err)
	}
	return code, nil
}

// RedeemSignIn implements channels.SignIns: the caller that deletes the code gets it. A wrong code causes no write,
// because anybody may try one.
func (s *signIns) RedeemSignIn(ctx context.Context, code string) (caller string, err error) {
	args := []any{hashOf(strings.ToUpper(strings.TrimSpace(code))), toStamp(time.Now().Add(-channels.SignInCodeLasts))}
	err = s.db.Read.QueryRowContext(ctx, `SELECT caller FROM sign_in_codes WHERE code = ? AND made > ?`, args...).Scan(&caller)
	if err == nil {
		err = s.db.Get(ctx, `DELETE FROM sign_in_codes WHERE code = ? AND made > ? RETURNING caller`, args, &caller)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", channels.ErrNoSignIn
	case err != nil:
		return "", fmt.Errorf("redeem a code: %w", err)
	}
	restoreTexts(&caller)
	return caller, nil
}

// BeginSignIn implements channels.SignIns. It also deletes sign-ins that have ended and, if the caller has too
// many, the ones that have not been used for the longest time.
func (s *signIns) BeginSignIn(ctx context.Context, in channels.SignIn) (string, channels.SignIn, error) {
	secret, now := rand.Text()+rand.Text(), time.Now()
	in.ID, in.Began, in.Seen = strings.ToLower(rand.Text()), timeOf(toStamp(now)), timeOf(toStamp(now))
	in.Device = sqldb.Untext(toStoredName(in.Device))
	err := s.db.Write(ctx, func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`DELETE FROM sign_ins WHERE seen <= ? OR id IN (SELECT id FROM sign_ins WHERE caller = ? ORDER BY seen DESC, id LIMIT 1000000 OFFSET ?)`,
			toStamp(now.Add(-channels.SignInLasts)), sqldb.Text(in.Caller), maxSignIns-1)
		if err != nil {
			return err
		}
		_, err = tx.Exec(`INSERT INTO sign_ins (secret, id, caller, proof, device, began, seen) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			append(append([]any{hashOf(secret)}, textArgs(in.ID, in.Caller, in.Proof, in.Device)...), toStamp(now), toStamp(now))...)
		return err
	})
	if err != nil {
		return "", channels.SignIn{}, fmt.Errorf("begin a sign-in: %w", err)
	}
	return secret, in, nil
}

// signInFields are the columns that scanSignIn reads.
const signInFields = `id, caller, proof, device, began, seen`

// scanSignIn reads a row with the columns signInFields.
func scanSignIn(scan func(...any) error) (in channels.SignIn, err error) {
	var began, seen int64
	err = scan(&in.ID, &in.Caller, &in.Proof, &in.Device, &began, &seen)
	restoreTexts(&in.ID, &in.Caller, &in.Proof, &in.Device)
	in.Began, in.Seen = timeOf(began), timeOf(seen)
	return in, err
}

// FindSignIn implements channels.SignIns.
func (s *signIns) FindSignIn(ctx context.Context, secret string) (channels.SignIn, error) {
	now, hash := time.Now(), hashOf(secret)
	in, err := scanSignIn(s.db.Read.QueryRowContext(ctx, `SELECT `+signInFields+` FROM sign_ins WHERE secret = ? AND seen > ?`,
		hash, toStamp(now.Add(-channels.SignInLasts))).Scan)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return channels.SignIn{}, channels.ErrNoSignIn
	case err != nil:
		return channels.SignIn{}, fmt.Errorf("find a sign-in: %w", err)
	}
	if now.Sub(in.Seen) < seenEvery {
		return in, nil
	}
	in.Seen = timeOf(toStamp(now))
	// Nobody waits for this write, so that somebody who wants to find out why the disk is full can still get in.
	s.db.Start(func(tx *sqldb.Tx) error {
		_, err := tx.Exec(`UPDATE sign_ins SET seen = ? WHERE secret = ?`, toStamp(now), hash)
		return err
	})
	return in, nil
}

// SignIns implements channels.SignIns.
func (s *signIns) SignIns(ctx context.Context) ([]channels.SignIn, error) {
	return queryAll(ctx, s.db.Read, scanSignIn, `SELECT `+signInFields+` FROM sign_ins WHERE seen > ? ORDER BY seen DESC, id LIMIT ?`,
		toStamp(time.Now().Add(-channels.SignInLasts)), maxListed)
}

// EndSignIn implements channels.SignIns.
func (s *signIns) EndSignIn(ctx context.Context, id string) error {
	n, err := s.db.Exec(ctx, `DELETE FROM sign_ins WHERE id = ?`, sqldb.Text(id))
	if err != nil {
		return fmt.Errorf("end a sign-in: %w", err)
	}
	if n == 0 {
		return channels.ErrNoSignIn
	}
	return nil
}
