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

// groupWaits is for how many milliseconds a group waits for a row that somebody
// else is changing. Then it is undone and its statements go on each alone, so
// that only who needs that row waits for it.
const groupWaits = "100"

const lockTimeout = "SELECT set_config('lock_timeout', $1, true)"

// turnWaits is for how many milliseconds a group waits for its turn: a process
// that was stopped in the middle of sending one must not hold up the others.
const turnWaits = "1000"

// takeTurn lets one group at a time of those that take turns go on, of all
// processes that share the tables.
const takeTurn = "SELECT pg_advisory_xact_lock(hashtext('parley:turns:' || current_schema()))"

// errUndone says that nothing came of a group, for no fault of most of it.
var errUndone = errors.New("group undone")

// A statement is carried out as a write of its own.
type statement struct {
	query string
	args  []any
	dest  []any // of the row that it returns; none if it is to return none
	turns bool  // no other group of such statements may be under way

	changed int64
	none    bool // there was no such row
	done    chan error
}

// on carries it out in a transaction. That there is no row must not undo it.
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

// Groups take statements of many goroutines. Each of two lanes carries out what has
// queued up for it as one transaction in one round trip, and what comes meanwhile
// as the next: more lanes would make more groups, each of which costs a commit.
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
		runtime.Gosched() // those whom the last group woke get to join this one
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
	if errors.Is(err, errUndone) { // for another's sake, as a rule
		err = s.single(context.WithoutCancel(ctx), st)
	}
	return err
}

// carry carries out statements and tells each of them what became of it. One that
// is alone goes as a group too: it must not hold the lane up while it waits.
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

// single carries out one statement: without BEGIN it is a transaction.
func (s *server) single(ctx context.Context, st *statement) error {
	return s.repeat(ctx, func(conn *sql.Conn) (bool, error) { return false, st.on(&Tx{conn: conn}) })
}

// together carries out statements in one transaction; errUndone if, instead, that
// was certainly undone.
func (s *server) together(batch []*statement) error {
	held, err := s.connect(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }() // it was used: whether it can be used again the next one asks
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
	if err != nil { // nothing was sent
		return errUndone
	}
	return failed
}

// send has the server carry out statements between one BEGIN and COMMIT that
// nobody needs to say. If it returns nil, they are durable.
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
