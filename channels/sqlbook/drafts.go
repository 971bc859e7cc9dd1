package sqlbook

import (
	"context"
	"errors"
	"fmt"

	"parley/channels"
	"parley/sessions/sqldb"
)

// schemaDrafts adds an index of the few parts that are drafts.
const schemaDrafts = `CREATE INDEX parts_drafts ON parts (send) WHERE state = '` + channels.Drafted + `'`

// Drafts implements channels.Drafts.
func (b *Book) Drafts(ctx context.Context, channel string) ([]channels.Send, error) {
	ids, err := list(ctx, b.db.Read, func(scan func(...any) error) (id string, err error) {
		err = scan(&id)
		untext(&id)
		return id, err
	}, `SELECT send FROM parts JOIN sends ON sends.id = send WHERE state = '`+channels.Drafted+`' AND channel = ? ORDER BY begun, send`, sqldb.Text(channel))
	if err != nil {
		return nil, fmt.Errorf("list the drafts of %s: %w", channel, err)
	}
	drafts := make([]channels.Send, 0, len(ids))
	for _, id := range ids {
		draft, err := b.Lookup(ctx, id)
		if errors.Is(err, channels.ErrNoSend) { // erased meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		drafts = append(drafts, draft)
	}
	return drafts, nil
}
