package sqldb_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/sessions/sqldb"
)

// namesOf returns a component with a table of names. Its rows, unlike those of other components,
// are copied with a mark.
func namesOf() sqldb.Schema {
	return sqldb.Schema{
		Name:   "names",
		SQLite: []string{"CREATE TABLE names (name TEXT PRIMARY KEY)", "ALTER TABLE names ADD COLUMN age INTEGER NOT NULL DEFAULT 7"},
		Adopt:  []string{"INSERT INTO main.names (name, age) SELECT 'from ' || name, age FROM {from}.names WHERE true ON CONFLICT DO NOTHING"},
	}
}

// fileOf makes a file that one component has alone, and runs statements in it.
func fileOf(t *testing.T, s sqldb.Schema, statements ...string) sqldb.Source {
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
	closeIt(t, db)
	return sqldb.Source{Path: path, Schema: s}
}

// What other files hold is copied all or not at all, and once; these files stay as they are.
func TestAdopt(t *testing.T) {
	pairs := sqldb.Schema{Name: "pairs", SQLite: []string{"CREATE TABLE pairs (a TEXT, b TEXT, PRIMARY KEY (a))"}}
	sources := []sqldb.Source{
		fileOf(t, namesOf(), "INSERT INTO names (name) VALUES ('anna'), ('ben')"),
		fileOf(t, pairs, "INSERT INTO pairs VALUES ('a', 'theirs'), ('b', 'theirs')"),
	}
	before := []string{contentOf(t, sources[0].Path), contentOf(t, sources[1].Path)}
	path := filepath.Join(t.TempDir(), "shared.db")
	db, err := sqldb.OpenFile(t.Context(), path, componentOf("store", 1), namesOf(), pairs)
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, db)
	if _, err := db.Exec(t.Context(), "INSERT INTO pairs VALUES ('a', 'ours')"); err != nil {
		t.Fatal(err)
	}
	gone := sqldb.Source{Path: filepath.Join(t.TempDir(), "gone.db"), Schema: pairs}
	for what, list := range map[string][]sqldb.Source{
		"a file that is missing":   {sources[0], gone},
		"a file of another schema": {sources[0], {Path: fileOf(t, componentOf("store", 1)).Path, Schema: pairs}},
	} {
		if err := db.Adopt(t.Context(), list...); err == nil {
			t.Errorf("%s was adopted", what)
		}
		if n := rowsOf(t, db, "names"); n != 0 {
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
		if n, m := rowsOf(t, db, "names WHERE name LIKE 'from %' AND age = 7"), rowsOf(t, db, "pairs"); n != 2 || m != 2 {
			t.Errorf("there are %d names and %d pairs, want 2 and 2", n, m)
		}
		if n := rowsOf(t, db, "pairs WHERE a = 'a' AND b = 'ours'"); n != 1 {
			t.Error("what was there was replaced")
		}
	}
	insertInto(t, db, "store") // the writer goes on
	for i, s := range sources {
		if got := contentOf(t, s.Path); got != before[i] {
			t.Errorf("%s was changed", s.Path)
		}
		if _, err := os.Stat(s.Path + "-wal"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was left open: %v", s.Path, err)
		}
	}
}

// A file is shared once all that others hold is copied, in one transaction, and not before. Files of
// older versions are not changed: what they have not seen is applied to the copy.
func TestOpenAdoptingIsAllOrNothing(t *testing.T) {
	old, pairs := namesOf(), sqldb.Schema{Name: "pairs", SQLite: []string{"CREATE TABLE pairs (a TEXT, b TEXT, PRIMARY KEY (a))"}}
	old.SQLite = old.SQLite[:1]
	names := fileOf(t, old, "INSERT INTO names (name) VALUES ('anna'), ('ben')")
	names.Schema = namesOf()
	empty := sqldb.Source{Path: filepath.Join(t.TempDir(), "empty.db"), Schema: pairs}
	if err := os.WriteFile(empty.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	later := namesOf()
	later.SQLite = append(later.SQLite, "CREATE TABLE later (n INTEGER)")
	newer := fileOf(t, later)
	newer.Schema = namesOf()
	before := contentOf(t, names.Path)
	path := filepath.Join(t.TempDir(), "store.db")
	adopt := func(begin error, from ...sqldb.Source) (db *sqldb.DB, shared bool, err error) {
		db, err = sqldb.OpenAdopting(t.Context(), path, from, func(is bool) error { shared = is; return begin }, componentOf("store", 1), namesOf(), pairs)
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
		alone, err := sqldb.Open(t.Context(), path, componentOf("store", 1).SQLite)
		if err != nil {
			t.Fatalf("%s: the release before is refused: %v", what, err)
		}
		closeIt(t, alone)
	}
	for again := range 2 {
		db, shared, err := adopt(nil, names, empty)
		if err != nil {
			t.Fatal(err)
		}
		if shared != (again > 0) {
			t.Errorf("opened for the %d. time it is shared: %t", again+1, shared)
		}
		if n := rowsOf(t, db, "names WHERE name IN ('anna', 'ben') AND age = 7"); n != 2 {
			t.Errorf("opened for the %d. time it has %d names", again+1, n)
		}
		insertInto(t, db, "store")
		closeIt(t, db)
		if again == 0 && contentOf(t, names.Path) != before {
			t.Error("the old file was changed")
		}
	}
}

func contentOf(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
