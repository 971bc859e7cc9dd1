package nodes

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"parley/sessions/sqldb"
)

// targetMark begins the recorded keys of nodes that the settings name as ssh:// targets. With it, they aren't the length of a key,
// so no signature is that of one, and such a node can open no link itself.
const targetMark = "ssh "

// TargetKey returns what is recorded as the key of a target whose home has that public key.
func TargetKey(public []byte) []byte { return append([]byte(targetMark), public...) }

// IsTarget reports whether the node is an ssh:// target that the settings name, or have named.
func (n Node) IsTarget() bool { return strings.HasPrefix(string(n.Key), targetMark) }

// Admit records what a target offers, all of which is accepted because the settings say so, and the key of its home: see
// TargetKey. Calls that another home was given under the name stay its own. It returns ErrTaken if the name is that of a node that
// is no target.
func (t *Table) Admit(ctx context.Context, name string, key []byte, offer, accepted json.RawMessage, now time.Time) error {
	changed, err := t.db.Exec(ctx, `INSERT INTO nodes (name, key, code, state, offer, accepted, joined, process, since, held)
		VALUES (?, ?, '', 'accepted', ?, ?, ?, '', 0, 0)
		ON CONFLICT (name) DO UPDATE SET key = excluded.key, state = excluded.state, offer = excluded.offer, accepted = excluded.accepted
		WHERE nodes.key LIKE ?`,
		sqldb.Text(name), hex.EncodeToString(key), toColumn(offer), toColumn(accepted), now.UnixMicro(), hex.EncodeToString([]byte(targetMark))+"%")
	if err == nil && changed == 0 {
		err = ErrTaken
	}
	return wrap("admit the target "+name, err)
}
