package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"modernc.org/sqlite"
)

// maxPrepared bounds how many statements one connection keeps.
const maxPrepared = 192

// A preparingConnector makes connections to SQLite that keep the prepared statements of
// their queries. A query that looks up one row takes less time than parsing its text
// does, and each turn looks up several. PostgreSQL's driver keeps them by itself.
type preparingConnector struct {
	driver.Connector
	saw func(query string) // see Watch; nil if nobody watches
}

func newPreparing(ctx context.Context, dsn string) (driver.Connector, error) {
	c, err := sqlite.NewConnector(dsn)
	saw, _ := ctx.Value(watching{}).(func(string))
	return preparingConnector{c, saw}, err
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
	if p.saw != nil {
		whole = watchedConn{whole, p.saw}
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

// keptStmts are the prepared statements of the writer's connection. They are called without package
// sql in between, which would take a tenth of the writer's time. Only the writer's goroutine uses
// the connection, so nothing has to keep others away from it meanwhile.
type keptStmts struct {
	conn   *sql.Conn
	kept   map[string]*keptStmt
	direct *directStmts        // runs what has arguments and returns nothing; nil if the driver runs everything
	args   []driver.NamedValue // room for the arguments of the statement that runs
	row    []driver.Value      // room for the row that is read
}

// A keptStmt is a prepared statement that keptStmts keeps.
type keptStmt struct {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// stmt returns the prepared statement of a query.
func (k *keptStmts) stmt(query string) (*keptStmt, error) {
	if s, ok := k.kept[query]; ok {
		return s, nil
	}
	var s *keptStmt
	err := k.conn.Raw(func(dc any) error {
		made, err := dc.(driver.ConnPrepareContext).PrepareContext(context.Background(), query)
		if err != nil {
			return err
		}
		s = &keptStmt{made, made.(driver.StmtExecContext), made.(driver.StmtQueryContext)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	k.kept[query] = s
	return s, nil
}

// exec runs a statement and returns how many rows it changed.
func (k *keptStmts) exec(query string, args []any) (int64, error) {
	values, err := k.values(args)
	if err != nil {
		return 0, err
	}
	defer clear(values)
	if k.direct != nil && len(values) > 0 {
		if changed, done, err := k.direct.exec(query, values); done {
			return changed, err
		}
	}
	s, err := k.stmt(query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(context.Background(), values)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// get scans the first row of a query; it gives sql.ErrNoRows if there is none.
func (k *keptStmts) get(query string, args, dest []any) (err error) {
	s, err := k.stmt(query)
	if err != nil {
		return err
	}
	values, err := k.values(args)
	if err != nil {
		return err
	}
	defer clear(values)
	found, err := s.QueryContext(context.Background(), values)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	if want := len(found.Columns()); want != len(dest) {
		return fmt.Errorf("%d columns are scanned into %d places", want, len(dest))
	}
	for len(k.row) < len(dest) {
		k.row = append(k.row, nil)
	}
	row := k.row[:len(dest)]
	defer clear(row)
	if err := found.Next(row); err != nil {
		if errors.Is(err, io.EOF) {
			return sql.ErrNoRows
		}
		return err
	}
	for i, v := range row {
		if err := assign(dest[i], v); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

// values returns arguments in the form in which the driver takes them, good until the next call.
func (k *keptStmts) values(args []any) ([]driver.NamedValue, error) {
	k.args = k.args[:0]
	for i, arg := range args {
		var v driver.Value
		switch arg := arg.(type) {
		case nil, string, int64, bool, []byte, float64:
			v = arg
		case int:
			v = int64(arg)
		default:
			var err error
			if v, err = driver.DefaultParameterConverter.ConvertValue(arg); err != nil {
				return nil, fmt.Errorf("argument %d: %w", i+1, err)
			}
		}
		k.args = append(k.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return k.args, nil
}

// close closes the statements.
func (k *keptStmts) close() (err error) {
	k.direct.close()
	for _, s := range k.kept {
		err = errors.Join(err, s.Close())
	}
	clear(k.kept)
	return err
}

// assign stores what the driver has read where a pointer leads to, as Scan of package sql does.
func assign(dest any, v driver.Value) error {
	switch d := dest.(type) {
	case *string:
		if v, ok := v.(string); ok {
			*d = v
			return nil
		}
	case *int64:
		if v, ok := v.(int64); ok {
			*d = v
			return nil
		}
	case *int:
		if v, ok := v.(int64); ok {
			*d = int(v)
			return nil
		}
	case *any:
		*d = v
		return nil
	case sql.Scanner:
		return d.Scan(v)
	}
	return convert(reflect.ValueOf(dest).Elem(), v)
}

// convert stores a value in a variable of a kind that may differ.
func convert(into reflect.Value, v driver.Value) error {
	text, isText := v.(string)
	if raw, ok := v.([]byte); ok {
		text, isText = string(raw), true
	}
	switch {
	case into.Type() == reflect.TypeFor[[]byte]():
		return scanAs(v, true, into.SetBytes)
	case into.Type() == reflect.TypeFor[string]():
		return scanAs(v, false, into.SetString)
	case into.Kind() == reflect.String && isText:
		into.SetString(text)
		return nil
	case into.Kind() == reflect.Bool:
		return scanAs(v, false, into.SetBool)
	case into.CanInt():
		var n int64
		err := scanAs(v, false, func(found int64) { n = found })
		if err == nil && into.OverflowInt(n) {
			err = fmt.Errorf("%d has no place in a %s", n, into.Type())
		}
		into.SetInt(n)
		return err
	case into.CanFloat():
		return scanAs(v, false, into.SetFloat)
	default:
		return fmt.Errorf("a %T has no place in a %s", v, into.Type())
	}
}

// scanAs converts a value to a T by the rules of package sql, and calls set with it. NULL is an error
// unless a T can be nil.
func scanAs[T any](v driver.Value, canBeNil bool, set func(T)) error {
	var to sql.Null[T]
	if err := to.Scan(v); err != nil {
		return err
	}
	if !to.Valid && !canBeNil {
		return fmt.Errorf("NULL is no %T", to.V)
	}
	set(to.V)
	return nil
}
