package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// An index is compared by samples: the newest entries of the newest sessions and of some others.
const (
	sampleSessions = 100
	sampleEntries  = 500
	maxCountedRows = 200_000 // the most rows that PostgreSQL counts; above that, its estimate is good enough
)

// State says how complete the index is; see [Rebuilder].
func (t *Table) State(ctx context.Context) (State, error) {
	s, err := t.state(ctx)
	if err != nil {
		return State{}, fmt.Errorf("look at the index: %w", err)
	}
	return s, nil
}

func (t *Table) state(ctx context.Context) (s State, err error) {
	if s.Indexed, err = t.count(ctx); err != nil {
		return s, err
	}
	err = t.db.Read.QueryRowContext(ctx, `SELECT CAST(coalesce(sum(last - indexed), 0) AS BIGINT), CAST(coalesce(sum(CASE WHEN last - indexed > ? THEN last - indexed ELSE 0 END), 0) AS BIGINT)
		FROM sessions WHERE indexed < last`, int64(maxUnindexed)).Scan(&s.Unindexed, &s.Waiting)
	if err != nil {
		return s, err
	}
	s.Unindexed -= s.Waiting
	s.Missing, s.Stray, err = t.Compare(ctx)
	return s, err
}

// Compare compares the index with samples of the log; see [Rebuilder].
func (t *Table) Compare(ctx context.Context) (missing, stray int64, err error) {
	ids, err := t.sample(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("compare the index: %w", err)
	}
	for _, id := range ids {
		m, s, err := t.compare(ctx, id)
		if err != nil {
			return 0, 0, fmt.Errorf("compare the index: %w", err)
		}
		missing, stray = missing+m, stray+s
	}
	return missing, stray, nil
}

// count returns how many rows the index has; on PostgreSQL, the server's estimate if it has many.
func (t *Table) count(ctx context.Context) (n int64, err error) {
	query := "SELECT count(*) FROM entry_words_docsize"
	if t.db.IsPostgres() {
		err := t.db.Read.QueryRowContext(ctx, "SELECT CAST(reltuples AS BIGINT) FROM pg_class WHERE oid = to_regclass('entry_words')").Scan(&n)
		if err != nil || n > maxCountedRows {
			return n, err
		}
		query = "SELECT count(*) FROM entry_words"
	}
	err = t.db.Read.QueryRowContext(ctx, query).Scan(&n)
	return n, err
}

// sample returns the numbers of the sessions to compare: the newest, and some from a random place. It
// takes both from the sessions that exist and from those with rows in the index.
func (t *Table) sample(ctx context.Context) (ids []int64, err error) {
	var highest sql.NullInt64
	if err := t.db.Read.QueryRowContext(ctx, "SELECT max(id) FROM sessions").Scan(&highest); err != nil {
		return nil, err
	}
	for _, below := range []int64{math.MaxInt64, rand.Int64N(highest.Int64+1) + 1} { //nolint:gosec // it guards nothing
		found, err := t.sessionsInIndex(ctx, below, sampleSessions)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
		rows, err := t.db.Read.QueryContext(ctx, "SELECT id FROM sessions WHERE id < ? ORDER BY id DESC LIMIT ?", below, sampleSessions)
		if err != nil {
			return nil, err
		}
		if ids, err = scanNumbers(rows, ids); err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// scanNumbers appends the numbers in a query's result, and closes it.
func scanNumbers(rows *sql.Rows, numbers []int64) (_ []int64, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, rows.Err()
}

// compare returns how many of a session's newest entries should be in the index but are not, and how many
// session the index do not exist.
func (t *Table) compare(ctx context.Context, session int64) (missing, stray int64, err error) {
	indexed, last := int64(0), int64(0)
	err = t.db.Read.QueryRowContext(ctx, "SELECT indexed, last FROM sessions WHERE id = ?", session).Scan(&indexed, &last)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, 0, err
	}
	from := max(0, indexed-sampleEntries)
	query, args := "SELECT id & 268435455 FROM entry_words_docsize WHERE id > ? AND id < ?", []any{rowOf(session, from), rowOf(session+1, 0)}
	if t.db.IsPostgres() {
		query, args = "SELECT n FROM entry_words WHERE session = ? AND n > ?", []any{session, from}
	}
	rows, err := t.db.Read.QueryContext(ctx, query+" LIMIT ?", append(args, 4*sampleEntries)...)
	if err != nil {
		return 0, 0, err
	}
	has, err := scanNumbers(rows, nil)
	if err != nil {
		return 0, 0, err
	}
	there, err := t.entriesWithWords(ctx, session, from)
	if err != nil {
		return 0, 0, err
	}
	for _, n := range there {
		if n <= indexed && !slices.Contains(has, n) {
			missing++
		}
	}
	for _, n := range has {
		if !slices.Contains(there, n) {
			stray++
		}
	}
	return missing, stray, nil
}

// entriesWithWords returns the numbers of the entries after one that have words.
func (t *Table) entriesWithWords(ctx context.Context, session, from int64) (numbers []int64, err error) {
	found, err := t.db.Read.QueryContext(ctx, "SELECT "+entryColumns+" FROM entries e WHERE e.session = ? AND e.n > ? AND e.kind IN "+mayHaveWords+" LIMIT ?", session, from, 4*sampleEntries)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		_, e, err := scanEntry(found)
		if err != nil {
			return nil, err
		}
		if hasWords(e) {
			numbers = append(numbers, e.N)
		}
	}
	return numbers, found.Err()
}
