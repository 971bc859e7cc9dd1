package sqlitebus

import (
	"context"
	"fmt"
	"time"

	"parley/bus"
	"parley/sessions/sqldb"
)

// A pauser keeps the mailboxes of a topic from being claimed for a while.
type pauser struct{ *mailboxes }

// Pause implements bus.Pauser: it stores the end of the pause, so that the pause outlives a
// restart, and tells the scheduler.
func (p *pauser) Pause(ctx context.Context, topic bus.Topic, d time.Duration) error {
	var until time.Time
	if d > 0 {
		until = time.Now().Add(d)
	}
	err := p.db.Write(ctx, func(tx *sqldb.Tx) error {
		if until.IsZero() {
			_, err := tx.Exec(`DELETE FROM pause WHERE topic = ?`, topic)
			return err
		}
		_, err := tx.Exec(`INSERT OR REPLACE INTO pause (topic, until) VALUES (?, ?)`, topic, until.UnixMicro())
		return err
	})
	if err != nil {
		return fmt.Errorf("pause: %w", asClosed(err))
	}
	p.sched.pause(topic, until)
	return nil
}
