package sqldb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/sqldb"
)

// namesSchema returns a component with a table of names. Unlike other components, it copies its rows with a
// mark, by a statement of its own.
func namesSchema() sqldb.Schema {
	return sqldb.Schema{
		Name:            "names",
		SQLite:          []string{"CREATE TABLE names (name TEXT PRIMARY KEY)", "ALTER TABLE names ADD COLUMN age INTEGER NOT NULL DEFAULT 7"},
		AdoptStatements: []string{"INSERT INTO main.names (name, age) SELECT 'from ' || name, age FROM {from}.names WHERE true ON CONFLICT DO NOTHING"},
	}
}

// newComponentFile makes a file with the tables of one component, and runs statements in it.
func newComponentFile(t *testing.T, s sqldb.Schema, statements ...string) sqldb.Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), s.Name+".db")
	db, err := sqldb.Open(t.Context(), path, s.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	closeDB(t, db)
	return sqldb.Source{Path: path, Schema: s}
}

// Adopt copies the content of other files completely or not at all, and only once. Those files stay unchanged.
func TestAdoptCopiesAllOrNothing(t *testing.T) {
	pairs := sqldb.Schema{Name: "pairs", SQLite: []string{"CREATE TABLE pairs (a TEXT, b TEXT, PRIMARY KEY (a))"}}
	sources := []sqldb.Source{
		newComponentFile(t, namesSchema(), "INSERT INTO names (name) VALUES ('anna'), ('ben')"),
		newComponentFile(t, pairs, "INSERT INTO pairs VALUES ('a', 'theirs'), ('b', 'theirs')"),
	}
	before := []string{readFile(t, sources[0].Path), readFile(t, sources[1].Path)}
	path := filepath.Join(t.TempDir(), "shared.db")
	db, err := sqldb.OpenFile(t.Context(), path, newComponent("store", 1), namesSchema(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	defer closeDB(t, db)
	if _, err := db.Exec(t.Context(), "INSERT INTO pairs VALUES ('a', 'ours')"); err != nil {
		t.Fatal(err)
	}
	gone := sqldb.Source{Path: filepath.Join(t.TempDir(), "gone.db"), Schema: pairs}
	for what, list := range map[string][]sqldb.Source{
		"a file that is missing":   {sources[0], gone},
		"a file of another schema": {sources[0], {Path: newComponentFile(t, newComponent("store", 1)).Path, Schema: pairs}},
	} {
		if err := db.Adopt(t.Context(), list...); err == nil {
			t.Errorf("%s was adopted", what)
		}
		if n := countRows(t, db, "names"); n != 0 {
			t.Errorf("%s: %d rows were copied all the same", what, n)
		}
	}
	if _, err := os.Stat(gone.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the missing file was made: %v", err)
	}
	for range 2 {
		if err := db.Adopt(t.Context(), sources...); err != nil {
			t.Fatal(err)
		}
		if n, m := countRows(t, db, "names WHERE name LIKE 'from %' AND age = 7"), countRows(t, db, "pairs"); n != 2 || m != 2 {
			t.Errorf("there are %d names and %d pairs, want 2 and 2", n, m)
		}
		if n := countRows(t, db, "pairs WHERE a = 'a' AND b = 'ours'"); n != 1 {
			t.Error("what was there was replaced")
		}
	}
	insertInto(t, db, "store") // writes still work afterwards
	for i, s := range sources {
		if got := readFile(t, s.Path); got != before[i] {
			t.Errorf("%s was changed", s.Path)
		}
		if _, err := os.Stat(s.Path + "-wal"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was left open: %v", s.Path, err)
		}
	}
}

// The file becomes shared in the transaction that copies the content of all other files. Files of older
// versions stay unchanged: the migrations that they lack are applied to the copy.
func TestOpenAdoptingIsAllOrNothing(t *testing.T) {
	old, pairs := namesSchema(), sqldb.Schema{Name: "pairs", SQLite: []string{"CREATE TABLE pairs (a TEXT, b TEXT, PRIMARY KEY (a))"}}
	old.SQLite = old.SQLite[:1]
	names := newComponentFile(t, old, "INSERT INTO names (name) VALUES ('anna'), ('ben')")
	names.Schema = namesSchema()
	empty := sqldb.Source{Path: filepath.Join(t.TempDir(), "empty.db"), Schema: pairs}
	if err := os.WriteFile(empty.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later := namesSchema()
	later.SQLite = append(later.SQLite, "CREATE TABLE later (n INTEGER)")
	newer := newComponentFile(t, later)
	newer.Schema = namesSchema()
	before := readFile(t, names.Path)
	path := filepath.Join(t.TempDir(), "store.db")
	adopt := func(begin error, from ...sqldb.Source) (db *sqldb.DB, shared bool, err error) {
		db, err = sqldb.OpenAdopting(t.Context(), path, from, func(is bool) error { shared = is; return begin }, newComponent("store", 1), namesSchema(), pairs)
		return db, shared, err
	}
	refused := errors.New("refused")
	for what, c := range map[string]struct {
		begin error
		from  []sqldb.Source
		want  string
	}{
		"the caller refuses":    {refused, []sqldb.Source{names}, refused.Error()},
		"a file is missing":     {nil, []sqldb.Source{names, {Path: path + ".gone", Schema: pairs}}, ".gone"},
		"a file is newer":       {nil, []sqldb.Source{newer}, newer.Path + ": it has version 3"},
		"a file is no database": {nil, []sqldb.Source{names, {Path: os.Args[0], Schema: pairs}}, "not a database"},
	} {
		if _, _, err := adopt(c.begin, c.from...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: it is opened with %v", what, err)
		}
		alone, err := sqldb.Open(t.Context(), path, newComponent("store", 1).SQLite)
		if err != nil {
			t.Fatalf("%s: the release before is refused: %v", what, err)
		}
		closeDB(t, alone)
	}
	for again := range 2 {
		db, shared, err := adopt(nil, names, empty)
		if err != nil {
			t.Fatal(err)
		}
		if shared != (again > 0) {
			t.Errorf("opened for the %d. time it is shared: %t", again+1, shared)
		}
		if n := countRows(t, db, "names WHERE name IN ('anna', 'ben') AND age = 7"); n != 2 {
			t.Errorf("opened for the %d. time it has %d names", again+1, n)
		}
		insertInto(t, db, "store")
		closeDB(t, db)
		if again == 0 && readFile(t, names.Path) != before {
			t.Error("the old file was changed")
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
