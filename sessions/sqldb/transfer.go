package sqldb

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// A NotEmptyError says that a table that had to be empty contains rows.
type NotEmptyError struct{ Table string }

func (e *NotEmptyError) Error() string { return "table " + e.Table + " isn't empty" }

// CheckEmpty checks that a component's tables in a database have no rows. It returns a
// *NotEmptyError for the first table with rows.
func CheckEmpty(ctx context.Context, s Schema, to *DB) error {
	tables, err := tablesOf(ctx, s)
	if err != nil {
		return err
	}
	for _, table := range tables {
		var filled bool
		if err := to.Read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM "+table.quotedName()+")").Scan(&filled); err != nil {
			return fmt.Errorf("look into table %s: %w", table.name, err)
		}
		if filled {
			return &NotEmptyError{table.name}
		}
	}
	return nil
}

type transferKey struct{}

// OnTransfer returns a context. A [Transfer] with this context calls tell again and again, with the number of
// rows that it has copied and compared so far, and the total of both. tell must be quick.
func OnTransfer(ctx context.Context, tell func(done, of int64)) context.Context {
	return context.WithValue(ctx, transferKey{}, tell)
}

// rowsPerProgress is the number of rows after which a Transfer reports its progress.
const rowsPerProgress = 100

// A transferMeter reports the progress of a Transfer.
type transferMeter struct {
	tell        func(done, of int64) // nil if nobody wants to know it
	done, total int64
}

// newTransferMeter returns a meter for a transfer of tables, which are copied and then compared.
func newTransferMeter(ctx context.Context, tables []table, from *DB) (*transferMeter, error) {
	m := &transferMeter{}
	m.tell, _ = ctx.Value(transferKey{}).(func(done, of int64))
	if m.tell == nil {
		return m, nil
	}
	for _, table := range tables {
		var rows int64
		if err := from.Read.QueryRowContext(ctx, "SELECT count(*) FROM "+table.quotedName()).Scan(&rows); err != nil {
			return nil, fmt.Errorf("count the rows of %s: %w", table.name, err)
		}
		m.total += 2 * rows
	}
	m.tell(0, m.total)
	return m, nil
}

// add counts a row.
func (m *transferMeter) add() {
	m.done++
	if m.tell != nil && m.done%rowsPerProgress == 0 {
		m.tell(m.done, m.total)
	}
}

// Transfer copies every row of a component's tables from one database, which is SQLite, to the tables of
// the same names in the other, PostgreSQL, in one transaction, and returns how many rows each had. It
// reads the copies back and compares them. If they differ, or if a table was not empty, nothing is
// copied. Before the commit it calls alsoWrite in the same transaction, for what the caller wants to
// write along with it.
func Transfer(ctx context.Context, s Schema, from, to *DB, alsoWrite func(*Tx) error) (map[string]int64, error) {
	tables, err := tablesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	var rows map[string]int64
	err = to.Write(ctx, func(tx *Tx) error {
		rows = map[string]int64{}
		// A large table takes longer than other statements may, and so does counting its rows.
		for _, name := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
			if _, err := tx.Exec("SELECT set_config(?, '0', true)", name); err != nil {
				return err
			}
		}
		meter, err := newTransferMeter(ctx, tables, from)
		if err != nil {
			return err
		}
		for _, table := range tables {
			n, err := table.transfer(ctx, from, tx, meter)
			if err != nil {
				return fmt.Errorf("table %s: %w", table.name, err)
			}
			rows[table.name] = n
		}
		return alsoWrite(tx)
	})
	if err != nil {
		return nil, fmt.Errorf("transfer: %w", err)
	}
	return rows, nil
}

// A Source is a SQLite file that contains a component's tables; DB.Adopt needs them in their newest
// version.
type Source struct {
	Path   string
	Schema Schema
}

