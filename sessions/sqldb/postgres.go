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
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// defaultConns limits a process's connections unless the URL has pool_max_conns, so that the processes of a fleet
	// stay below a server's usual limit of a hundred. Four commit almost as fast (BenchmarkConnections), but then three
	// statements that wait for rows of a process that stands still would hold up all others.
	defaultConns = 12
	// minConns is the smallest pool for which groups have a connection of their own. They have none
	// either if there is a connection pool before the server, which may hand a connection with our
	// settings to others.
	minConns = 4
	// maxIdleTime is how long a connection stays open that nobody needs: others of a fleet may need it more.
	maxIdleTime = 30 * time.Second
	// tooManyConnectionsCode is PostgreSQL's error code for having no connection left, for the server,
	// the database or the user.
	tooManyConnectionsCode = "53300"
	// deadlockCode is PostgreSQL's error code for a transaction that was rolled back because it and another one
	// waited for each other.
	deadlockCode = "40P01"
	// maxAttempts is how many times a write that conflicts with others is tried.
	maxAttempts = 10
)

// A postgresBackend carries out writes on a PostgreSQL server. It replaces a connection that turns out to
// be dead.
type postgresBackend struct {
	pool         *sql.DB
	lane         *sql.DB // the connection of groups, which waits at most rowLockTimeout for a row; nil if they use the pool's
	groups       groups
	mu           sync.Mutex
	closed       bool
	writing      sync.WaitGroup                              // the writes under way
	lostReporter atomic.Pointer[func(writes int, err error)] // see OnLost; nil if nobody wants to know
}

// OpenURL opens the PostgreSQL database that a URL names, for at least one component, and brings their tables to the newest
// versions. If there are several, they share its connections, and each gets the database from Lend.
func OpenURL(ctx context.Context, url string, components ...Schema) (*DB, error) {
	cfg, conns, err := parseURL(url)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	if err := adaptToServer(ctx, cfg); err != nil {
		return nil, fmt.Errorf("open the %s in database %s: %w", components[0].Name, cfg.Database, err)
	}
	server := &postgresBackend{}
	queries := &queryCache{}
	if conns >= minConns && cfg.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		conns--
		server.lane = newPool(cfg, 1, connector{queries: queries, timeout: statementTimeout(cfg), waitsBriefly: true})
	}
	server.pool = newPool(cfg, conns, connector{queries: queries, timeout: statementTimeout(cfg)})
	for _, s := range components {
		if err := migratePostgres(ctx, server.pool, s); err != nil {
			return nil, errors.Join(fmt.Errorf("open the %s in database %s: %w", s.Name, cfg.Database, err), server.pool.Close())
		}
	}
	server.startLanes()
	return &DB{Read: server.pool, backend: server, isPostgres: true}, nil
}

// newPool makes a pool of at most conns connections, which c makes.
func newPool(cfg *pgx.ConnConfig, conns int, c connector) *sql.DB {
	c.Connector = stdlib.GetConnector(*cfg, stdlib.OptionAfterConnect(connectionSetup(cfg, c.waitsBriefly)), stdlib.OptionShouldPing(needsPing))
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(conns)
	pool.SetMaxIdleConns(conns)
	pool.SetConnMaxIdleTime(maxIdleTime)
	return pool
}

// parseURL parses a URL and returns the configuration of connections and their maximum number. Besides
// PostgreSQL's own parameters the URL may have pool_max_conns.
func parseURL(url string) (*pgx.ConnConfig, int, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, 0, err
	}
	preferPrimary(cfg)
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "parley"
	}
	conns := defaultConns
	if given, ok := cfg.RuntimeParams["pool_max_conns"]; ok {
		delete(cfg.RuntimeParams, "pool_max_conns")
		if conns, err = strconv.Atoi(given); err != nil || conns < 1 {
			return nil, 0, fmt.Errorf("pool_max_conns is %q: want a number from 1 on", given)
		}
	}
	return cfg, conns, nil
}

