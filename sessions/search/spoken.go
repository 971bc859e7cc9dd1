package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/sessions"
	"parley/sessions/sqldb"
)

// sessionsPersonSpokeIn selects an agent's sessions in which a person has said something, those that
// were written to last first. It steps from session to session in the index of entries by person.
const sessionsPersonSpokeIn = `
	WITH RECURSIVE spoken (session) AS (
		SELECT min(session) FROM entries WHERE person = ? AND person <> ''
		UNION ALL
		SELECT (SELECT min(session) FROM entries WHERE person = ? AND person <> '' AND session > spoken.session) FROM spoken WHERE spoken.session IS NOT NULL
	) SELECT s.key, s.updated FROM spoken JOIN sessions s ON s.id = spoken.session
	WHERE s.agent = ? AND EXISTS (SELECT 1 FROM entries e WHERE e.person = ? AND e.person <> '' AND e.session = s.id AND e.kind NOT IN ('notice', 'ask_ended'))
	ORDER BY s.updated DESC, s.key LIMIT ?`

// SessionsSpokenIn lists sessions in which one of the people has said something; see [Index].
func (t *Table) SessionsSpokenIn(ctx context.Context, agent string, people []string, limit int) (keys []string, err error) {
	if limit <= 0 {
		return nil, nil
	}
	t.db.Flush()
	newest := map[string]string{}
	for _, p := range people {
		if p == "" {
			continue
		}
		person := sqldb.Text(p)
		if err := t.spokenBy(ctx, newest, person, person, sessions.EncodePart(agent), person, limit); err != nil {
			return nil, fmt.Errorf("look where people have spoken: %w", err)
		}
	}
	for key := range newest {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(newest[b], newest[a]), cmp.Compare(a, b)) })
	return keys[:min(len(keys), limit)], nil
}

// spokenBy adds the sessions of one person, and when each was last written to.
func (t *Table) spokenBy(ctx context.Context, newest map[string]string, args ...any) (err error) {
	found, err := t.db.Read.QueryContext(ctx, sessionsPersonSpokeIn, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var key, updated string
		if err := found.Scan(&key, &updated); err != nil {
			return err
		}
		newest[sqldb.Untext(key)] = updated
	}
	return found.Err()
}