// Adopt copies the content of other SQLite files to the tables of the same components in this one, all or
// nothing. It writes only to this database, in one transaction, and may be repeated: rows that were
// copied before are not copied again. Writes wait for it.
func (db *DB) Adopt(ctx context.Context, sources ...Source) error {
	w, ok := db.backend.(*writer)
	if !ok {
		return errors.New("adopt: the database is not an SQLite file")
	}
	var scripts []string
	for i, s := range sources {
		statements, err := s.Schema.adoption(ctx)
		if err != nil {
			return fmt.Errorf("adopt %s: %w", s.Path, err)
		}
		scripts = append(scripts, strings.ReplaceAll(strings.Join(statements, ";\n"), "{from}", attachedName(i)))
	}
	if err := w.runBetweenGroups(ctx, func(conn *sql.Conn) error { return adopt(ctx, conn, sources, scripts) }); err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	return nil
}

// adoption returns the statements that copy the component's rows; see [Schema].
func (s Schema) adoption(ctx context.Context) (statements []string, err error) {
	if len(s.AdoptStatements) > 0 {
		return s.AdoptStatements, nil
	}
	tables, err := tablesOf(ctx, s)
	for _, t := range tables {
		statements = append(statements, fmt.Sprintf("INSERT OR IGNORE INTO main.%s (%s) SELECT %[2]s FROM {from}.%[1]s", t.quotedName(), t.columnNames()))
	}
	return statements, err
}

// attachedName is the name by which statements know the i-th of the files that are adopted.
func attachedName(i int) string { return fmt.Sprint("adopted", i) }

