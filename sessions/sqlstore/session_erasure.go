package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/purges"
	"parley/sessions/sqldb"
	"parley/sessions/tasks"
)

// A sessionErasure erases from one session, within one transaction.
type sessionErasure struct {
	tx         *sqldb.Tx
	key        string
	id, fence  int64
	updated    string
	unfinished turns

	erased       int64 // how many entries were erased
	redacted     int64 // how many audit records lost their arguments
	whollyErased bool  // whether the whole session was erased
}

// eraseOne runs from, which erases from one session, in one transaction.
func (e *eraserCall) eraseOne(ctx context.Context, key string, from func(*sessionErasure) error) error {
	var p *sessionErasure
	err := e.store.db.Write(ctx, func(tx *sqldb.Tx) error {
		p = &sessionErasure{tx: tx, key: key}
		// The update changes nothing but locks the row: appends to the session wait.
		err := tx.Get("UPDATE sessions SET fence = fence WHERE key = ? RETURNING id, fence, updated, unfinished",
			[]any{key}, &p.id, &p.fence, &p.updated, &p.unfinished)
		if errors.Is(err, sql.ErrNoRows) {
			// The audit may still have records of the session: a release that kept no
			// audit erased its log earlier, or the records came after that.
			if err := errors.Join(p.redactAudit(""), deleteJobs(tx, "session = ?", key)); err != nil {
				return err
			}
			if p.redacted > 0 {
				if err := purges.Schedule(tx); err != nil {
					return err
				}
			}
			return p.leaveTombstone() // a worker may be about to create the session for mail that has to be erased
		}
		if err != nil {
			return err
		}
		if err := from(p); err != nil || p.erased+p.redacted == 0 && !p.whollyErased {
			return err
		}
		return purges.Schedule(tx)
	})
	if err != nil {
		return err
	}
	e.done.Entries += p.erased
	switch {
	case p.whollyErased:
		e.done.Sessions = append(e.done.Sessions, key)
	case p.erased > 0:
		e.done.Shared = append(e.done.Shared, key)
	}
	return nil
}

// eraseWhole erases the whole session.
func (p *sessionErasure) eraseWhole() error {
	if err := p.removeEntries("session = ?", p.id); err != nil {
		return err
	}
	if _, err := p.tx.Exec("DELETE FROM sessions WHERE id = ?", p.id); err != nil {
		return err
	}
	if _, err := p.tx.Exec("DELETE FROM time_zones WHERE session = ?", sqldb.Text(p.key)); err != nil {
		return err
	}
	if err := bill.Forget(p.tx, bill.Session(p.key)); err != nil {
		return err
	}
	if err := p.redactAudit(""); err != nil {
		return err
	}
	if err := deleteJobs(p.tx, "session = ?", p.key); err != nil {
		return err
	}
	if _, err := tasks.EraseSession(p.tx, sqldb.Untext(p.key)); err != nil {
		return err
	}
	p.whollyErased = true
	return p.leaveTombstone()
}

// leaveTombstone keeps the session from being opened under a fence that was given before
// now: the holder of such a fence may have read what is erased and would write it again.
// Fences are taken from the clock, so every later one is higher.
func (p *sessionErasure) leaveTombstone() error {
	_, err := p.tx.Exec(`INSERT INTO graves (key, fence) VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE graves.fence < excluded.fence`,
		p.key, max(p.fence, time.Now().UnixMicro()))
	return err
}

// spokenByOthers is an SQL condition for the entries in which anybody but a person
// speaks. A notice is written on somebody's behalf, and an approval may be given from
// another chat: neither counts as speaking in the session.
const spokenByOthers = "person NOT IN ('', ?) AND kind NOT IN ('notice', 'ask_ended')"

