package nodes

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/sessions/sqldb"
)

// Migration is the SQL that adds the tables to a schema; {bytes} is replaced by a text type that sorts by bytes. Times are
// microseconds since 1970; 0 means none. JSON that there is none of is empty.
const Migration = `
CREATE TABLE nodes (
	name     {bytes} PRIMARY KEY,
	key      TEXT NOT NULL,      -- the public key in hexadecimal
	code     TEXT NOT NULL,      -- the hash of the join code that it used last
	state    TEXT NOT NULL,
	offer    TEXT NOT NULL,      -- JSON
	accepted TEXT NOT NULL,      -- JSON
	joined   BIGINT NOT NULL,
	process  TEXT NOT NULL,      -- the one that has the link; empty if it was closed
	since    BIGINT NOT NULL,    -- when the link was opened or closed
	held     BIGINT NOT NULL     -- when the process last said that it has the link
);
CREATE INDEX nodes_by_process ON nodes (process) WHERE process <> '';

CREATE TABLE node_codes (
	hash {bytes} PRIMARY KEY,    -- of a join code that nobody has used
	until BIGINT NOT NULL
);
CREATE INDEX node_codes_by_time ON node_codes (until);

CREATE TABLE node_calls (
	id        {bytes} PRIMARY KEY,
	node      {bytes} NOT NULL,
	key       TEXT NOT NULL,     -- of the device that had the name when the call was given: no other device gets it
	tool      TEXT NOT NULL,
	session   {bytes} NOT NULL,  -- its key
	person    {bytes} NOT NULL,
	agent     TEXT NOT NULL,
	turn      TEXT NOT NULL,
	args      TEXT NOT NULL,     -- JSON
	timeout   BIGINT NOT NULL,   -- microseconds
	made      BIGINT NOT NULL,
	sent      BIGINT NOT NULL,
	cancelled BIGINT NOT NULL,
	outcome   TEXT NOT NULL,     -- JSON
	ended     BIGINT NOT NULL,
	settled   BIGINT NOT NULL    -- since when nobody waits for it: it has ended, or was cancelled
);
CREATE INDEX node_calls_open ON node_calls (node, made, id) WHERE ended = 0;
CREATE INDEX node_calls_by_session ON node_calls (session);
CREATE INDEX node_calls_by_person ON node_calls (person);
CREATE INDEX node_calls_settled ON node_calls (settled) WHERE settled > 0;
`

// A Table stores nodes, join codes and calls in a database. Several processes may use the same one at a time.
//
// What two of them must not do at once is one statement, whose condition the database checks again once it has locked the
// row. Statements that need a session, a node and a call lock them in this order.
type Table struct {
	db *sqldb.DB
	// What PostgreSQL needs at the end of a query so that the rows which it has found stay as they are until the commit. In
	// SQLite one transaction writes at a time.
	lockNodeSuffix, lockSessionAndNodeSuffix, skipLockedSuffix string
	lastSweep                                                  atomic.Int64 // when old calls were removed last, in nanoseconds since 1970
}

// NewTable returns the table in a database that has its Migration.
func NewTable(db *sqldb.DB) *Table {
	if !db.IsPostgres() {
		return &Table{db: db}
	}
	return &Table{
		db:                       db,
		lockNodeSuffix:           " FOR SHARE",
		lockSessionAndNodeSuffix: " FOR KEY SHARE OF s FOR SHARE OF n", // appends change the session's row and need not wait
		skipLockedSuffix:         " FOR UPDATE SKIP LOCKED",
	}
}

// Invite records a join code by its hash: until then it can be used, once.
func (t *Table) Invite(ctx context.Context, hash string, until time.Time) error {
	err := t.db.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec("DELETE FROM node_codes WHERE until <= ?", time.Now().UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO node_codes (hash, until) VALUES (?, ?) ON CONFLICT (hash) DO UPDATE SET until = excluded.until",
			sqldb.Text(hash), until.UnixMicro())
		return err
	})
	return wrap("record a join code", err)
}

// Join records a node that knows a code, in the state Waiting, and takes its name, key, offer and time of joining from n. It
// returns ErrCode if the code is not valid, and ErrTaken if a device with another key has joined under the name and was not
// revoked; the code then can still be used. Nothing changes if the same device has joined already. Calls that a revoked
// device was given under the name stay its own.
func (t *Table) Join(ctx context.Context, hash string, n Node) error {
	hash, name, key := sqldb.Text(hash), sqldb.Text(n.Name), hex.EncodeToString(n.Key)
	err := t.db.Write(ctx, func(tx *sqldb.Tx) error {
		valid, err := tx.Exec("DELETE FROM node_codes WHERE hash = ? AND until > ?", hash, time.Now().UnixMicro())
		if err != nil {
			return err
		}
		if valid == 0 { // the device may have used it itself, and not have heard so
			var same int
			err := tx.Get("SELECT 1 FROM nodes WHERE name = ? AND key = ? AND code = ? AND state <> 'revoked'", []any{name, key, hash}, &same)
			if errors.Is(err, sql.ErrNoRows) {
				return ErrCode
			}
			return err
		}
		known, err := tx.Exec("UPDATE nodes SET code = ? WHERE name = ? AND key = ? AND state <> 'revoked'", hash, name, key)
		if err != nil || known > 0 {
			return err
		}
		joined, err := tx.Exec(`INSERT INTO nodes (name, key, code, state, offer, accepted, joined, process, since, held)
			VALUES (?, ?, ?, 'waiting', ?, '', ?, '', 0, 0)
			ON CONFLICT (name) DO UPDATE SET key = excluded.key, code = excluded.code, state = excluded.state, offer = excluded.offer,
				accepted = '', joined = excluded.joined, process = '', since = 0, held = 0 WHERE nodes.state = 'revoked'`,
			name, key, hash, toColumn(n.Offer), sqldb.Micros(n.JoinedAt))
		if err == nil && joined == 0 {
			err = ErrTaken
		}
		return err
	})
	return wrap("record that node "+n.Name+" has joined", err)
}

