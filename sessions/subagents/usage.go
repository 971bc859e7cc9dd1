package subagents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/sessions/sqldb"
)

// GetVisible returns a task for showing it to people; ErrNone if there is none with that id, or if its session
// is to be erased.
func (t Table) GetVisible(ctx context.Context, id string) (Task, error) {
	return t.one(ctx, "id = ? AND dropped = 0", sqldb.Text(id))
}

// A Usage says how many model calls were made for a task so far, and how many tokens they took.
type Usage struct{ Calls, Input, Output int64 }

// UsageOf returns, by the tasks' ids, what the turns that the tasks began have used, without those that have
// used nothing. A task that joined a running turn has used nothing by itself.
func (t Table) UsageOf(ctx context.Context, tasks ...Task) (used map[string]Usage, err error) {
	used = make(map[string]Usage, len(tasks))
	if len(tasks) == 0 {
		return used, nil
	}
	var args []any
	for _, k := range tasks {
		args = append(args, texts(k.ID, k.Session, MailID(k.ID))...)
	}
	t.DB.Flush()
	rows, err := t.DB.Read.QueryContext(ctx, `WITH asked (id, key, turn) AS (VALUES (?, ?, ?)`+strings.Repeat(", (?, ?, ?)", len(tasks)-1)+`)
		SELECT asked.id, count(*), CAST(sum(c.input) AS BIGINT), CAST(sum(c.output) AS BIGINT)
		FROM asked JOIN sessions s ON s.key = asked.key JOIN calls c ON c.session = s.id AND c.turn = asked.turn GROUP BY asked.id`, args...)
	if err != nil {
		return nil, fmt.Errorf("sum up what tasks have used: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id string
		var u Usage
		if err := rows.Scan(&id, &u.Calls, &u.Input, &u.Output); err != nil {
			return nil, fmt.Errorf("sum up what tasks have used: %w", err)
		}
		used[sqldb.Untext(id)] = u
	}
	return used, rows.Err()
}
