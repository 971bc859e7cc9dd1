package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"modernc.org/sqlite"
)

// maxPrepared limits the statements that one connection keeps. It is more than all that the components of
// one file run on the connection that writes.
const maxPrepared = 512

// A preparingConnector makes connections to SQLite that keep the statements that they have prepared.
// Running a short statement takes less time than parsing its text, and each turn runs many. PostgreSQL's
// driver keeps prepared statements by itself.
type preparingConnector struct {
	driver.Connector
	onQuery func(query string) // see Watch; nil if nobody watches
}

func newPreparing(ctx context.Context, dsn string) (driver.Connector, error) {
	c, err := sqlite.NewConnector(dsn)
	saw, _ := ctx.Value(watchKey{}).(func(string))
	return preparingConnector{c, saw}, err
}

// watchKey is the context key of Watch's function.
type watchKey struct{}

// Watch returns a context. SQLite databases that are opened with it call saw with each statement that
// they run; tests use it to count statements. Several goroutines may call saw at once.
func Watch(ctx context.Context, saw func(query string)) context.Context {
	return context.WithValue(ctx, watchKey{}, saw)
}

// Connect makes a connection.
func (p preparingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := c.(sqliteConn)
	if !ok {
		return c, nil // another version of the driver: this works, but is slower
	}
	return &preparedConn{sqliteConn: whole, statements: map[string]*preparedStmt{}, onQuery: p.onQuery}, nil
}

// sqliteConn has all methods that database/sql calls on a connection to SQLite.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// A preparedConn is a connection with the prepared statements that it keeps. database/sql never
// uses one from two goroutines at once.
type preparedConn struct {
	sqliteConn
	statements map[string]*preparedStmt
	onQuery    func(query string) // nil if nobody watches
}

// A preparedStmt is a prepared statement. While its rows are read it cannot be used
// again.
type preparedStmt struct {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	rowsOpen bool
}

// ExecContext runs a statement, with the prepared one that is kept for it.
func (c *preparedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.stmt(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.sqliteConn.ExecContext(ctx, query, args)
	}
	return s.ExecContext(ctx, args)
}

// QueryContext runs a query, with the prepared statement that is kept for it.
func (c *preparedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.stmt(ctx, query)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.rowsOpen = true
	return &preparedRows{rows, s}, nil
}

// stmt returns the prepared statement that is kept for a text, and prepares it if needed. It returns nil
// if the text has to be parsed each time it runs.
func (c *preparedConn) stmt(ctx context.Context, query string) (*preparedStmt, error) {
	if c.onQuery != nil {
		c.onQuery(query)
	}
	s, known := c.statements[query]
	if !known && shouldKeep(query) {
		var err error
		if s, err = c.prepare(ctx, query); err != nil {
			return nil, err
		}
	}
	if s != nil && s.rowsOpen {
		return nil, nil
	}
	return s, nil
}

// shouldKeep reports whether to keep the prepared statement of a text. It is not kept for a PRAGMA, which may
// take effect when it is parsed, or for a statement that changes the schema or the file, which runs once.
func shouldKeep(query string) bool {
	for verb := range strings.FieldsSeq(query) {
		return slices.Contains([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN", "COMMIT", "ROLLBACK"}, verb)
	}
	return false
}

// prepare prepares a statement that is to be kept. It returns nil if the driver makes none that can be
// statements.
func (c *preparedConn) prepare(ctx context.Context, query string) (*preparedStmt, error) {
	if len(c.statements) >= maxPrepared { // texts that are built from parts would fill it forever
		if err := c.dropIdle(); err != nil {
			return nil, err
		}
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	execs, mayExec := made.(driver.StmtExecContext)
	queries, mayQuery := made.(driver.StmtQueryContext)
	if !mayExec || !mayQuery {
		return nil, made.Close()
	}
	s := &preparedStmt{Stmt: made, StmtExecContext: execs, StmtQueryContext: queries}
	c.statements[query] = s
	return s, nil
}

// dropIdle closes the prepared statements whose rows nobody reads.
func (c *preparedConn) dropIdle() (err error) {
	for query, s := range c.statements {
		if !s.rowsOpen {
			err = errors.Join(err, s.Close())
			delete(c.statements, query)
		}
	}
	return err
}

// Close closes the connection. SQLite does not close one that has open statements, and would leave its
// WAL file behind.
func (c *preparedConn) Close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	clear(c.statements)
	return errors.Join(append(errs, c.sqliteConn.Close())...)
}

// preparedRows are the rows of a prepared statement. The statement may be used again once they are
// closed.
type preparedRows struct {
	driver.Rows
	statement *preparedStmt
}

// Close ends the reading of the rows.
func (r *preparedRows) Close() error {
	r.statement.rowsOpen = false
	return r.Rows.Close()
}
