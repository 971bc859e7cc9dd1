package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"

	"parley/sessions"
	"parley/sessions/archive"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
	"parley/sessions/subscriptions"
)

// Queries for eraseEarly: all turns of a session, and those that ended before a time.
const (
	selectAllTurns = "SELECT turn, min(n), max(n) FROM entries WHERE session = ? AND turn <> '' AND kind <> 'summary' GROUP BY turn ORDER BY min(n)"
	selectOldTurns = "SELECT turn, min(n), max(n) FROM entries WHERE session = ? AND turn <> '' AND kind <> 'summary' GROUP BY turn HAVING max(at) < ? ORDER BY min(n)"
)

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
	if err := errors.Join(bill.Forget(p.tx, bill.Session(p.key)), bill.Detach(p.tx, p.key, bill.Session(p.key)), detachReservations(p.tx, p.key)); err != nil {
		return err
	}
	if err := p.redactAudit(""); err != nil {
		return err
	}
	if err := errors.Join(deleteRows(p.tx, "jobs", "session = ?", p.key), deleteRows(p.tx, "node_calls", "session = ?", p.key), deleteRows(p.tx, "node_waits", "session = ?", p.key)); err != nil {
		return err
	}
	if _, err := subscriptions.EraseSession(p.tx, p.key); err != nil {
		return err
	}
	if _, err := archive.ForgetSession(p.tx, sqldb.Untext(p.key)); err != nil {
		return err
	}
	if _, err := p.tasks.EraseSession(p.tx, sqldb.Untext(p.key)); err != nil {
		return err
	}
	p.whollyErased = true
	return p.leaveTombstone()
}

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
	if _, err = p.tx.Exec("UPDATE sessions SET fence = fence + 1, unfinished = ? WHERE id = ?", unfinished, p.id); err != nil {
		return err
	}
	return retitle(p.tx, p.id)
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
	turns, err := p.querySpans(selectOldTurns, p.id, at)
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
	// A worker that holds the session goes on; but nobody may reopen it with what is erased here still in
	// memory.
	if _, err = p.tx.Exec("UPDATE sessions SET erasures = erasures + 1 WHERE id = ?", p.id); err != nil {
		return err
	}
	return retitle(p.tx, p.id)
}

// anyWaitsForPeople reports whether one of the turns waits for people. Such a turn has not ended, no matter how
// long it has waited.
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
