package nodes

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
)

const callColumns = "id, node, tool, session, person, agent, turn, args, timeout, approved, made, sent, cancelled, outcome, ended"

// callLifetime is how long a call is kept after nobody waits for it anymore. By then its session's log has the outcome.
const callLifetime = 7 * 24 * time.Hour

// Give removes at most so many old calls, and so often: as many as a node can be given meanwhile, so that none are left in
// the long run, and seldom, because the call waits for it.
const (
	maxSwept      = 6000
	sweepInterval = time.Minute
)

// Give records a call unless its ID is known, and returns what is recorded. It returns sessions.ErrNotFound if the session
// does not exist, ErrUnknown if the node does not, and ErrRevoked if that is revoked. Now and then it also removes
// calls for which nobody has waited for longer than callLifetime.
func (t *Table) Give(ctx context.Context, c Call) (Call, error) {
	given, _, err := t.GiveHere(ctx, c, "")
	return given, err
}

// GiveHere does what Give does. If that process has the link of the device, it also records that the process is about to send the
// call, as Send does, and sends is true.
func (t *Table) GiveHere(ctx context.Context, c Call, process string) (recorded Call, sends bool, err error) {
	approved := 0
	if c.Approved {
		approved = 1
	}
	recorded, given, err := t.change(ctx, c.ID, `INSERT INTO node_calls (id, node, key, tool, session, person, agent, turn, args, timeout, approved, made, sent, cancelled, outcome, ended, settled)
		SELECT CAST(? AS TEXT), n.name, n.key, CAST(? AS TEXT), s.key, CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT),
			CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT), CASE WHEN n.process = ? AND n.process <> '' THEN CAST(? AS BIGINT) ELSE 0 END, 0, '', 0, 0
		FROM sessions s CROSS JOIN nodes n WHERE s.key = ? AND n.name = ? AND n.state <> 'revoked'`+t.lockSessionAndNodeSuffix+`
		ON CONFLICT (id) DO NOTHING`,
		sqldb.Text(c.ID), sqldb.Text(c.Tool), sqldb.Text(c.Person), sqldb.Text(c.Agent), sqldb.Text(c.Turn), toColumn(c.Args),
		c.Timeout.Microseconds(), approved, sqldb.Micros(c.MadeAt), sqldb.Text(process), time.Now().UnixMicro(), sqldb.Text(c.Session), sqldb.Text(c.Node))
	switch {
	case errors.Is(err, ErrUnknown):
		err = t.whyNotGiven(ctx, c)
	case given && t.isSweepDue():
		_ = t.sweep(ctx) // the call is given all the same, and the next sweep removes what is left
	}
	return recorded, given && !recorded.SentAt.IsZero(), wrap("record call "+c.ID, err)
}

// isSweepDue reports whether old calls are to be removed now, and counts that as done.
func (t *Table) isSweepDue() bool {
	now := time.Now().UnixNano()
	last := t.lastSweep.Load()
	return now-last >= int64(sweepInterval) && t.lastSweep.CompareAndSwap(last, now)
}

// sweep removes some of the calls for which nobody has waited for longer than callLifetime.
func (t *Table) sweep(ctx context.Context) error {
	old := time.Now().Add(-callLifetime).UnixMicro()
	_, err := t.db.Exec(ctx, `DELETE FROM node_calls WHERE id IN (
		SELECT id FROM node_calls WHERE settled > 0 AND settled < ? ORDER BY settled LIMIT ?`+t.skipLockedSuffix+`)`, old, maxSwept)
	return err
}

// whyNotGiven finds out why a call was not recorded.
func (t *Table) whyNotGiven(ctx context.Context, c Call) error {
	if err := t.checkKnown(ctx, c.Node); err != nil {
		return err
	}
	return sessions.ErrNotFound
}

// Call returns a call, or ErrUnknown.
func (t *Table) Call(ctx context.Context, id string) (Call, error) {
	c, err := scanCall(t.db.Read.QueryRowContext(ctx, "SELECT "+callColumns+" FROM node_calls WHERE id = ?", sqldb.Text(id)).Scan)
	return c, wrap("look up call "+id, err)
}

// Open returns a node's calls that have not ended, in the order in which they were made. Those that were given to a revoked
// device of the same name are not among them.
func (t *Table) Open(ctx context.Context, node string) ([]Call, error) {
	return t.openOf(ctx, node, "(SELECT n.key FROM nodes n WHERE n.name = node_calls.node)")
}