// erasePerson erases the turns of a person, or the whole session if nobody else has
// spoken in it. A worker that holds the session still has in memory what is erased here,
// so a higher fence is stored, and that worker can write nothing more.
func (p *sessionErasure) erasePerson(person string) error {
	var others int64
	err := p.tx.Get("SELECT count(*) FROM entries WHERE session = ? AND "+spokenByOthers, []any{p.id, person}, &others)
	if err != nil {
		return err
	}
	if others == 0 {
		return p.eraseWhole()
	}
	turns, err := p.querySpans(`SELECT turn, min(n), max(n) FROM entries WHERE session = ? AND turn <> '' AND kind <> 'summary'
		AND turn IN (SELECT turn FROM entries WHERE session = ? AND person = ? AND kind <> 'ask_ended') GROUP BY turn`, p.id, p.id, person)
	if err != nil {
		return err
	}
	if err := p.removeTurns(turns); err != nil {
		return err
	}
	if err := p.redactAnswers(person); err != nil {
		return err
	}
	if err := p.removeEntries("session = ? AND person = ?", p.id, person); err != nil {
		return err
	}
	if len(turns) > 0 {
		first := slices.MinFunc(turns, func(a, b span) int { return cmp.Compare(a.from, b.from) }).from
		err = p.redactSummaries("SELECT n, data FROM entries WHERE session = ? AND kind = 'summary' AND n > ?", first,
			func(s sessions.Summary) bool { return s.Covers >= first })
		if err != nil {
			return err
		}
	}
	return p.fenceOff(turns)
}

// fenceOff raises the session's fence above its holder's, and removes erased turns
// from the unfinished ones.
func (p *sessionErasure) fenceOff(erased []span) error {
	open := slices.DeleteFunc(slices.Clone(p.unfinished), func(t turn) bool {
		return slices.ContainsFunc(erased, func(s span) bool { return s.turn == t.ID })
	})
	unfinished, err := open.text()
	if err != nil {
		return err
	}
	_, err = p.tx.Exec("UPDATE sessions SET fence = fence + 1, unfinished = ? WHERE id = ?", unfinished, p.id)
	return err
}

// eraseBefore erases the turns that ended before a time, or the whole session if nothing
// was written since and no turn waits for people. Turns that have not ended stay. A
// summary is erased by its own age, not by that of the entries which it covers.
func (p *sessionErasure) eraseBefore(at string) error {
	open := p.unfinished
	waits, err := p.anyWaitsForPeople(open)
	if err != nil {
		return err
	}
	if p.updated < at && !waits {
		return p.eraseWhole()
	}
	turns, err := p.querySpans("SELECT turn, min(n), max(n) FROM entries WHERE session = ? AND turn <> '' AND kind <> 'summary' GROUP BY turn HAVING max(at) < ?", p.id, at)
	if err != nil {
		return err
	}
	turns = slices.DeleteFunc(turns, func(s span) bool {
		return slices.ContainsFunc(open, func(t turn) bool { return t.ID == s.turn })
	})
	if err := p.removeTurns(turns); err != nil {
		return err
	}
	if err := p.removeEntries("session = ? AND turn = '' AND kind <> 'summary' AND at < ?", p.id, at); err != nil {
		return err
	}
	err = p.redactSummaries("SELECT n, data FROM entries WHERE session = ? AND kind = 'summary' AND at < ?", at,
		func(sessions.Summary) bool { return true })
	if err != nil || p.erased == 0 {
		return err
	}
	// A worker that holds the session goes on; but nobody may reopen it with what is
	// erased here still in memory.
	_, err = p.tx.Exec("UPDATE sessions SET erasures = erasures + 1 WHERE id = ?", p.id)
	return err
}

// anyWaitsForPeople reports whether one of the turns waits for people. Such a turn is not over, however long
// it has waited.
func (p *sessionErasure) anyWaitsForPeople(open []turn) (bool, error) {
	for _, t := range open {
		var kind string
		err := p.tx.Get(`SELECT kind FROM entries WHERE session = ? AND turn = ? AND kind IN ('turn_parked', 'turn_unparked', 'turn_done')
			ORDER BY n DESC LIMIT 1`, []any{p.id, t.ID}, &kind)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil || sessions.Kind(kind) == sessions.KindTurnParked {
			return err == nil, err
		}
	}
	return false, nil
}

