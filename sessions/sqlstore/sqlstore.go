// Package sqlstore keeps the logs of sessions, and what people have spent, in a SQL database.
//
// An entry is a row. A session's row says how long its log is, what the newest
// summary covers, and which turns are not finished; each append updates it in the
// same transaction. So opening a session costs one write, which raises its fence,
// and one read of the entries that are still needed, however long its past is.
//
// Entries do not change once they are written, except by erasing, which raises the
// fence. So Open may read them after the statement that raised the fence, up to the
// last number that this statement returned.
//
// The files, in reading order:
//
//   - sqlstore.go, schema.go: opening a store and a session; the tables
//   - log.go, state.go, row.go: appending, and opening a log again whose holder has it in
//     memory; what a session's row says; an entry as a row
//   - publish.go: publishing messages together with entries
//   - postgres.go: statements that do on PostgreSQL what SQLite does in several
//   - reader.go, budget.go: reading logs back; reserving and spending tokens
//   - erase.go, session_erasure.go: erasing from all sessions, and from one
//   - audit.go: what was done, for those who have to account for it
//   - jobs.go: what runs in the background
//   - copy.go: copying everything to another database
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/purges"
	"parley/sessions/schedules"
	"parley/sessions/sqldb"
	"parley/sessions/tasks"
)

var (
	_ sessions.Store  = (*Store)(nil)
	_ sessions.Reader = (*Store)(nil)
	_ sessions.Budget = (*Store)(nil)
)

// A Store keeps sessions and budgets in one database. Several processes may have
// it open at once.
type Store struct {
	db      *sqldb.DB
	queries queries
	inserts []string     // the INSERT statements, by their number of rows
	swept   atomic.Value // the day on which sweep last ran
	purges  *purges.Record
	money   *bill.Budget
	sharer  Sharer                                                        // nil if messages are kept elsewhere
	ask     func(session string, started sessions.Entry) (Question, bool) // nil if nothing is asked
}

// maxInsert is the most rows of one INSERT.
const maxInsert = 8

// Open opens the store at place: a PostgreSQL database by its URL, or else the
// SQLite file of that path, which it creates if need be.
func Open(ctx context.Context, place string) (*Store, error) {
	db, err := sqldb.OpenAt(ctx, place, Schema())
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return use(ctx, db)
}

// Use opens the store in a database that was opened with its Schema. The caller closes the
// database after the store.
func Use(ctx context.Context, db *sqldb.DB) (*Store, error) { return use(ctx, db.Lend()) }

func use(ctx context.Context, db *sqldb.DB) (_ *Store, err error) {
	s := &Store{db: db, money: bill.NewBudget(db)}
	s.purges = purges.New(db, "entries", "sessions", "spending", "reservations", "audit", "jobs", "schedules", "tasks", "time_zones", "counters")
	if s.queries, err = prepare(ctx, db.Read); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), db.Close())
	}
	const values = ", (?, ?, ?, ?, ?, ?, ?, ?, ?)"
	for n := range maxInsert + 1 {
		s.inserts = append(s.inserts, "INSERT INTO entries (session, "+columns+") VALUES "+
			strings.TrimPrefix(strings.Repeat(values, n), ", "))
	}
	return s, nil
}

// Close carries out the writes under way and closes the database.
func (s *Store) Close() error {
	return errors.Join(s.queries.close(), s.db.Close())
}

// OnLost has report called when writes that nobody waits for are lost; see [sqldb.DB].
func (s *Store) OnLost(report func(writes int, err error)) { s.db.OnLost(report) }

// Schedules returns the table of schedules, which is in the same database.
func (s *Store) Schedules() schedules.Table { return schedules.Table{DB: s.db} }

// Tasks returns the table of tasks of sub-agents, which is in the same database.
func (s *Store) Tasks() tasks.Table { return tasks.Table{DB: s.db} }

// Bill returns the table that sums up what calls of models have cost, as the logs record
// it.
func (s *Store) Bill() bill.Table { return bill.Table{DB: s.db} }

// Money returns the budget that bounds what models may cost.
func (s *Store) Money() *bill.Budget { return s.money }