const nodeColumns = "name, key, state, offer, accepted, joined, process, since, held"

// Node returns a node, or ErrUnknown.
func (t *Table) Node(ctx context.Context, name string) (Node, error) {
	n, err := scanNode(t.db.Read.QueryRowContext(ctx, "SELECT "+nodeColumns+" FROM nodes WHERE name = ?", sqldb.Text(name)).Scan)
	return n, wrap("look up node "+name, err)
}

// Nodes returns all nodes, by name.
func (t *Table) Nodes(ctx context.Context) (all []Node, err error) {
	found, err := t.db.Read.QueryContext(ctx, "SELECT "+nodeColumns+" FROM nodes ORDER BY name")
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		n, err := scanNode(found.Scan)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		all = append(all, n)
	}
	return all, found.Err()
}

// Accept records what an owner accepts of a node that offers exactly that. It returns ErrChanged if the node offers
// something else now, and ErrRevoked if it is revoked and has a key: it must join again. One without a key has no other way
// back.
func (t *Table) Accept(ctx context.Context, name string, offer, accepted json.RawMessage) error {
	changed, err := t.db.Exec(ctx, "UPDATE nodes SET state = 'accepted', accepted = ? WHERE name = ? AND offer = ? AND (state <> 'revoked' OR key = '')",
		toColumn(accepted), sqldb.Text(name), toColumn(offer))
	if err == nil && changed == 0 {
		if err = t.checkKnown(ctx, name); err == nil {
			err = ErrChanged
		}
	}
	return wrap("accept node "+name, err)
}

// checkKnown returns ErrUnknown if there is no such node, and ErrRevoked if it is revoked.
func (t *Table) checkKnown(ctx context.Context, name string) error {
	n, err := t.Node(ctx, name)
	if err == nil && n.State == Revoked {
		err = ErrRevoked
	}
	return err
}

// Revoke revokes a node; its calls that were not sent end as the outcome says. It may be repeated.
func (t *Table) Revoke(ctx context.Context, name string, outcome json.RawMessage, now time.Time) error {
	at := now.UnixMicro()
	err := t.db.Write(ctx, func(tx *sqldb.Tx) error {
		there, err := tx.Exec(`UPDATE nodes SET state = 'revoked', accepted = '', process = '', since = CASE WHEN process = '' THEN since ELSE ? END
			WHERE name = ?`, at, sqldb.Text(name))
		if err == nil && there == 0 {
			err = ErrUnknown
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE node_calls SET outcome = ?, ended = ?, settled = ? WHERE node = ? AND ended = 0 AND sent = 0",
			toColumn(outcome), at, at, sqldb.Text(name))
		return err
	})
	return wrap("revoke node "+name, err)
}

// Link records that this process has the link of a node now, in place of any other, and what the node offers. It returns
// the node; ErrRevoked if that is revoked.
func (t *Table) Link(ctx context.Context, name, process string, offer json.RawMessage, now time.Time) (Node, error) {
	at := now.UnixMicro()
	n, err := scanNode(func(dest ...any) error {
		return t.db.Get(ctx, "UPDATE nodes SET process = ?, since = ?, held = ?, offer = ? WHERE name = ? AND state <> 'revoked' RETURNING "+nodeColumns,
			[]any{sqldb.Text(process), at, at, toColumn(offer), sqldb.Text(name)}, dest...)
	})
	if errors.Is(err, ErrUnknown) {
		if found := t.checkKnown(ctx, name); found != nil {
			err = found
		}
	}
	return n, wrap("record the link of node "+name, err)
}

// Unlink records that a process has lost a link. It changes nothing if another process has it.
func (t *Table) Unlink(ctx context.Context, name, process string, now time.Time) error {
	_, err := t.db.Exec(ctx, "UPDATE nodes SET process = '', since = ? WHERE name = ? AND process = ? AND process <> ''",
		now.UnixMicro(), sqldb.Text(name), sqldb.Text(process))
	return wrap("record that the link of node "+name+" is lost", err)
}

// Hold records that a process still has its links; see [LinkLifetime].
func (t *Table) Hold(ctx context.Context, process string, now time.Time) error {
	_, err := t.db.Exec(ctx, "UPDATE nodes SET held = ? WHERE process = ? AND process <> ''", now.UnixMicro(), sqldb.Text(process))
	return wrap("record that links are open", err)
}

// scanNode reads a node's row. It returns ErrUnknown if there is none.
func scanNode(scan func(dest ...any) error) (n Node, err error) {
	var key, offer, accepted string
	var joined, since, held int64
	err = scan(&n.Name, &key, &n.State, &offer, &accepted, &joined, &n.Process, &since, &held)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrUnknown
	}
	if err != nil {
		return Node{}, err
	}
	if n.Key, err = hex.DecodeString(key); err != nil {
		return Node{}, err
	}
	n.Name, n.Process = sqldb.Untext(n.Name), sqldb.Untext(n.Process)
	n.Offer, n.Accepted, n.JoinedAt = fromColumn(offer), fromColumn(accepted), sqldb.FromMicros(joined)
	if n.Process != "" && time.Since(time.UnixMicro(held)) > LinkLifetime {
		n.Process, since = "", held
	}
	n.LinkChanged = sqldb.FromMicros(since)
	return n, nil
}

// wrap says what has failed.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// toColumn returns JSON as a column stores it, and undocument the reverse.
func toColumn(raw json.RawMessage) string { return sqldb.Text(string(raw)) }

func fromColumn(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(sqldb.Untext(text))
}