// A span is a turn, and the numbers of its first and last entry.
type span struct {
	turn     string
	from, to int64
}

// querySpans returns the spans that a query finds.
func (p *sessionErasure) querySpans(query string, args ...any) (list []span, err error) {
	found, err := p.tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var s span
		if err := found.Scan(&s.turn, &s.from, &s.to); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, found.Err()
}

// removeTurns deletes the entries of turns except summaries, and empties their audit
// records.
func (p *sessionErasure) removeTurns(turns []span) error {
	for _, s := range turns {
		if err := p.removeEntries("session = ? AND n >= ? AND n <= ? AND turn = ? AND kind <> 'summary'", p.id, s.from, s.to, s.turn); err != nil {
			return err
		}
		if err := p.redactAudit(s.turn); err != nil {
			return err
		}
	}
	return nil
}

// removeEntries deletes the entries for which the SQL condition is true. It keeps the ids of the
// messages that caused them, so that a redelivered message does not start its turn again, and the
// numbers of tokens that their model calls have used.
func (p *sessionErasure) removeEntries(condition string, args ...any) error {
	_, err := p.tx.Exec(`INSERT INTO erased (key, cause, turn)
		SELECT CAST(? AS TEXT), cause, turn FROM entries WHERE `+condition+` AND cause <> '' ON CONFLICT DO NOTHING`,
		append([]any{p.key}, args...)...)
	if err != nil {
		return err
	}
	if err := bill.Keep(p.tx, condition, args...); err != nil {
		return err
	}
	n, err := p.tx.Exec("DELETE FROM entries WHERE "+condition, args...)
	p.erased += n
	return err
}

// redactSummaries empties the summaries that the query finds and match selects, but keeps them, so
// that the entries they cover stay hidden from the model.
func (p *sessionErasure) redactSummaries(query string, arg any, match func(sessions.Summary) bool) error {
	found, err := p.tx.Query(query, p.id, arg)
	if err != nil {
		return err
	}
	redacted := map[int64]sessions.Summary{}
	for found.Next() {
		var n int64
		var data string
		var s sessions.Summary
		err = found.Scan(&n, &data)
		if err == nil {
			err = json.Unmarshal([]byte(data), &s)
		}
		if err != nil {
			return errors.Join(err, found.Close())
		}
		if s.Text != "" && match(s) {
			s.Text = ""
			redacted[n] = s
		}
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return err
	}
	for n, s := range redacted {
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if _, err := p.tx.Exec("UPDATE entries SET data = ? WHERE session = ? AND n = ?", string(data), p.id, n); err != nil {
			return err
		}
		p.erased++
	}
	return nil
}

// anonymiseSpending moves what a person has spent to the empty name. It adds exactly the rows that
// the DELETE returns, so that tokens spent meanwhile are not lost.
func anonymiseSpending(tx *sqldb.Tx, person string) error {
	found, err := tx.Query("DELETE FROM spending WHERE person = ? RETURNING day, tokens", person)
	if err != nil {
		return err
	}
	sums := map[string]int64{}
	for found.Next() {
		var day string
		var tokens int64
		if err := found.Scan(&day, &tokens); err != nil {
			return errors.Join(err, found.Close())
		}
		sums[day] = tokens
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return err
	}
	for day, tokens := range sums {
		if _, err := tx.Exec(`INSERT INTO spending (person, day, tokens) VALUES ('', ?, ?)
			ON CONFLICT (person, day) DO UPDATE SET tokens = spending.tokens + excluded.tokens`, day, tokens); err != nil {
			return err
		}
	}
	_, err = tx.Exec("UPDATE reservations SET person = '' WHERE person = ?", person)
	return err
}
