package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// groupWaits is how many milliseconds a group waits for a row that another
// transaction has locked. Then the group is rolled back and each of its statements
// runs alone, so that only the one that needs the row waits for it.
const groupWaits = "100"

const lockTimeout = "SELECT set_config('lock_timeout', $1, true)"

// turnWaits is how many milliseconds a group waits for its turn. A process that was
// stopped while it held the turn must not hold up all others.
const turnWaits = "1000"

// takeTurn is a lock that one group at a time holds until its commit, among all
// processes that share the tables.
const takeTurn = "SELECT pg_advisory_xact_lock(hashtext('parley:turns:' || current_schema()))"

// errUndone says that a group was rolled back, usually because of one of its
// statements.
var errUndone = errors.New("group undone")

// A statement is a write that consists of one SQL statement.
type statement struct {
	query string
	args  []any
	dest  []any // where its row is scanned to; empty if it returns none
	turns bool  // it goes to the groups that take turns; see InTurn

	changed int64
	none    bool // it returned no row
	done    chan error
}

// on runs the statement in a transaction. That it returns no row is noted and is no
// error, which would roll the transaction back.
func (st *statement) on(tx *Tx) (err error) {
	st.none = false
	if len(st.dest) == 0 {
		st.changed, err = tx.Exec(st.query, st.args...)
		return err
	}
	err = tx.Get(st.query, st.args, st.dest...)
	st.none = errors.Is(err, sql.ErrNoRows)
	if st.none {
		return nil
	}
	return err
}

func (st *statement) result(err error) (int64, error) {
	if err == nil && st.none {
		err = sql.ErrNoRows
	}
	return st.changed, err
}

// groups queues the statements of many goroutines for two lanes. A lane runs all that
// has queued up as one transaction in one round trip; what comes meanwhile is its
// next group. More lanes would make more and smaller groups, and each costs a commit.
type groups struct {
	queue chan *statement
	turns chan *statement // those that take turns
	wg    sync.WaitGroup
}

func (s *server) startLanes() {
	s.groups.queue, s.groups.turns = make(chan *statement, maxGroup), make(chan *statement, maxGroup)
	s.groups.wg.Go(func() { s.lane(s.groups.queue) })
	s.groups.wg.Go(func() { s.lane(s.groups.turns) })
}

func (s *server) lane(queue <-chan *statement) {
	for st := range queue {
		runtime.Gosched() // lets callers that the last group woke queue for this one
		s.carry(gather(queue, []*statement{st}))
	}
}

func (s *server) stopLanes() {
	close(s.groups.queue)
	close(s.groups.turns)
	s.groups.wg.Wait()
}

func (s *server) group(ctx context.Context, st *statement) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.enter() {
		return ErrClosed
	}
	defer s.under.Done()
	st.done = make(chan error, 1)
	if st.turns {
		s.groups.turns <- st
	} else {
		s.groups.queue <- st
	}
	err := <-st.done
	if errors.Is(err, errUndone) { // usually because of another statement; nothing was written
		err = s.single(context.WithoutCancel(ctx), st)
	}
	return err
}

// carry runs a group and gives each of its callers the outcome. A single statement
// is run as a group too: groupWaits keeps it from blocking the lane.
func (s *server) carry(batch []*statement) {
	err := s.together(batch)
	for _, st := range batch {
		st.done <- err
	}
}

func (s *server) alone(ctx context.Context, st *statement) error {
	if !s.enter() {
		return ErrClosed
	}
	defer s.under.Done()
	return s.single(ctx, st)
}

// single runs one statement, which without BEGIN is a transaction.
func (s *server) single(ctx context.Context, st *statement) error {
	return s.repeat(ctx, func(conn *sql.Conn) (bool, error) { return false, st.on(&Tx{conn: conn}) })
}

// together runs a group in one transaction. Its error is errUndone if the group was
// certainly rolled back; after any other error it may have been committed.
func (s *server) together(batch []*statement) error {
	held, err := s.connect(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }() // the next user of the connection checks it
	var failed error
	err = held.Raw(func(dc any) error {
		c := dc.(*conn)
		if c.Conn.Conn().IsClosed() {
			return driver.ErrBadConn
		}
		ctx, cancel := c.bounded(context.Background())
		defer cancel()
		failed = c.heed(c.send(ctx, batch))
		if _, refused := errors.AsType[*pgconn.PgError](failed); refused && !c.Conn.Conn().IsClosed() {
			failed = errUndone
		}
		return nil
	})
	if err != nil { // the connection was closed before anything was sent
		return errUndone
	}
	return failed
}

// send runs statements in one pipeline, which PostgreSQL makes one transaction
// without BEGIN and COMMIT. If it returns nil, they are durable.
func (c *conn) send(ctx context.Context, batch []*statement) error {
	var sent pgx.Batch
	if batch[0].turns {
		sent.Queue(lockTimeout, turnWaits)
		sent.Queue(takeTurn)
	}
	sent.Queue(lockTimeout, groupWaits)
	first := sent.Len()
	for _, st := range batch {
		sent.Queue(c.queries.rebound(st.query), st.args...)
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
		err = st.take(results)
	}
	if end := results.Close(); err == nil && end != nil {
		err = fmt.Errorf("commit: %w", end)
	}
	return err
}

func (st *statement) take(results pgx.BatchResults) error {
	st.none = false
	if len(st.dest) == 0 {
		tag, err := results.Exec()
		st.changed = tag.RowsAffected()
		return err
	}
	err := results.QueryRow().Scan(st.dest...)
	st.none = errors.Is(err, pgx.ErrNoRows)
	if st.none {
		return nil
	}
	return err
}