// connectionSetup returns a function that sets up a new connection, but leaves alone what the URL sets. The server
// has to flush each commit to disk. It also has to end a transaction that a vanished process left open,
// which would keep its rows locked. A connection with waitsBriefly waits for a row for at most rowLockTimeout.
func connectionSetup(cfg *pgx.ConnConfig, shortWaits bool) func(context.Context, *pgx.Conn) error {
	const each = `SELECT set_config($1, $2, false) WHERE $3 = '' OR current_setting($1) = $3`
	return func(ctx context.Context, conn *pgx.Conn) error {
		var batch pgx.Batch
		for _, set := range []struct{ name, value, instead string }{
			{"synchronous_commit", "on", "off"},
			{"statement_timeout", milliseconds(defaultStatementTimeout), "0"},
			{"idle_in_transaction_session_timeout", milliseconds(2 * defaultStatementTimeout), "0"},
		} {
			if _, given := cfg.RuntimeParams[set.name]; !given {
				batch.Queue(each, set.name, set.value, set.instead)
			}
		}
		if shortWaits {
			batch.Queue(each, "lock_timeout", rowLockTimeout, "")
		}
		err := conn.SendBatch(ctx, &batch).Close()
		if err != nil {
			err = errors.Join(fmt.Errorf("set up connection: %w", explainPool(err)), conn.Close(ctx))
		}
		return err
	}
}

// explainPool adds what to do to an error about prepared statements. It is caused by a connection pool
// before the server, which gives a client connections on which others have prepared statements.
func explainPool(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && (pg.Code == "42P05" || pg.Code == "26000") {
		return fmt.Errorf("%w: there is a pool such as PgBouncer before the server that Parley has not noticed; restart it, or put default_query_exec_mode=exec into the URL", err)
	}
	return err
}

// statementTimeout returns the URL's statement_timeout, if it is in milliseconds or has a
// unit that Go knows too, and otherwise defaultStatementTimeout.
func statementTimeout(cfg *pgx.ConnConfig) time.Duration {
	given := cfg.RuntimeParams["statement_timeout"]
	if n, err := strconv.Atoi(given); err == nil && n > 0 {
		return time.Duration(n) * time.Millisecond
	}
	if d, err := time.ParseDuration(given); err == nil && d > 0 {
		return d
	}
	return defaultStatementTimeout
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// beginWrite counts a write that close has to wait for. It returns false if the database
// is closed.
func (s *postgresBackend) beginWrite() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.writing.Add(1)
	}
	return !s.closed
}

func (s *postgresBackend) close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	s.writing.Wait()
	if was {
		return nil
	}
	s.stopLanes()
	if s.lane == nil {
		return nil
	}
	return s.lane.Close()
}

func (s *postgresBackend) write(ctx context.Context, fn func(*Tx) error) error {
	if !s.beginWrite() {
		return ErrClosed
	}
	defer s.writing.Done()
	return s.repeat(ctx, func(conn *sql.Conn) (bool, error) { return transact(conn, fn) })
}

func (s *postgresBackend) soon(ctx context.Context, _ time.Duration, fn func(*Tx) error) error {
	return s.write(ctx, fn)
}

func (s *postgresBackend) lastWrite() time.Time { return time.Time{} }

func (s *postgresBackend) flush() {} // every write that has returned is durable

func (s *postgresBackend) start(fn func(*Tx) error, lost func(error)) {
	err := s.write(context.Background(), fn)
	if err == nil {
		return
	}
	if lost != nil {
		lost(err)
	}
	if report := s.lostReporter.Load(); report != nil {
		(*report)(1, err)
	}
}

func (s *postgresBackend) onLost(report func(writes int, err error)) { s.lostReporter.Store(&report) }

