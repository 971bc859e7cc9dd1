package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// callTimeout is how long one statement may take, unless the URL sets
	// statement_timeout. A server that is stopped, or a network that drops packets,
	// must not block callers for ever.
	callTimeout = 30 * time.Second
	// connectWithin bounds reaching the server, unless the URL does.
	connectWithin = 5 * time.Second
)

// errLost says that a connection broke while a statement was under way.
var errLost = errors.New("connection to the database lost")

// A connector makes connections that write each ? of a query as PostgreSQL's $1, $2, …
// and give each statement that has no deadline one.
type connector struct {
	driver.Connector
	queries  *queries
	patience time.Duration
}

// Connect makes a connection.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: dc.(*stdlib.Conn), queries: c.queries, patience: c.patience}, nil
}

// queries caches each query with $1, $2, … in place of ?.
type queries struct{ seen sync.Map }

func (q *queries) rebound(query string) string {
	if known, ok := q.seen.Load(query); ok {
		return known.(string)
	}
	bound := rebind(query)
	q.seen.Store(query, bound)
	return bound
}

// A conn is a connection whose statements are rewritten and bounded.
type conn struct {
	*stdlib.Conn
	queries  *queries
	patience time.Duration
	readOnly bool // the server has said that it takes no writes
}

func (c *conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.patience)
}

// hideBadConn turns driver.ErrBadConn, which database/sql retries, into errLost. pgx
// returns it for a statement without arguments even if only the answer was lost, and
// a retry would run the write twice.
func hideBadConn(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return errLost
	}
	return err
}

// noteReadOnly returns err, and remembers if it says that the server takes no writes.
// After a failover the pool must drop such connections, or it would never reach the
// new primary.
func (c *conn) noteReadOnly(err error) error {
	const readOnly = "25006" // read_only_sql_transaction
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == readOnly {
		c.readOnly = true
	}
	return err
}

// IsValid tells whether the connection is to be kept.
func (c *conn) IsValid() bool { return !c.readOnly }

// ExecContext runs a statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	result, err := c.Conn.ExecContext(ctx, c.queries.rebound(query), args)
	return result, hideBadConn(c.noteReadOnly(err))
}

// QueryContext runs a query. Its deadline bounds the reading of the rows too.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.Conn.Conn().IsClosed() {
		return nil, driver.ErrBadConn
	}
	ctx, cancel := c.bounded(ctx)
	found, err := c.Conn.QueryContext(ctx, c.queries.rebound(query), args)
	if err != nil {
		cancel()
		return nil, hideBadConn(c.noteReadOnly(err))
	}
	return rows{found, cancel}, nil
}

// PrepareContext prepares nothing, as pgx does so itself, once for each connection and
// query.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return stmt{c, query}, nil
}

// Ping asks whether the server answers.
func (c *conn) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return c.Conn.Ping(ctx)
}

// ResetSession asks whether a connection that was idle can be used.
func (c *conn) ResetSession(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return c.Conn.ResetSession(ctx)
}

// rows are the rows of a query with a deadline, which cancel frees.
type rows struct {
	driver.Rows
	cancel context.CancelFunc
}

// Close ends the reading. A statement without BEGIN commits after its last row, so this
// error may be the first to say that the commit failed.
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

// NumInput leaves counting the arguments to the server.
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
