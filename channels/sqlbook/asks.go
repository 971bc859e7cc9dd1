package sqlbook

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
	"parley/sessions/subscriptions"
	"parley/tools/plainjson"
)

const keepAsks = 30 * 24 * time.Hour // how long asks are kept after they have ended

// schemaAsks adds the asks that parked turns wait for, and which formats each running process can read. An ask's
// body is what people were asked, as JSON, and its answer is what they answered.
const schemaAsks = `
CREATE TABLE asks (
	id       TEXT PRIMARY KEY,
	session  TEXT NOT NULL,
	person   TEXT NOT NULL,
	hash     TEXT NOT NULL,
	body     TEXT NOT NULL,
	made     BIGINT NOT NULL,
	expires  BIGINT NOT NULL,
	state    TEXT NOT NULL,
	cause    TEXT NOT NULL,
	answerer TEXT NOT NULL,
	answer   TEXT NOT NULL,
	ended    BIGINT NOT NULL,
	told     INTEGER NOT NULL,
	granted  INTEGER NOT NULL
);
CREATE INDEX asks_by_session ON asks (session, hash);
CREATE INDEX asks_by_person ON asks (person);
CREATE INDEX asks_by_answerer ON asks (answerer);
CREATE INDEX asks_by_age ON asks (ended);
CREATE INDEX asks_open ON asks (made) WHERE state = 'open';
CREATE INDEX asks_untold ON asks (ended) WHERE told = 0;
CREATE TABLE processes (
	name        TEXT PRIMARY KEY,
	understands INTEGER NOT NULL,
	noted       BIGINT NOT NULL
)`

// asks stores what parked turns wait for.
type asks struct {
	db     *sqldb.DB
	events atomic.Pointer[subscriptions.Table] // nil if nobody is told of asks
}

// RecordEvents has the book record in a table of the same database, for subscribers, that asks are opened and decided.
func (a *asks) RecordEvents(t *subscriptions.Table) { a.events.Store(t) }

// recordEvent records, within the transaction that opens or ends an ask, that this happens. It returns false if nobody wants
// to know.
func (a *asks) recordEvent(tx *sqldb.Tx, ask bus.Ask, what string, at time.Time) (recorded bool, err error) {
	t := a.events.Load()
	if t == nil || !t.Wants(what) {
		return false, nil
	}
	e := subscriptions.Event{ID: subscriptions.NewID("ask", ask.ID, what), Type: what, At: at, Data: subscriptions.Data{
		Session: ask.Session, Turn: ask.Turn, ID: ask.ID, Kind: ask.Kind, State: ask.State, Tool: ask.Tool, Call: ask.Call,
	}}
	if ask.Kind == bus.AskApproval && ask.State == bus.AskAnswered {
		e.Data.Code = ask.Answer.Text
	}
	return true, t.AddIn(tx, e)
}

// wakeIfRecorded wakes the sender of events if recordEvent has recorded one.
func (a *asks) wakeIfRecorded(is bool) {
	if is {
		a.events.Load().Added(1)
	}
}

const askFields = `body, state, answer, ended`

// scanAsk reads an ask from the columns askFields.
func scanAsk(scan func(...any) error) (bus.Ask, error) {
	var body, state, answer string
	var ended int64
	if err := scan(&body, &state, &answer, &ended); err != nil {
		return bus.Ask{}, err
	}
	restoreTexts(&body, &answer)
	var ask bus.Ask
	if err := json.Unmarshal([]byte(body), &ask); err != nil {
		return bus.Ask{}, fmt.Errorf("decode an ask: %w", err)
	}
	ask.State, ask.Ended = state, timeOf(ended)
	if answer != "" {
		if err := json.Unmarshal([]byte(answer), &ask.Answer); err != nil {
			return bus.Ask{}, fmt.Errorf("decode an answer: %w", err)
		}
	}
	return ask, nil
}

