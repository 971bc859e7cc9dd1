package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// maxConns bounds one component's connections, so that a fleet of processes
	// fits into a server's hundred. More of them commit no faster.
	maxConns = 12
	// tooMany says that a server, a database or a user has all its connections.
	tooMany = "53300"
	// attempts bounds how often a write is begun that others got in the way of.
	attempts = 10
)

// A server is a PostgreSQL database. Its connections recover by themselves: one
// that is found dead is replaced.
type server struct {
	pool   *sql.DB
	groups groups
	mu     sync.Mutex
	closed bool
	under  sync.WaitGroup // writes under way
}

func openPostgres(ctx context.Context, url string, s Schema) (*DB, error) {
	cfg, conns, err := parse(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	driver := stdlib.GetConnector(*cfg, stdlib.OptionAfterConnect(settle(cfg)))
	pool := sql.OpenDB(connector{driver, &queries{}, patienceOf(cfg)})
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	if err := migratePostgres(ctx, pool, s); err != nil {
		return nil, errors.Join(fmt.Errorf("open the %s in database %s: %w", s.Name, cfg.Database, err), pool.Close())
	}
	server := &server{pool: pool}
	server.startLanes()
	return &DB{Read: pool, backend: server, postgres: true}, nil
}

// parse reads a URL, with pool_max_conns beside what PostgreSQL itself knows.
func parse(url string) (*pgx.ConnConfig, int, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, 0, err
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectWithin
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "parley"
	}
	conns := maxConns
	if given, ok := cfg.RuntimeParams["pool_max_conns"]; ok {
		delete(cfg.RuntimeParams, "pool_max_conns")
		if conns, err = strconv.Atoi(given); err != nil || conns < 1 {
			return nil, 0, fmt.Errorf("pool_max_conns is %q: want a number from 1 on", given)
		}
	}
	return cfg, conns, nil
}

// settle makes a function that sets up a new connection, in what the URL leaves
// open: a server that commits without flushing is told to flush, and it ends what
// a process that vanished has left behind, with the rows it holds.
func settle(cfg *pgx.ConnConfig) func(context.Context, *pgx.Conn) error {
	const each = `SELECT set_config($1, $2, false) WHERE $3 = '' OR current_setting($1) = $3`
	return func(ctx context.Context, conn *pgx.Conn) error {
		var batch pgx.Batch
		for _, set := range []struct{ name, value, instead string }{
			{"synchronous_commit", "on", "off"},
			{"statement_timeout", milliseconds(patience), "0"},
			{"idle_in_transaction_session_timeout", milliseconds(2 * patience), "0"},
		} {
			if _, given := cfg.RuntimeParams[set.name]; !given {
				batch.Queue(each, set.name, set.value, set.instead)
			}
		}
		err := conn.SendBatch(ctx, &batch).Close()
		if err != nil {
			err = errors.Join(fmt.Errorf("set up connection: %w", pooled(err)), conn.Close(ctx))
		}
		return err
	}
}

// pooled says what to do about a server that has statements prepared which this
// connection has not, as one has behind a pool that hands connections on.
func pooled(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "42P05" || pg.Code == "26000") {
		return fmt.Errorf("%w: a pool such as PgBouncer in transaction mode needs default_query_exec_mode=exec in the URL", err)
	}
	return err
}

// patienceOf is the URL's statement_timeout, as far as it is said in milliseconds
// or with a unit that Go has too.
func patienceOf(cfg *pgx.ConnConfig) time.Duration {
	given := cfg.RuntimeParams["statement_timeout"]
	if n, err := strconv.Atoi(given); err == nil && n > 0 {
		return time.Duration(n) * time.Millisecond
	}
	if d, err := time.ParseDuration(given); err == nil && d > 0 {
		return d
	}
	return patience
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// enter admits a write unless the database is closed.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.under.Add(1)
	}
	return !s.closed
}

func (s *server) close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	s.under.Wait()
	if !was {
		s.stopLanes()
	}
	return nil
}

func (s *server) write(ctx context.Context, fn func(*Tx) error) error {
	if !s.enter() {
		return ErrClosed
	}
	defer s.under.Done()
	return s.repeat(ctx, func(conn *sql.Conn) (bool, error) { return transact(conn, fn) })
}

func (s *server) start(fn func(*Tx) error) {
	_ = s.write(context.Background(), fn) // nobody asks what became of it
}

// repeat has do carry out a write on a connection, and again as long as nothing
// came of it: do says so, or the error does.
func (s *server) repeat(ctx context.Context, do func(*sql.Conn) (undone bool, err error)) error {
	for n := 1; ; n++ {
		conn, err := s.connect(ctx)
		if err != nil {
			return err
		}
		undone, err := do(conn)
		_ = conn.Close() // it was used: whether it can be used again the next one asks
		if err == nil || n == attempts || !undone && !harmless(err, n) {
			return err
		}
		time.Sleep(time.Duration(rand.Int64N(int64(n) * int64(5*time.Millisecond))))
	}
}

// connect takes a connection. Where the server has no more to give, those that
// are there already come free in a moment.
func (s *server) connect(ctx context.Context) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		conn, err := s.pool.Conn(ctx)
		if err == nil {
			return conn, nil
		}
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != tooMany || s.pool.Stats().OpenConnections == 0 {
			return nil, fmt.Errorf("connect: %w", err)
		}
		select {
		case <-time.After(10*time.Millisecond + rand.N(90*time.Millisecond)):
		case <-ctx.Done():
			return nil, fmt.Errorf("connect: %w", err)
		}
	}
}

// transact runs fn in a transaction. If that failed, it tells whether the
// transaction was certainly undone for no fault of fn's.
func transact(conn *sql.Conn, fn func(*Tx) error) (undone bool, err error) {
	ctx := context.Background() // each statement has a deadline of its own
	if _, err := conn.ExecContext(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
		return gone(conn), fmt.Errorf("begin: %w", err)
	}
	err = fn(&Tx{conn: conn})
	if err == nil && failed(conn) {
		// A COMMIT would be accepted, and undo all.
		err = errors.New("a statement failed unnoticed")
	}
	if err != nil {
		_, undo := conn.ExecContext(ctx, "ROLLBACK")
		if gone(conn) {
			return true, err
		}
		if undo != nil {
			err = errors.Join(err, fmt.Errorf("roll back: %w", undo))
		}
		return false, err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return false, fmt.Errorf("commit: %w", err)
	}
	return false, nil
}

// harmless tells of an error of the nth try that it undid a statement and its
// transaction, and that to try again may help: others were in the way, or the
// connection was gone before anything was sent.
func harmless(err error, n int) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "40001", // serialization failure
			"40P01": // deadlock
			return true
		case "23505": // a row that somebody has just written too: next time it is seen
			return n == 1
		}
		return false
	}
	return errors.Is(err, driver.ErrBadConn)
}

// status asks the driver for the state of a connection, without asking the server.
func status(c *sql.Conn, of func(*pgx.Conn) bool) (yes bool) {
	err := c.Raw(func(dc any) error {
		yes = of(dc.(*conn).Conn.Conn())
		return nil
	})
	return yes || err != nil
}

func gone(conn *sql.Conn) bool {
	return status(conn, func(c *pgx.Conn) bool { return c.IsClosed() })
}

func failed(conn *sql.Conn) bool {
	return status(conn, func(c *pgx.Conn) bool { return c.PgConn().TxStatus() != 'T' })
}
