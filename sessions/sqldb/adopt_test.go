package sqldb_test

import (
	"errors"
	"os"
	"path/filepath"
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

func contentOf(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
