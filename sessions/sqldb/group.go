package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rowLockTimeout is how many milliseconds a group of statements waits for a row that another transaction
// has locked. Then the group is rolled back and each of its statements runs alone, so that only the
// one that needs the row waits for it.
const rowLockTimeout = "100"

const setLockTimeoutQuery = "SELECT set_config('lock_timeout', $1, true)"

// inTurnLockTimeout is how many milliseconds a group waits until no other group of InTurn runs. A process
// that was stopped in the middle of its group must not hold up all others.
const inTurnLockTimeout = "1000"

// takeTurnQuery takes a lock that one group of InTurn at a time holds until its commit, among all
// processes that share the tables.
const takeTurnQuery = "SELECT pg_advisory_xact_lock(hashtext('parley:turns:' || current_schema()))"

// errRolledBack says that a group was rolled back, usually because one of its statements failed.
var errRolledBack = errors.New("group undone")

// A statement is a write that consists of one SQL statement.
type statement struct {
	query     string
	args      []any
	dest      []any  // the variables that its row is scanned into; empty if it returns no row
	inTurn    bool   // whether it was given to InTurn, and so runs in a group of which one runs at a time
	sharedRow string // for a statement of Shared: the name of the row that others change too

	changed int64
	noRow   bool // whether it returned no row
	done    chan error
}

// runIn runs the statement in a transaction. If it returns no row, runIn records that and returns nil,
// because an error would roll the transaction back.
func (st *statement) runIn(tx *Tx) (err error) {
	st.noRow = false
	if len(st.dest) == 0 {
		st.changed, err = tx.Exec(st.query, st.args...)
		return err
	}
	err = tx.Get(st.query, st.args, st.dest...)
	st.noRow = errors.Is(err, sql.ErrNoRows)
	if st.noRow {
		return nil
	}
	return err
}

// result returns what the statement's caller gets: the number of changed rows and err, the error of
// running the statement. If err is nil and the statement should have returned a row but did not, the
// error is sql.ErrNoRows.
func (st *statement) result(err error) (int64, error) {
	if err == nil && st.noRow {
		err = sql.ErrNoRows
	}
	return st.changed, err
}

// groups queues the statements of many goroutines for two lanes, which are goroutines that each run one
// group after another. A lane runs all statements that have queued up as one transaction in one round
// trip; those that come meanwhile are its next group. More lanes would make more and smaller groups, and
// each costs a commit.
type groups struct {
	queue  chan *statement
	inTurn chan *statement // the queue of the lane whose groups run one at a time in all processes
	wg     sync.WaitGroup
}

func (s *postgresBackend) startLanes() {
	s.groups.queue, s.groups.inTurn = make(chan *statement, maxGroup), make(chan *statement, maxGroup)
	s.groups.wg.Go(func() { s.runLane(s.groups.queue) })
	s.groups.wg.Go(func() { s.runLane(s.groups.inTurn) })
}

// runLane runs the statements of one queue, group after group, until the queue is closed.
func (s *postgresBackend) runLane(queue <-chan *statement) {
	for st := range queue {
		runtime.Gosched() // lets callers that the last group woke queue for this one
		s.runGroup(gather(queue, []*statement{st}))
	}
}

func (s *postgresBackend) stopLanes() {
	close(s.groups.queue)
	close(s.groups.inTurn)
	s.groups.wg.Wait()
}

// group runs a statement together with others that come at the same time, and waits for
// its outcome.
func (s *postgresBackend) group(ctx context.Context, st *statement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.beginWrite() {
		return ErrClosed
	}
	defer s.writing.Done()
	st.done = make(chan error, 1)
	if st.inTurn {
		s.groups.inTurn <- st
	} else {
		s.groups.queue <- st
	}
	err := <-st.done
	if errors.Is(err, errRolledBack) { // usually because of another statement; nothing was written
		err = s.runSingle(context.WithoutCancel(ctx), st)
	}
	return err
}

// runGroup runs a group and gives each of its callers the outcome. A single statement is run as a group
// too, because only groups give up soon when they wait for a locked row.
func (s *postgresBackend) runGroup(batch []*statement) {
	err := s.transactGroup(batch)
	for _, st := range batch {
		st.done <- err
	}
}

// single runs a statement as a transaction of its own.
func (s *postgresBackend) single(ctx context.Context, st *statement) error {
	if !s.beginWrite() {
		return ErrClosed
	}
	defer s.writing.Done()
	return s.runSingle(ctx, st)
}

// runSingle runs a statement, which without BEGIN is a transaction of its own, and repeats that as repeat does.
func (s *postgresBackend) runSingle(ctx context.Context, st *statement) error {
	return s.repeat(ctx, func(conn *sql.Conn) (bool, error) { return false, st.runIn(&Tx{conn: conn}) })
}

// transactGroup runs a group in one transaction. It fails with errRolledBack if the group was certainly rolled back, or
// never sent over a broken connection. After any other error, except one of connecting, it may have been committed.
func (s *postgresBackend) transactGroup(batch []*statement) error {
	connect := s.connectLane
	if batch[0].inTurn { // these groups wait longer for one another
		connect = func() (*sql.Conn, error) { return s.connect(context.Background()) }
	}
	held, err := connect()
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }() // ResetSession checks the connection before it is used again
	var failed error
	err = held.Raw(func(dc any) error {
		c := dc.(*conn)
		if c.Conn.Conn().IsClosed() {
			return driver.ErrBadConn
		}
		ctx, cancel := c.withDeadline(context.Background())
		defer cancel()
		failed = c.noteReadOnly(c.sendGroup(ctx, batch))
		if _, refused := errors.AsType[*pgconn.PgError](failed); refused && !c.Conn.Conn().IsClosed() {
			failed = errRolledBack
		}
		return nil
	})
	if err != nil { // the connection was closed before anything was sent
		return errRolledBack
	}
	return failed
}

// sendGroup sends statements in one pipeline, which PostgreSQL runs as one transaction without BEGIN and
// COMMIT. If it returns nil, they are durable. Statements that change shared rows are sorted by these
// rows, as in every group, so that no two groups wait for each other.
func (c *conn) sendGroup(ctx context.Context, batch []*statement) error {
	var sent pgx.Batch
	if batch[0].inTurn {
		sent.Queue(setLockTimeoutQuery, inTurnLockTimeout)
		sent.Queue(takeTurnQuery)
	}
	if !c.waitsBriefly {
		sent.Queue(setLockTimeoutQuery, rowLockTimeout)
	}
	first := sent.Len()
	slices.SortStableFunc(batch, func(a, b *statement) int { return strings.Compare(a.sharedRow, b.sharedRow) })
	for _, st := range batch {
		sent.Queue(c.queries.postgresForm(st.query), st.args...)
	}
	results := c.Conn.Conn().SendBatch(ctx, &sent)
	var err error
	for range first {
		if err == nil {
			_, err = results.Exec()
		}
	}
	for _, st := range batch {
		if err != nil {
			break
		}
		err = st.readResult(results)
	}
	if end := results.Close(); err == nil && end != nil {
		err = fmt.Errorf("commit: %w", end)
	}
	return err
}

// readResult reads the statement's outcome from the results of the pipeline.
func (st *statement) readResult(results pgx.BatchResults) error {
	st.noRow = false
	if len(st.dest) == 0 {
		tag, err := results.Exec()
		st.changed = tag.RowsAffected()
		return err
	}
	err := results.QueryRow().Scan(st.dest...)
	st.noRow = errors.Is(err, pgx.ErrNoRows)
	if st.noRow {
		return nil
	}
	return err
}
