// Package sqlstore stores the logs of sessions, people's spending and audit records in a SQL database, beside the
// tables of other packages, such as that of jobs.
//
// An entry is a row. A session's row says how long its log is, what the newest summary covers, and which
// turns are not finished; each append updates it in the same transaction. So opening a session takes one
// write, which raises its fence, and one read of the entries that are still needed, no matter how long
// the log is.
//
// Entries do not change once they are written; they can only be erased. So Open may read them after the
// statement that raised the fence, up to the last number that this statement returned. An erasure raises
// the fence too, or the count of erasures in the session's row, so that nobody goes on with what was
// erased.
//
// The files, in reading order:
//
//   - sqlstore.go, schema.go: the store and its parts; the tables
//   - log.go, state.go, row.go: a session's log; what a session's row says; an entry as a row
//   - opening.go, queries.go, brief.go, packs.go: opening a session, and reading what still matters of its log,
//     on SQLite from packs
//   - append.go, append_postgres.go: appending, and on PostgreSQL in one statement
//   - soon.go, publish.go, reopen.go: appending with a shared flush, and together with messages;
//     opening a log again whose holder has it in memory
//   - reader.go: reading logs back; titles.go: what sessions are called; recent.go: which were used
//     last; open_turns.go: how far turns are; schedule_runs.go: the turns that schedules have begun
//   - tokens.go, budget.go, holders.go, change.go, budget_postgres.go: reserving and spending
//     tokens; whom reservations belong to; changing them with an append
//   - audit.go: what was done, for those who have to account for it; audit_notes.go: turns and refusals
//   - erase.go: erasing from all sessions; erasure_scope.go, erasure_rows.go, answers.go: what is
//     erased of one; message_erasure.go: one message; batches.go: statements that go in steps;
//     purges.go: removing the traces of deleted rows from the files
//   - copy.go: copying everything to another database
package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/sessions"
	"parley/sessions/activity"
	"parley/sessions/archive"
	"parley/sessions/bill"
	"parley/sessions/jobs"
	"parley/sessions/nodes"
	"parley/sessions/participants"
	"parley/sessions/rates"
	"parley/sessions/schedules"
	"parley/sessions/search"
	"parley/sessions/sqldb"
	"parley/sessions/subagents"
	"parley/sessions/subscriptions"
)

var _ interface {
	sessions.Store
	sessions.Peeker
	sessions.Reader
	sessions.TurnReader
	sessions.Finder
	sessions.Budget
	sessions.Eraser
	sessions.Jobs
	sessions.JobLister
	sessions.Auditor
	sessions.SoonAuditor
} = (*Store)(nil)

// jobTable is an alias for [jobs.Table], so that Store can embed it without exporting the field.
type jobTable = jobs.Table

// A Store stores sessions and budgets in one database. Several processes may have it open at once. It
// consists of one part for each kind of data.
type Store struct {
	db      *sqldb.DB
	queries *queries
	words   *search.Table
	rates   *rates.Table

	*logs
	*reader
	*tokens
	*jobTable
	*audits
	*eraser
}

// Open opens the store at place: a PostgreSQL database by its URL, or else the SQLite file with that
// path, which it creates if needed.
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

func use(ctx context.Context, db *sqldb.DB) (*Store, error) {
	q, err := prepare(ctx, db.Read, db.IsPostgres())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), db.Close())
	}
	s := &Store{
		db: db, queries: q, words: search.NewTable(db), rates: rates.NewTable(db),
		reader: &reader{db: db, queries: q, participants: participants.NewTable(db)},
		tokens: &tokens{db: db, spent: q.spent, money: bill.NewBudget(db)},
		audits: &audits{db},
	}
	s.logs = newLogs(db, q, s.tokens)
	s.jobTable = jobs.NewTable(db, s.logs.subscriptions)
	s.eraser = newEraser(db, s.tokens, s.audits, s.SubAgents())
	return s, nil
}

// Close waits for the writes that have begun, and closes the database if Open has opened it.
func (s *Store) Close() error {
	return errors.Join(s.queries.close(), s.db.Close())
}

// OnLost sets the function that is called when writes that nobody waits for are lost; see
// [sqldb.DB.OnLost].
func (s *Store) OnLost(report func(writes int, err error)) { s.db.OnLost(report) }

// Schedules returns the table of schedules, which is in the same database.
func (s *Store) Schedules() schedules.Table {
	return schedules.Table{DB: s.db, Events: s.logs.subscriptions}
}

// Words returns the index of what was said, which is in the same database.
func (s *Store) Words() *search.Table { return s.words }

// Participants returns the table of who has said something in which session.
func (s *Store) Participants() *participants.Table { return s.reader.participants }

// SubAgents returns the table of tasks of sub-agents, which is in the same database.
func (s *Store) SubAgents() subagents.Table {
	return subagents.Table{DB: s.db, Events: s.logs.subscriptions}
}

// Nodes returns the table of nodes and of the calls that they are given, which is in the same database.
func (s *Store) Nodes() *nodes.Table { return nodes.NewTable(s.db) }

// Bill returns the table that sums up what model calls have cost according to the logs.
func (s *Store) Bill() bill.Table { return bill.Table{DB: s.db} }

// Activity returns the table of what the fleet has done, in which each ended turn is counted.
func (s *Store) Activity() *activity.Table { return s.logs.activity }

// Subscriptions returns the table of events that are to be posted to subscribers. What is appended to logs is recorded
// there.
func (s *Store) Subscriptions() *subscriptions.Table { return s.logs.subscriptions }

// Archive returns the state of the archive, to which the audit of each day is moved.
func (s *Store) Archive() archive.Table { return archive.Table{DB: s.db} }

// Money returns the budget that limits what models may cost.
func (s *Store) Money() *bill.Budget { return s.tokens.money }

// Rates returns the table of people's calls of tools whose number is limited.
func (s *Store) Rates() *rates.Table { return s.rates }

// Writable writes a row, and returns an error if the store does not accept it. Reading would prove
// nothing: a standby and a full disk can be read.
func (s *Store) Writable(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `INSERT INTO spending (person, day, tokens) VALUES ('', '', 0)
		ON CONFLICT (person, day) DO UPDATE SET tokens = 0`)
	if err != nil {
		return fmt.Errorf("write to the store: %w", err)
	}
	return nil
}

// LastWrite returns when anybody last wrote to the store's files; see [sqldb.DB.LastWrite].
func (s *Store) LastWrite() time.Time { return s.db.LastWrite() }
