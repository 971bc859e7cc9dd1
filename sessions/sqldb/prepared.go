package sqldb

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"modernc.org/sqlite"
)

// maxPrepared bounds how many statements one connection keeps.
const maxPrepared = 192

// A preparingConnector makes connections to SQLite that keep the prepared statements of
// their queries. A query that looks up one row takes less time than parsing its text
// does, and each turn looks up several. PostgreSQL's driver keeps them by itself.
type preparingConnector struct{ driver.Connector }

func newPreparing(dsn string) (driver.Connector, error) {
	c, err := sqlite.NewConnector(dsn)
	return preparingConnector{c}, err
}

// Connect makes a connection.
func (p preparingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	whole, ok := c.(sqliteConn)
	if !ok {
		return c, nil // another release of the driver: it works, and is slower
	}
	return &preparedConn{sqliteConn: whole, kept: map[string]*preparedQuery{}}, nil
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
	kept map[string]*preparedQuery
}

// A preparedQuery is a prepared statement. While its rows are read it cannot be used
// again.
type preparedQuery struct {
	driver.Stmt
	query  driver.StmtQueryContext
	inRows bool
}

// QueryContext runs a query with the prepared statement that is kept for it.
func (c *preparedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !strings.HasPrefix(query, "SELECT ") {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	s, known := c.kept[query]
	if !known {
		var err error
		if s, err = c.prepare(ctx, query); err != nil {
			return nil, err
		}
	}
	if s == nil || s.inRows {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.query.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.inRows = true
	return &preparedRows{rows, s}, nil
}

// prepare makes a prepared statement to be kept; nil if the driver makes none that can be
// kept.
func (c *preparedConn) prepare(ctx context.Context, query string) (*preparedQuery, error) {
	if len(c.kept) >= maxPrepared { // texts that are made of parts would fill it for ever
		if err := c.dropIdle(); err != nil {
			return nil, err
		}
	}
	made, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	runs, ok := made.(driver.StmtQueryContext)
	if !ok {
		return nil, made.Close()
	}
	s := &preparedQuery{Stmt: made, query: runs}
	c.kept[query] = s
	return s, nil
}

// dropIdle closes the prepared statements whose rows nobody reads.
func (c *preparedConn) dropIdle() (err error) {
	for query, s := range c.kept {
		if !s.inRows {
			err = errors.Join(err, s.Close())
			delete(c.kept, query)
		}
	}
	return err
}

// Close closes the connection.
func (c *preparedConn) Close() error {
	var errs []error
	for _, s := range c.kept {
		errs = append(errs, s.Close())
	}
	clear(c.kept)
	return errors.Join(append(errs, c.sqliteConn.Close())...)
}

// preparedRows are the rows of a prepared query, which frees the query when they are
// closed.
type preparedRows struct {
	driver.Rows
	of *preparedQuery
}

// Close ends the reading of the rows.
func (r *preparedRows) Close() error {
	r.of.inRows = false
	return r.Rows.Close()
}
