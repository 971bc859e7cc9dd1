package sqldb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// A FilledError says that a table holds something where none was to.
type FilledError struct{ Table string }

func (e *FilledError) Error() string { return "table " + e.Table + " is not empty" }

// Filled gives a *FilledError if one of the tables of from, a SQLite database,
// holds something in to.
func Filled(ctx context.Context, from, to *DB) error {
	tables, err := tablesOf(ctx, from)
	if err != nil {
		return err
	}
	for _, table := range tables {
		var filled bool
		if err := to.Read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+table.id()+")").Scan(&filled); err != nil {
			return fmt.Errorf("look into table %s: %w", table.name, err)
		}
		if filled {
			return &FilledError{table.name}
		}
	}
	return nil
}

// Transfer takes every row of every table of from, a SQLite database, to the
// tables of those names in to, a PostgreSQL database, in one transaction, and
// returns how many rows each had. What stands there in the end is read again and
// compared; where it is not the same, or where a table was not empty, nothing is
// taken. Within runs in that transaction too.
func Transfer(ctx context.Context, from, to *DB, within func(*Tx) error) (map[string]int64, error) {
	tables, err := tablesOf(ctx, from)
	if err != nil {
		return nil, err
	}
	var rows map[string]int64
	err = to.Write(ctx, func(tx *Tx) error {
		rows = map[string]int64{}
		// It may take its time, and nobody is to come in between.
		for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
			if _, err := tx.Exec("SELECT set_config(?, '0', true)", name); err != nil {
				return err
			}
		}
		for _, table := range tables {
			n, err := table.transfer(ctx, from, tx)
			if err != nil {
				return fmt.Errorf("table %s: %w", table.name, err)
			}
			rows[table.name] = n
		}
		return within(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("transfer: %w", err)
	}
	return rows, nil
}

// A table is one that is taken over, with its columns.
type table struct {
	name    string
	columns []string
}

func (t table) id() string { return pgx.Identifier{t.name}.Sanitize() }

// query reads all of it, the same columns in the same order wherever it is.
func (t table) query() string {
	ids := make([]string, len(t.columns))
	for i, c := range t.columns {
		ids[i] = pgx.Identifier{c}.Sanitize()
	}
	return "SELECT " + strings.Join(ids, ", ") + " FROM " + t.id()
}

// tablesOf lists the tables of a SQLite database.
func tablesOf(ctx context.Context, db *DB) ([]table, error) {
	found, err := db.Read.QueryContext(ctx, `
		SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY t.name, c.cid`)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	defer func() { _ = found.Close() }() // found.Err has told already
	var tables []table
	for found.Next() {
		var name, column string
		if err := found.Scan(&name, &column); err != nil {
			return nil, fmt.Errorf("list tables: %w", err)
		}
		if len(tables) == 0 || tables[len(tables)-1].name != name {
			tables = append(tables, table{name: name})
		}
		last := &tables[len(tables)-1]
		last.columns = append(last.columns, column)
	}
	return tables, found.Err()
}

func (t table) transfer(ctx context.Context, from *DB, tx *Tx) (n int64, err error) {
	if _, err := tx.Exec("LOCK TABLE " + t.id() + " IN ACCESS EXCLUSIVE MODE"); err != nil {
		return 0, err
	}
	var filled bool
	if err := tx.Get("SELECT EXISTS (SELECT 1 FROM "+t.id()+")", nil, &filled); err != nil {
		return 0, err
	}
	if filled {
		return 0, &FilledError{t.name}
	}
	found, err := from.Read.QueryContext(ctx, t.query())
	if err != nil {
		return 0, err
	}
	defer func() { _ = found.Close() }() // found.Err has told already
	seed := maphash.MakeSeed()
	taken, there := &sum{seed: seed}, &sum{seed: seed}
	err = tx.conn.Raw(func(dc any) error {
		c := dc.(*conn).Conn.Conn()
		truths, err := t.truths(ctx, c)
		if err != nil {
			return err
		}
		if _, err := c.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, &taking{rows: found, sum: taken, truths: truths}); err != nil {
			return err
		}
		return t.read(ctx, c, there)
	})
	if err != nil {
		return 0, err
	}
	if *taken != *there {
		return 0, fmt.Errorf("%d rows were taken and %d other ones stand there", taken.rows, there.rows)
	}
	return taken.rows, t.count(tx)
}

// truths tells of each column whether it holds true and false, which SQLite has
// as numbers.
func (t table) truths(ctx context.Context, c *pgx.Conn) ([]bool, error) {
	found, err := c.Query(ctx, t.query()+" LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	truths := make([]bool, len(t.columns))
	for i, f := range found.FieldDescriptions() {
		truths[i] = f.DataTypeOID == pgtype.BoolOID
	}
	return truths, found.Err()
}

// read sums up what stands in PostgreSQL.
func (t table) read(ctx context.Context, c *pgx.Conn, into *sum) error {
	found, err := c.Query(ctx, t.query())
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		row, err := found.Values()
		if err != nil {
			return err
		}
		if err := into.add(row); err != nil {
			return err
		}
	}
	return found.Err()
}

// count has a column that numbers rows by itself go on behind those taken.
func (t table) count(tx *Tx) error {
	var column string
	err := tx.Get("SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attidentity <> ''", []any{t.id()}, &column)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	var last sql.NullInt64
	if err := tx.Get("SELECT max("+pgx.Identifier{column}.Sanitize()+") FROM "+t.id(), nil, &last); err != nil || !last.Valid {
		return err
	}
	_, err = tx.Exec("SELECT setval(pg_get_serial_sequence(?, ?), ?)", t.id(), column, last.Int64)
	return err
}

// A taking hands rows of SQLite to PostgreSQL and sums them up.
type taking struct {
	rows   *sql.Rows
	sum    *sum
	truths []bool
	err    error
	row    []any
}

// Next is for package pgx.
func (s *taking) Next() bool {
	if s.err != nil || !s.rows.Next() {
		return false
	}
	s.row = make([]any, len(s.truths))
	dest := make([]any, len(s.truths))
	for i := range dest {
		dest[i] = &s.row[i]
	}
	if s.err = s.rows.Scan(dest...); s.err != nil {
		return false
	}
	for i, v := range s.row {
		if n, ok := v.(int64); ok && s.truths[i] {
			s.row[i] = n != 0
		}
	}
	s.err = s.sum.add(s.row)
	return s.err == nil
}

// Values is for package pgx.
func (s *taking) Values() ([]any, error) { return s.row, s.err }

// Err is for package pgx.
func (s *taking) Err() error { return errors.Join(s.err, s.rows.Err()) }

// A sum of rows is the same in whatever order they come.
type sum struct {
	seed  maphash.Seed
	rows  int64
	total uint64
}

func (s *sum) add(row []any) error {
	var text []byte
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			text = append(text, 'n')
		case bool:
			var bit uint64
			if v {
				bit = 1
			}
			text = binary.BigEndian.AppendUint64(append(text, 'i'), bit)
		case int32:
			text = binary.BigEndian.AppendUint64(append(text, 'i'), uint64(v))
		case int64:
			text = binary.BigEndian.AppendUint64(append(text, 'i'), uint64(v))
		case string:
			text = append(binary.BigEndian.AppendUint64(append(text, 't'), uint64(len(v))), v...)
		default:
			return fmt.Errorf("a column holds a %T", v)
		}
	}
	s.rows++
	s.total += maphash.Bytes(s.seed, text)
	return nil
}