// openOf returns the calls that have not ended and were given to the device of that name whose key is the SQL value, in the
// order in which they were made.
func (t *Table) openOf(ctx context.Context, node, key string) (all []Call, err error) {
	found, err := t.db.Read.QueryContext(ctx, "SELECT "+callColumns+" FROM node_calls WHERE node = ? AND ended = 0 AND key = "+key+" ORDER BY made, id", sqldb.Text(node))
	if err != nil {
		return nil, wrap("list the calls of node "+node, err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		c, err := scanCall(found.Scan)
		if err != nil {
			return nil, wrap("list the calls of node "+node, err)
		}
		all = append(all, c)
	}
	return all, found.Err()
}

// Send records that a process is about to send a call, and returns it. It returns ErrOther unless that process has the link
// of the device to which the call was given. A call that has ended is returned as it is.
func (t *Table) Send(ctx context.Context, id, process string, now time.Time) (Call, error) {
	c, changed, err := t.change(ctx, id, `UPDATE node_calls SET sent = CASE WHEN sent = 0 THEN CAST(? AS BIGINT) ELSE sent END
		WHERE id = ? AND ended = 0 AND EXISTS (SELECT 1 FROM nodes n
			WHERE n.name = node_calls.node AND n.key = node_calls.key AND n.process = ? AND n.process <> ''`+t.lockNodeSuffix+`)`,
		now.UnixMicro(), sqldb.Text(id), sqldb.Text(process))
	if err == nil && !changed && c.Ended.IsZero() {
		err = ErrOther
	}
	return c, wrap("record that call "+id+" is sent", err)
}

// Cancel ends a call that was never sent with that outcome; of one that was sent, it records that it is canceled. It
// returns the call, which is as it was if it has ended.
func (t *Table) Cancel(ctx context.Context, id string, outcome json.RawMessage, now time.Time) (Call, error) {
	at := now.UnixMicro()
	c, _, err := t.change(ctx, id, `UPDATE node_calls SET cancelled = 1, settled = ?, outcome = CASE WHEN sent = 0 THEN CAST(? AS TEXT) ELSE '' END,
		ended = CASE WHEN sent = 0 THEN CAST(? AS BIGINT) ELSE 0 END WHERE id = ? AND ended = 0 AND cancelled = 0`,
		at, toColumn(outcome), at, sqldb.Text(id))
	return c, wrap("cancel call "+id, err)
}

// End records how a call has ended, unless it has, and returns what is recorded. ErrUnknown means that the call was erased.
func (t *Table) End(ctx context.Context, id string, outcome json.RawMessage, now time.Time) (Call, error) {
	at := now.UnixMicro()
	c, _, err := t.change(ctx, id, "UPDATE node_calls SET outcome = ?, ended = ?, settled = ? WHERE id = ? AND ended = 0",
		toColumn(outcome), at, at, sqldb.Text(id))
	return c, wrap("record how call "+id+" has ended", err)
}

// change runs a statement that may change a call, and returns the call as it is then, and whether the statement has
// changed it.
func (t *Table) change(ctx context.Context, id, query string, args ...any) (c Call, changed bool, err error) {
	c, err = scanCall(func(dest ...any) error { return t.db.Get(ctx, query+" RETURNING "+callColumns, args, dest...) })
	if !errors.Is(err, ErrUnknown) {
		return c, err == nil, err
	}
	c, err = t.Call(ctx, id)
	return c, false, err
}

// scanCall reads a call's row. It returns ErrUnknown if there is none.
func scanCall(scan func(dest ...any) error) (c Call, err error) {
	var args, outcome string
	var timeout, approved, made, sent, cancelled, ended int64
	err = scan(&c.ID, &c.Node, &c.Tool, &c.Session, &c.Person, &c.Agent, &c.Turn, &args, &timeout, &approved, &made, &sent, &cancelled, &outcome, &ended)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrUnknown
	}
	if err != nil {
		return Call{}, err
	}
	for _, text := range []*string{&c.ID, &c.Node, &c.Tool, &c.Session, &c.Person, &c.Agent, &c.Turn} {
		*text = sqldb.Untext(*text)
	}
	c.Args, c.Outcome, c.Timeout, c.Cancelled = fromColumn(args), fromColumn(outcome), time.Duration(timeout)*time.Microsecond, cancelled == 1
	c.Approved = approved == 1
	c.MadeAt, c.SentAt, c.Ended = sqldb.FromMicros(made), sqldb.FromMicros(sent), sqldb.FromMicros(ended)
	return c, nil
}