// repeat calls fn with a connection. It calls fn again, up to maxAttempts times in all, as long as it is certain that
// nothing was written (because of undone, or the kind of error) and another try may succeed.
func (s *postgresBackend) repeat(ctx context.Context, fn func(*sql.Conn) (undone bool, err error)) error {
	for n := 1; ; n++ {
		conn, err := s.connect(ctx)
		if err != nil {
			return err
		}
		undone, err := fn(conn)
		_ = conn.Close() // ResetSession checks the connection before it is used again
		if err == nil || n == maxAttempts || !undone && !mayRetry(err, n) {
			return err
		}
		time.Sleep(time.Duration(rand.Int64N(int64(n) * int64(5*time.Millisecond))))
	}
}

// connect takes a connection from the pool, within defaultStatementTimeout. If the server allows no more connections, connect
// waits for one that this process already has.
func (s *postgresBackend) connect(ctx context.Context) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultStatementTimeout)
	defer cancel()
	for {
		conn, err := s.pool.Conn(ctx)
		if err == nil {
			return conn, nil
		}
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != tooManyConnectionsCode || s.pool.Stats().OpenConnections == 0 {
			return nil, fmt.Errorf("connect: %w", err)
		}
		select {
		case <-time.After(10*time.Millisecond + rand.N(90*time.Millisecond)):
		case <-ctx.Done():
			return nil, fmt.Errorf("connect: %w", err)
		}
	}
}

// connectLane takes the connection of groups, or one from the pool if they have none, or the server allows no more.
func (s *postgresBackend) connectLane() (*sql.Conn, error) {
	if s.lane != nil {
		ctx, cancel := context.WithTimeout(context.Background(), defaultStatementTimeout)
		defer cancel()
		conn, err := s.lane.Conn(ctx)
		if err == nil {
			return conn, nil
		}
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != tooManyConnectionsCode {
			return nil, fmt.Errorf("connect: %w", err)
		}
	}
	return s.connect(context.Background())
}

// transact runs fn in a transaction. If the transaction fails, undone reports whether it was
// certainly rolled back, for a reason other than fn, such as a lost connection.
func transact(conn *sql.Conn, fn func(*Tx) error) (undone bool, err error) {
	ctx := context.Background() // each statement has a deadline of its own
	if _, err := conn.ExecContext(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED"); err != nil {
		return isClosed(conn), fmt.Errorf("begin: %w", err)
	}
	err = fn(&Tx{conn: conn})
	if err == nil && inFailedTransaction(conn) {
		// The server answers COMMIT of a failed transaction with success, and rolls back.
		err = errors.New("a statement failed unnoticed")
	}
	if err != nil {
		_, undo := conn.ExecContext(ctx, "ROLLBACK")
		if isClosed(conn) {
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

// mayRetry reports whether the error of the nth try says that the transaction was
// certainly rolled back and another try may succeed: others were in the way, or the
// connection was gone before anything was sent.
func mayRetry(err error, n int) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "40001", // serialization failure
			deadlockCode:
			return true
		case "23505": // somebody else has just written the row too; the next try will see it
			return n == 1
		}
		return false
	}
	return errors.Is(err, driver.ErrBadConn)
}

// askDriver asks pgx something about its connection, by the function ask, without a round trip to
// the server. It returns true if pgx cannot tell.
func askDriver(c *sql.Conn, ask func(*pgx.Conn) bool) (yes bool) {
	err := c.Raw(func(dc any) error {
		yes = ask(dc.(*conn).Conn.Conn())
		return nil
	})
	return yes || err != nil
}

// isClosed reports whether a connection is closed.
func isClosed(conn *sql.Conn) bool {
	return askDriver(conn, func(c *pgx.Conn) bool { return c.IsClosed() })
}

// inFailedTransaction reports whether a connection is not in a transaction that can still
// be committed.
func inFailedTransaction(conn *sql.Conn) bool {
	return askDriver(conn, func(c *pgx.Conn) bool { return c.PgConn().TxStatus() != 'T' })
}
