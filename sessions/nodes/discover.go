package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"parley/sessions/sqldb"
)

// ErrFull says that too many devices without a key wait to be accepted.
var ErrFull = errors.New("too many devices wait to be accepted")

// MaxDiscovered is how many devices without a key wait to be accepted at most: anybody at their broker can make up names.
const MaxDiscovered = 32

// IsKeyless reports whether the node is a device that cannot prove who it is. A record without a key is the only mark of it:
// a link opens only with a key, so nobody can open one under that name, and a device with a key never gets a record without.
func (n Node) IsKeyless() bool { return len(n.Key) == 0 }

// Discover records that a device without a key was heard, and what it offers, and returns its node. If process isn't "", that
// process can reach the device now; otherwise it stays recorded who can. A device that wasn't known is in the state Waiting.
//
// Discover returns ErrTaken if the name is that of a device with a key, even of a revoked one; ErrRevoked if an owner has
// revoked the node, which only another acceptance can change; and ErrFull if MaxDiscovered others wait.
func (t *Table) Discover(ctx context.Context, name, process string, offer json.RawMessage, now time.Time) (n Node, err error) {
	at, linked := now.UnixMicro(), int64(0)
	set, args := "offer = ?", []any{toColumn(offer)}
	if process != "" {
		linked = at
		set, args = set+", process = ?, since = ?, held = ?", append(args, sqldb.Text(process), at, at)
	}
	err = t.db.Write(ctx, func(tx *sqldb.Tx) error {
		n, err = scanNode(func(dest ...any) error {
			return tx.Get("UPDATE nodes SET "+set+" WHERE name = ? AND key = '' AND state <> 'revoked' RETURNING "+nodeColumns, append(args, sqldb.Text(name)), dest...)
		})
		if !errors.Is(err, ErrUnknown) {
			return err
		}
		added, err := tx.Exec(`INSERT INTO nodes (name, key, code, state, offer, accepted, joined, process, since, held)
			SELECT CAST(? AS TEXT), '', '', 'waiting', CAST(? AS TEXT), '', CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS BIGINT)
			WHERE (SELECT COUNT(*) FROM nodes WHERE key = '' AND state = 'waiting') < ? ON CONFLICT (name) DO NOTHING`,
			sqldb.Text(name), toColumn(offer), at, sqldb.Text(process), linked, linked, MaxDiscovered)
		if err != nil {
			return err
		}
		n, err = scanNode(func(dest ...any) error {
			return tx.Get("SELECT "+nodeColumns+" FROM nodes WHERE name = ?", []any{sqldb.Text(name)}, dest...)
		})
		switch {
		case added > 0:
		case errors.Is(err, ErrUnknown):
			err = ErrFull
		case err == nil && n.IsKeyless() && n.State == Revoked:
			err = ErrRevoked
		case err == nil:
			err = ErrTaken
		}
		return err
	})
	return n, wrap("record that node "+name+" was heard", err)
}

// OpenWithoutKey returns those calls that have not ended and were given to a device of that name without a key, in the order in
// which they were made. Calls of a device with a key are never among them, although it may have the name now.
func (t *Table) OpenWithoutKey(ctx context.Context, node string) ([]Call, error) {
	return t.openOf(ctx, node, "''")
}