// MigrateFiles brings each of the files to the newest version of its tables. It leaves each as one file,
// without a log beside it, unless somebody else is reading it.
func MigrateFiles(ctx context.Context, sources ...Source) error {
	for _, s := range sources {
		db, err := Open(ctx, s.Path, s.Schema.SQLite)
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withAttached calls fn while the files are attached to the connection, under attachedName.
func withAttached(ctx context.Context, conn *sql.Conn, sources []Source, fn func() error) (err error) {
	for i, s := range sources {
		// mode=rw: a file that is missing is not made.
		if _, err := conn.ExecContext(ctx, "ATTACH ? AS "+attachedName(i), fileURI(s.Path)+"?mode=rw"); err != nil {
			return fmt.Errorf("attach %s: %w", s.Path, err)
		}
		defer func() {
			_, undo := conn.ExecContext(context.WithoutCancel(ctx), "DETACH "+attachedName(i))
			err = errors.Join(err, undo)
		}()
	}
	return fn()
}

// adopt runs the scripts, each of which copies from one of the files, in one transaction.
func adopt(ctx context.Context, conn *sql.Conn, sources []Source, scripts []string) (err error) {
	return withAttached(ctx, conn, sources, func() error {
		script := "BEGIN IMMEDIATE; " + strings.Join(scripts, ";\n") + "; COMMIT"
		if _, err := conn.ExecContext(ctx, script); err != nil {
			_, undo := conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
			return errors.Join(fmt.Errorf("copy the rows: %w", err), ignoreAlreadyEnded(undo))
		}
		return nil
	})
}

// A table is a table to be copied, with its columns.
type table struct {
	name    string
	columns []string
}

func (t table) quotedName() string { return pgx.Identifier{t.name}.Sanitize() }

// query returns the SELECT that reads the whole table, with the columns in the same order
// in both databases.
func (t table) query() string { return "SELECT " + t.columnNames() + " FROM " + t.quotedName() }

// columnNames returns the names of the columns, quoted and separated by commas, for use in statements.
func (t table) columnNames() string {
	ids := make([]string, len(t.columns))
	for i, c := range t.columns {
		ids[i] = pgx.Identifier{c}.Sanitize()
	}
	return strings.Join(ids, ", ")
}

// tablesOf lists a component's tables except the derived ones, as its migrations create them in an empty
// SQLite database.
func tablesOf(ctx context.Context, s Schema) (tables []table, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	if _, err := db.ExecContext(ctx, strings.Join(s.SQLite, ";\n")); err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	found, err := db.QueryContext(ctx, `
		SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY t.name, c.cid`)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	defer func() { _ = found.Close() }() // found.Err has reported errors already
	for found.Next() {
		var name, column string
		if err := found.Scan(&name, &column); err != nil {
			return nil, fmt.Errorf("list tables: %w", err)
		}
		if slices.Contains(s.DerivedTables, name) {
			continue
		}
		if len(tables) == 0 || tables[len(tables)-1].name != name {
			tables = append(tables, table{name: name})
		}
		last := &tables[len(tables)-1]
		last.columns = append(last.columns, column)
	}
	return tables, found.Err()
}

// transfer copies the table's rows, compares them with the original, and returns their
// number.
func (t table) transfer(ctx context.Context, from *DB, tx *Tx, meter *transferMeter) (n int64, err error) {
	if _, err := tx.Exec("LOCK TABLE " + t.quotedName() + " IN ACCESS EXCLUSIVE MODE"); err != nil {
		return 0, err
	}
	var filled bool
	if err := tx.Get("SELECT EXISTS (SELECT 1 FROM "+t.quotedName()+")", nil, &filled); err != nil {
		return 0, err
	}
	if filled {
		return 0, &NotEmptyError{t.name}
	}
	found, err := from.Read.QueryContext(ctx, t.query())
	if err != nil {
		return 0, err
	}
	defer func() { _ = found.Close() }() // found.Err has reported errors already
	seed := maphash.MakeSeed()
	taken, there := &checksum{seed: seed, meter: meter}, &checksum{seed: seed, meter: meter}
	err = tx.conn.Raw(func(dc any) error {
		c := dc.(*conn).Conn.Conn()
		truths, err := t.boolColumns(ctx, c)
		if err != nil {
			return err
		}
		if _, err := c.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, &copySource{rows: found, checksum: taken, bools: truths}); err != nil {
			return err
		}
		return t.sumRows(ctx, c, there)
	})
	if err != nil {
		return 0, err
	}
	if *taken != *there {
		return 0, fmt.Errorf("%d rows were taken and %d other ones stand there", taken.rows, there.rows)
	}
	return taken.rows, t.continueNumbers(tx)
}

// boolColumns returns for each column whether it is a boolean in PostgreSQL. SQLite has
// numbers instead.
func (t table) boolColumns(ctx context.Context, c *pgx.Conn) ([]bool, error) {
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

// sumRows adds the table's rows in PostgreSQL to a checksum.
func (t table) sumRows(ctx context.Context, c *pgx.Conn, into *checksum) error {
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

// continueNumbers sets the counter of the column that PostgreSQL numbers by itself above the highest
// copied number, so that new rows get new numbers.
func (t table) continueNumbers(tx *Tx) error {
	var column string
	err := tx.Get("SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attidentity <> ''", []any{t.quotedName()}, &column)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	var last sql.NullInt64
	if err := tx.Get("SELECT max("+pgx.Identifier{column}.Sanitize()+") FROM "+t.quotedName(), nil, &last); err != nil || !last.Valid {
		return err
	}
	_, err = tx.Exec("SELECT setval(pg_get_serial_sequence(?, ?), ?)", t.quotedName(), column, last.Int64)
	return err
}

// A copySource gives pgx the rows of a SQLite table to copy, and computes their checksum.
type copySource struct {
	rows     *sql.Rows
	checksum *checksum
	bools    []bool
	err      error
	row      []any
}

// Next advances to the next row; pgx calls it.
func (s *copySource) Next() bool {
	if s.err != nil || !s.rows.Next() {
		return false
	}
	s.row = make([]any, len(s.bools))
	dest := make([]any, len(s.bools))
	for i := range dest {
		dest[i] = &s.row[i]
	}
	if s.err = s.rows.Scan(dest...); s.err != nil {
		return false
	}
	for i, v := range s.row {
		if n, ok := v.(int64); ok && s.bools[i] {
			s.row[i] = n != 0
		}
	}
	s.err = s.checksum.add(s.row)
	return s.err == nil
}

// Values returns the current row; pgx calls it.
func (s *copySource) Values() ([]any, error) { return s.row, s.err }

// Err returns the error that ended the rows, if any; pgx calls it.
func (s *copySource) Err() error { return errors.Join(s.err, s.rows.Err()) }

// A checksum adds up rows in such a way that their order does not matter.
type checksum struct {
	seed  maphash.Seed
	rows  int64
	total uint64
	meter *transferMeter
}

func (s *checksum) add(row []any) error {
	s.meter.add()
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
