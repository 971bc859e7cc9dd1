package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/sqldb"
	"parley/sessions/subagents"
	"parley/tools/plainjson"
)

// A sessionErasure erases from one session, within one transaction.
type sessionErasure struct {
	tx         *sqldb.Tx
	tasks      subagents.Table
	key        string
	id, fence  int64
	updated    string
	unfinished turns

	erased       int64 // how many entries were erased
	redacted     int64 // how many audit records lost their arguments
	whollyErased bool  // whether the whole session was erased
}

// leaveTombstone keeps the session from being opened under a fence that was given out before now: the
// holder of such a fence may have read what is being erased, and would write it again. Fences are taken
// from the clock, so every later one is higher.
func (p *sessionErasure) leaveTombstone() error {
	_, err := p.tx.Exec(`INSERT INTO graves (key, fence) VALUES (?, ?)
		ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE graves.fence < excluded.fence`,
		p.key, max(p.fence, time.Now().UnixMicro()))
	return err
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
	return scanSpans(found)
}

// scanSpans reads the spans in a query's result.
func scanSpans(found *sql.Rows) (list []span, err error) {
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

// removeTurns deletes the entries of turns except summaries, and empties the arguments in the turns'
// audit records.
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
	if err := bill.KeepUsage(p.tx, condition, args...); err != nil {
		return err
	}
	n, err := p.tx.Exec("DELETE FROM entries WHERE "+condition, args...)
	p.erased += n
	return err
}

// redactSummaries empties the texts of the summaries that the query finds and for which match returns
// true. It keeps the summaries themselves, so that the entries that they cover stay hidden from the
// model.
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
		data, err := plainjson.Marshal(s)
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

// redactAudit empties the arguments in the session's audit records: in those of one turn, or in all if
// turn is "". The records themselves stay, but if turn is "", it deletes those of refusals.
func (p *sessionErasure) redactAudit(turn string) error {
	query, args := "UPDATE audit SET arguments = '' WHERE session = ? AND session <> '' AND arguments <> ''", []any{p.key}
	if turn != "" {
		query, args = query+" AND turn = ?", append(args, turn)
	} else {
		n, err := p.tx.Exec("DELETE FROM audit WHERE session = ? AND session <> '' AND kind = 'refusal'", p.key)
		if err != nil {
			return err
		}
		p.redacted += n
	}
	n, err := p.tx.Exec(query, args...)
	p.redacted += n
	return err
}

// spokenByOthers is an SQL condition for the entries in which anybody but a person
// speaks. A notice is written on somebody's behalf, and an approval may be given from
// another chat: neither counts as speaking in the session.
const spokenByOthers = "person NOT IN ('', ?) AND kind NOT IN ('notice', 'ask_ended')"