// OpenAsk implements channels.Asks: it inserts the ask unless its id is known.
func (a *asks) OpenAsk(ctx context.Context, ask bus.Ask) error {
	ask.State, ask.Answer, ask.Ended = bus.AskOpen, bus.Answer{}, time.Time{}
	body, err := plainjson.Marshal(ask)
	if err != nil {
		return fmt.Errorf("open ask %s: %w", ask.ID, err)
	}
	told := false
	err = a.db.Write(ctx, func(tx *sqldb.Tx) error {
		if err := pruneAsks(tx, time.Now()); err != nil {
			return err
		}
		n, err := tx.Exec(`INSERT INTO asks (id, session, person, hash, body, made, expires, state, cause, answerer, answer, ended, told, granted)
			VALUES (?, ?, ?, ?, ?, ?, ?, 'open', '', '', '', 0, 1, ?) ON CONFLICT (id) DO NOTHING`,
			append(textArgs(ask.ID, ask.Session, ask.Person, ask.Hash, string(body)), toStamp(ask.Made), toStamp(ask.Expires), -toBit(ask.Once))...)
		if told = false; err == nil && n > 0 {
			told, err = a.recordEvent(tx, ask, subscriptions.AskOpened, ask.Made)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("open ask %s: %w", ask.ID, err)
	}
	a.wakeIfRecorded(told)
	return nil
}

// LookupAsk implements channels.Asks: it reads one ask by its id.
func (a *asks) LookupAsk(ctx context.Context, id string) (bus.Ask, error) {
	ask, err := scanAsk(a.db.Read.QueryRowContext(ctx, `SELECT `+askFields+` FROM asks WHERE id = ?`, textArgs(id)...).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return bus.Ask{}, bus.ErrNoAsk
	}
	if err != nil {
		return bus.Ask{}, fmt.Errorf("look up ask %s: %w", id, err)
	}
	return ask, nil
}

// EndAsk implements channels.Asks: a single statement checks that the ask is open and ends it, so if there are two
// answers at the same time, the second one finds that the ask has ended.
func (a *asks) EndAsk(ctx context.Context, id, state string, answer bus.Answer) (ask bus.Ask, ours bool, err error) {
	said := ""
	if state == bus.AskAnswered {
		raw, err := plainjson.Marshal(answer)
		if err != nil {
			return bus.Ask{}, false, fmt.Errorf("end ask %s: %w", id, err)
		}
		said = string(raw)
	}
	told := false
	err = a.db.Write(ctx, func(tx *sqldb.Tx) error {
		now := toStamp(time.Now())
		// The session is not told that an ask was withdrawn, because whoever withdraws an ask knows it.
		query := `UPDATE asks SET state = ?, cause = ?, answerer = ?, answer = ?, ended = ?, told = ?, granted = CASE WHEN granted < 0 THEN granted ELSE ? END WHERE id = ? AND state = 'open'`
		args := append(textArgs(state, answer.Cause, answer.By.ID, said), now, toBit(state == bus.AskWithdrawn),
			toBit(state == bus.AskAnswered && answer.Text == bus.ApproveSession), sqldb.Text(id))
		switch state {
		case bus.AskAnswered:
			query, args = query+` AND expires > ?`, append(args, now)
		case bus.AskExpired:
			query, args = query+` AND expires <= ?`, append(args, now)
		}
		changed, err := tx.Exec(query, args...)
		if err != nil {
			return err
		}
		ask, err = scanAsk(func(dest ...any) error {
			return tx.Get(`SELECT `+askFields+` FROM asks WHERE id = ?`, textArgs(id), dest...)
		})
		ours = changed > 0 || ask.State == state && state == bus.AskAnswered &&
			answer.Cause != "" && answer.Cause == ask.Answer.Cause && answer.Text == ask.Answer.Text
		if told = false; err == nil && changed > 0 {
			told, err = a.recordEvent(tx, ask, subscriptions.AskDecided, ask.Ended)
		}
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return bus.Ask{}, false, bus.ErrNoAsk
	}
	if err != nil {
		return bus.Ask{}, false, fmt.Errorf("end ask %s: %w", id, err)
	}
	a.wakeIfRecorded(told)
	return ask, ours, nil
}

// NoteTold implements channels.Asks: it marks an ask as recorded in the session's log.
func (a *asks) NoteTold(ctx context.Context, id string) error {
	if _, err := a.db.Exec(ctx, `UPDATE asks SET told = 1 WHERE id = ? AND told = 0`, textArgs(id)...); err != nil {
		return fmt.Errorf("note that an ask is told: %w", err)
	}
	return nil
}

// OpenAsks implements channels.Asks: it lists the open asks, oldest first.
func (a *asks) OpenAsks(ctx context.Context) ([]bus.Ask, error) {
	return queryAll(ctx, a.db.Read, scanAsk, `SELECT `+askFields+` FROM asks WHERE state = 'open' ORDER BY made, id`)
}

// OldestAsks returns the open asks that were opened first, at most limit of them, and the number of all open asks.
func (a *asks) OldestAsks(ctx context.Context, limit int) (oldest []bus.Ask, count int, err error) {
	if count, err = a.OpenAskCount(ctx); err != nil || count == 0 {
		return nil, count, err
	}
	oldest, err = queryAll(ctx, a.db.Read, scanAsk, `SELECT `+askFields+` FROM asks WHERE state = 'open' ORDER BY made, id LIMIT ?`, limit)
	return oldest, count, err
}

// HasOpenAsk implements channels.Asks: it reports whether the session has an open ask.
func (a *asks) HasOpenAsk(ctx context.Context, session string) (bool, error) {
	var n int
	err := a.db.Read.QueryRowContext(ctx, `SELECT count(*) FROM asks WHERE session = ? AND state = 'open'`, textArgs(session)...).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look for open asks: %w", err)
	}
	return n > 0, nil
}

// UntoldAsks implements channels.Asks: it lists ended asks that NoteTold has not marked.
func (a *asks) UntoldAsks(ctx context.Context, before time.Time) ([]bus.Ask, error) {
	return queryAll(ctx, a.db.Read, scanAsk, `SELECT `+askFields+` FROM asks WHERE told = 0 AND ended < ? ORDER BY ended, id`, toStamp(before))
}

// Granted implements channels.Asks: it looks for an approval for the whole session that is still valid.
func (a *asks) Granted(ctx context.Context, session, hash string, since time.Time) (by string, ok bool, err error) {
	err = a.db.Read.QueryRowContext(ctx, `SELECT answerer FROM asks WHERE session = ? AND hash = ? AND granted = 1 AND ended > ? ORDER BY ended DESC LIMIT 1`,
		append(textArgs(session, hash), toStamp(since))...).Scan(&by)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("look for an approval: %w", err)
	}
	restoreTexts(&by)
	return by, true, nil
}

// EndGrants implements channels.Asks: it sets the column granted to -1 in the session's valid approvals for the
// whole session, and in its open asks. An ask keeps that value when it ends, so a later answer approves at most one
// call.
func (a *asks) EndGrants(ctx context.Context, session string) error {
	if _, err := a.db.Exec(ctx, `UPDATE asks SET granted = -1 WHERE session = ? AND (granted = 1 OR state = 'open')`, textArgs(session)...); err != nil {
		return fmt.Errorf("end approvals: %w", err)
	}
	return nil
}

// pruneAsks deletes asks that ended more than keepAsks ago, at most pruneLimit of them.
func pruneAsks(tx *sqldb.Tx, now time.Time) error {
	_, err := tx.Exec(`DELETE FROM asks WHERE id IN (SELECT id FROM asks WHERE ended > 0 AND ended < ? ORDER BY ended LIMIT ?)`,
		toStamp(now.Add(-keepAsks)), pruneLimit)
	return err
}

// removeAnswerer removes a person's id from answers that other sessions have not been told of yet: these answers
// must stay, because turns wait for them. It returns how many it has found, at most `most`, and adds to changed how
// many it has changed.
func removeAnswerer(tx *sqldb.Tx, changed *int64, person string, most int) (n int, err error) {
	found, err := tx.Query(`SELECT id, answer FROM asks WHERE answerer = ? AND told = 0 LIMIT ?`, sqldb.Text(person), most)
	if err != nil {
		return 0, err
	}
	kept := map[string]string{}
	for found.Next() {
		var id, raw string
		var answer bus.Answer
		err = found.Scan(&id, &raw)
		if restoreTexts(&raw); err == nil {
			err = json.Unmarshal([]byte(raw), &answer)
		}
		if err == nil {
			var rest []byte
			if rest, err = plainjson.Marshal(bus.Answer{Text: answer.Text}); err == nil {
				kept[id] = string(rest)
			}
		}
		if err != nil {
			return 0, errors.Join(err, found.Close())
		}
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return 0, err
	}
	for id, answer := range kept {
		if err := execCounting(tx, changed, `UPDATE asks SET answerer = '', cause = '', answer = ? WHERE id = ?`, textArgs(answer, id)...); err != nil {
			return 0, err
		}
	}
	return len(kept), nil
}

// OpenAskCount returns how many asks are open.
func (a *asks) OpenAskCount(ctx context.Context) (n int, err error) {
	if err := a.db.Read.QueryRowContext(ctx, `SELECT count(*) FROM asks WHERE state = 'open'`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count open asks: %w", err)
	}
	return n, nil
}
