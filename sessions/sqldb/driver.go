package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// defaultStatementTimeout is how long one statement may take, unless the URL sets
	// statement_timeout. A server that is stopped, or a network that drops packets,
	// must not block callers forever.
	defaultStatementTimeout = 30 * time.Second
	// connectTimeout is the timeout for connecting to the server, unless the URL sets one.
	connectTimeout = 5 * time.Second
)

// errConnectionLost says that a connection broke while a statement was under way.
var errConnectionLost = errors.New("connection to the database lost")

// A connector makes connections that replace each ? of a query by PostgreSQL's $1, $2, …, and that
// give a deadline to each statement without one.
type connector struct {
	driver.Connector
	queries      *queryCache
	timeout      time.Duration
	waitsBriefly bool // whether its connections wait at most rowLockTimeout for a locked row
}

// Connect makes a connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: dc.(*stdlib.Conn), queries: c.queries, timeout: c.timeout, waitsBriefly: c.waitsBriefly}, nil
}

// A queryCache remembers for each query its form with $1, $2, … in place of ?.
type queryCache struct{ seen sync.Map }

// postgresForm returns a query with $1, $2, … in place of ?.
func (q *queryCache) postgresForm(query string) string {
	if known, ok := q.seen.Load(query); ok {
		return known.(string)
	}
	bound := numberPlaceholders(query)
	q.seen.Store(query, bound)
	return bound
}

// A conn is a connection to PostgreSQL that rewrites the ? of its statements and bounds
// how long they take.
type conn struct {
	*stdlib.Conn
	queries      *queryCache
	timeout      time.Duration
	waitsBriefly bool // whether it waits at most rowLockTimeout for a locked row
	readOnly     bool // whether the server has said that it takes no writes
}

// withDeadline returns ctx with a deadline: its own, or the statement timeout from now.
func (c *conn) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.timeout)
}

// hideBadConn turns driver.ErrBadConn, which database/sql retries, into errConnectionLost. pgx
// returns it for a statement without arguments even if only the answer was lost, and
// a retry would run the write twice.
func hideBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return errConnectionLost
	}
	return err
}

// pingAfter is how long a connection may be idle before it is used again only after a test of whether the
// server still responds.
const pingAfter = 30 * time.Second

// needsPing reports whether a connection must be tested before it is used again. A test costs a round
// trip, so it is done only after a long time, or if the connection seems to be broken: a server that has
// ended has closed it. A new connection has no idle time: the driver then counts from the year 1.
func needsPing(_ context.Context, p stdlib.ShouldPingParams) bool {
	const never = 365 * 24 * time.Hour
	return p.IdleDuration > pingAfter && p.IdleDuration < never || !isOpenAndSilent(p.Conn.PgConn().Conn())
}

// isOpenAndSilent reports whether the other end has neither closed a connection nor sent
// anything. It returns false if that cannot be seen.
func isOpenAndSilent(c net.Conn) bool {
	if encrypted, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = encrypted.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	// Use Control and not Read: when a write took long, the driver has its own reader on the connection,
	// and Read would wait for it.
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = errors.Is(err, syscall.EAGAIN)
	})
	return err == nil && silent
}

// noteReadOnly returns err unchanged, and records whether it says that the server accepts no writes. After a
// failover the pool must drop such connections, or it would never reach the new primary.
func (c *conn) noteReadOnly(err error) error {
	const readOnly = "25006" // read_only_sql_transaction
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == readOnly {
		c.readOnly = true
	}
	return err
}

// IsValid reports whether the pool may keep the connection.
func (c *conn) IsValid() bool { return !c.readOnly }

// ExecContext runs a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	result, err := c.Conn.ExecContext(ctx, c.queries.postgresForm(query), args)
	return result, hideBadConn(c.noteReadOnly(err))
}

// QueryContext runs a query. Its deadline bounds the reading of the rows too.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	ctx, cancel := c.withDeadline(ctx)
	found, err := c.Conn.QueryContext(ctx, c.queries.postgresForm(query), args)
	if err != nil {
		cancel()
		return nil, hideBadConn(c.noteReadOnly(err))
	}
	return rows{found, cancel}, nil
}

// PrepareContext prepares nothing on the server, because pgx does so itself, once for each
// connection and query.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return stmt{c, query}, nil
}

// Ping fails if the server does not answer.
func (c *conn) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.Conn.Ping(ctx)
}

// ResetSession fails if a connection that was idle cannot be used anymore.
func (c *conn) ResetSession(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return c.Conn.ResetSession(ctx)
}

// rows are the rows of a query that has a deadline; cancel frees the deadline's timer.
type rows struct {
	driver.Rows
	cancel context.CancelFunc
}

// Close ends the reading of the rows. A statement without BEGIN commits after its last
// row, so this error may be the first to say that the commit failed.
func (r rows) Close() error {
	defer r.cancel()
	return r.Rows.Close()
}

// A stmt is a query on a connection. The driver prepares it there when it first runs.
type stmt struct {
	conn  *conn
	query string
}

// Close does nothing: the connection keeps the statement for whoever asks next.
func (s stmt) Close() error { return nil }

// NumInput lets the server count the arguments.
func (s stmt) NumInput() int { return -1 }

// Exec is required by driver.Stmt, and database/sql does not call it.
func (s stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }

// Query is required by driver.Stmt, and database/sql does not call it.
func (s stmt) Query([]driver.Value) (driver.Rows, error) { return nil, driver.ErrSkip }

// ExecContext runs the statement.
func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.query, args)
}

// QueryContext runs the query.
func (s stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.query, args)
}
