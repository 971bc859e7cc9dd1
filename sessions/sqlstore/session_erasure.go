package sqlstore

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// A plot is one session, within the write that erases from it.
type plot struct {
	tx         *sqldb.Tx
	key        string
	id, fence  int64
	updated    string
	unfinished string

	erased int64
	gone   bool // the whole of it
}

// whole erases the session.
func (p *plot) whole() error {
	if err := p.remove("session = ?", p.id); err != nil {
		return err
	}
	if _, err := p.tx.Exec("DELETE FROM sessions WHERE id = ?", p.id); err != nil {
		return err
	}
	p.gone = true
	return p.bury()
}

// bury lets the session begin anew only under a fence that is given from now on:
// fences begin at the clock. Who was given one before may hold what is erased.
func (p *plot) bury() error {
	_, err := p.tx.Exec(`INSERT INTO graves (key, fence) VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE graves.fence < excluded.fence`,
		p.key, max(p.fence, time.Now().UnixMicro()))
	return err
}

// spokenByOthers picks out the entries by which somebody else than a person has
// spoken in a session. What was said there on somebody's behalf is not.
const spokenByOthers = "person NOT IN ('', ?) AND kind <> 'notice'"

// person erases the turns of a person, or the session if nobody else has spoken.
// Who works on the session has read what is erased, so they are shut out.
func (p *plot) person(person string) error {
	var others int64
	err := p.tx.Get("SELECT count(*) FROM entries WHERE session = ? AND "+spokenByOthers, []any{p.id, person}, &others)
	if err != nil {
		return err
	}
	if others == 0 {
		return p.whole()
	}
	turns, err := p.spans(`SELECT turn, min(n), max(n) FROM entries WHERE session = ? AND turn <> '' AND kind <> 'summary'
		AND turn IN (SELECT turn FROM entries WHERE session = ? AND person = ?) GROUP BY turn`, p.id, p.id, person)
	if err != nil {
		return err
	}
	if err := p.removeTurns(turns); err != nil {
		return err
	}
	if err := p.remove("session = ? AND person = ?", p.id, person); err != nil {
		return err
	}
	if len(turns) > 0 {
		first := slices.MinFunc(turns, func(a, b span) int { return cmp.Compare(a.from, b.from) }).from
		err = p.silence("SELECT n, data FROM entries WHERE session = ? AND kind = 'summary' AND n > ?", first,
			func(s sessions.Summary) bool { return s.Covers >= first })
		if err != nil {
			return err
		}
	}
	return p.shutOut(turns)
}

// shutOut raises the fence and forgets that erased turns were not finished.
func (p *plot) shutOut(erased []span) error {
	st := state{unfinished: p.unfinished}
	open, err := st.turns()
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(t turn) bool {
		return slices.ContainsFunc(erased, func(s span) bool { return s.turn == t.ID })
	})
	if err := st.keep(open); err != nil {
		return err
	}
	_, err = p.tx.Exec("UPDATE sessions SET fence = fence + 1, unfinished = ? WHERE id = ?", st.unfinished, p.id)
	return err
}

// before erases the turns that ended before a time, or the session if nothing
// was written since. A summary goes by its own age, whatever it covers.
func (p *plot) before(at string) error {
	if p.updated < at {
		return p.whole()
	}
	turns, err := p.spans("SELECT turn, min(n), max(n) FROM entries WHERE session = ? AND turn <> '' AND kind <> 'summary' GROUP BY turn HAVING max(at) < ?", p.id, at)
	if err != nil {
		return err
	}
	open, err := state{unfinished: p.unfinished}.turns()
	if err != nil {
		return err
	}
	turns = slices.DeleteFunc(turns, func(s span) bool {
		return slices.ContainsFunc(open, func(t turn) bool { return t.ID == s.turn })
	})
	if err := p.removeTurns(turns); err != nil {
		return err
	}
	if err := p.remove("session = ? AND turn = '' AND kind <> 'summary' AND at < ?", p.id, at); err != nil {
		return err
	}
	return p.silence("SELECT n, data FROM entries WHERE session = ? AND kind = 'summary' AND at < ?", at,
		func(sessions.Summary) bool { return true })
}

// A span is a turn and where its entries are.
type span struct {
	turn     string
	from, to int64
}

func (p *plot) spans(query string, args ...any) (list []span, err error) {
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

func (p *plot) removeTurns(turns []span) error {
	for _, s := range turns {
		if err := p.remove("session = ? AND n >= ? AND n <= ? AND turn = ? AND kind <> 'summary'", p.id, s.from, s.to, s.turn); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes entries. The messages that brought them stay known.
func (p *plot) remove(which string, args ...any) error {
	_, err := p.tx.Exec(`INSERT INTO erased (key, cause, turn)
		SELECT CAST(? AS TEXT), cause, turn FROM entries WHERE `+which+` AND cause <> '' ON CONFLICT DO NOTHING`,
		append([]any{p.key}, args...)...)
	if err != nil {
		return err
	}
	n, err := p.tx.Exec("DELETE FROM entries WHERE "+which, args...)
	p.erased += n
	return err
}

// silence takes the text out of summaries. That they stand there still keeps
// from the model's sight what they cover.
func (p *plot) silence(query string, arg any, which func(sessions.Summary) bool) error {
	found, err := p.tx.Query(query, p.id, arg)
	if err != nil {
		return err
	}
	silent := map[int64]sessions.Summary{}
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
		if s.Text != "" && which(s) {
			silent[n] = sessions.Summary{Covers: s.Covers}
		}
	}
	if err := errors.Join(found.Err(), found.Close()); err != nil {
		return err
	}
	for n, s := range silent {
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

// unname adds what a person has spent to nobody's sums. Deleted rows are what is
// added, so that what is spent meanwhile is not lost between the two.
func unname(tx *sqldb.Tx, person string) error {
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