// Writable writes a row, and returns an error if the store does not take it. Reading
// would prove nothing: a standby and a full disk can be read.
func (s *Store) Writable(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `INSERT INTO spending (person, day, tokens) VALUES ('', '', 0)
		ON CONFLICT (person, day) DO UPDATE SET tokens = 0`)
	if err != nil {
		return fmt.Errorf("write to the store: %w", err)
	}
	return nil
}

// Open raises the session's fence and returns its log; see [sessions.Store].
func (s *Store) Open(ctx context.Context, key string, fence int64) (sessions.Log, error) {
	l, err := s.open(ctx, key, fence)
	if err != nil {
		return nil, fmt.Errorf("open session %s: %w", key, err)
	}
	return l, nil
}

// open raises the session's fence and reads its log.
func (s *Store) open(ctx context.Context, key string, fence int64) (*log, error) {
	if err := sessions.CheckKey(key); err != nil {
		return nil, err
	}
	l := &log{store: s, key: key, fence: fence, state: state{fence: fence}}
	now := formatTime(time.Now())
	// One statement creates the session or raises its fence. It returns no row where
	// a higher fence has opened the session, or its tombstone forbids this fence.
	_, err := s.db.Group(ctx, `
		INSERT INTO sessions (key, fence, last, summary, covers, unfinished, created, updated)
		SELECT CAST(? AS TEXT), CAST(? AS BIGINT), 0, 0, 0, '', CAST(? AS TEXT), CAST(? AS TEXT)
		WHERE NOT EXISTS (SELECT 1 FROM graves WHERE key = ? AND fence >= ?)
		ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE sessions.fence <= excluded.fence
		RETURNING id, erasures, last, summary, covers, unfinished`,
		[]any{key, fence, now, now, key, fence},
		&l.session, &l.erasures, &l.state.last, &l.state.summary, &l.state.covers, &l.state.unfinished)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, sessions.ErrFenced
	case err != nil:
		return nil, err
	}
	if err := s.checkTombstone(ctx, l, key); err != nil {
		return nil, err
	}
	l.entries, err = s.readRelevant(ctx, l.session, l.state)
	return l, err
}

// readRelevant reads the entries that a log's holder needs: all entries after the newest summary's
// end, and of the earlier ones those that the summary keeps and those of unfinished turns.
func (s *Store) readRelevant(ctx context.Context, session int64, st state) ([]sessions.Entry, error) {
	if st.last == 0 {
		return nil, nil
	}
	var entries []sessions.Entry
	var err error
	for _, t := range st.unfinished {
		if t.From > st.covers {
			continue
		}
		if entries, err = readEntries(ctx, s.queries.turn, entries, session, t.From, st.covers, t.ID); err != nil {
			return nil, err
		}
	}
	uncovered, err := readEntries(ctx, s.queries.span, nil, session, st.covers+1, st.last)
	if err != nil {
		return nil, err
	}
	if entries, err = s.appendKept(ctx, entries, uncovered, session, st); err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b sessions.Entry) int { return cmp.Compare(a.N, b.N) })
	if len(entries) == 0 {
		return uncovered, nil
	}
	return append(entries, uncovered...), nil
}

// appendKept appends the covered entries that the newest summary keeps and that are not
// among entries already.
func (s *Store) appendKept(ctx context.Context, entries, uncovered []sessions.Entry, session int64, st state) ([]sessions.Entry, error) {
	i := slices.IndexFunc(uncovered, func(e sessions.Entry) bool { return e.N == st.summary })
	if i < 0 {
		return entries, nil
	}
	sum, err := sessions.Decode[sessions.Summary](uncovered[i])
	if err != nil {
		return nil, err
	}
	args := []any{session}
	for _, n := range sum.Keep {
		if n <= st.covers && !slices.ContainsFunc(entries, func(e sessions.Entry) bool { return e.N == n }) {
			args = append(args, n)
		}
	}
	if len(args) == 1 {
		return entries, nil
	}
	found, err := s.db.Read.QueryContext(ctx, "SELECT "+columns+" FROM entries WHERE session = ? AND n IN (?"+strings.Repeat(", ?", len(args)-2)+")", args...)
	if err != nil {
		return nil, err
	}
	return scanRows(found, entries, func(r row) (sessions.Entry, error) { return r.toEntry() })
}
