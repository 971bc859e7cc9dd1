package sqldb_test

import (
	"path/filepath"
	"slices"
	"testing"

	"parley/sessions/sqldb"
)

// Column returns the found texts as they are stored, and the query's error.
func TestColumnReadsTexts(t *testing.T) {
	db, err := sqldb.OpenAt(t.Context(), filepath.Join(t.TempDir(), "a.db"), sqldb.Schema{Name: "a", SQLite: []string{"CREATE TABLE a (id TEXT)"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for _, id := range []string{"b", "a", sqldb.Text("\x00")} {
		if _, err := db.Exec(t.Context(), "INSERT INTO a (id) VALUES (?)", id); err != nil {
			t.Fatal(err)
		}
	}
	before := db.Read.Stats().InUse
	got, err := sqldb.Column(db.Read.QueryContext(t.Context(), "SELECT id FROM a ORDER BY id"))
	if want := []string{sqldb.Text("\x00"), "a", "b"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("found %q, %v, want %q", got, err, want)
	}
	if got, err := sqldb.Column(db.Read.QueryContext(t.Context(), "SELECT id FROM a WHERE id = 'c'")); err != nil || len(got) != 0 {
		t.Errorf("found %q, %v", got, err)
	}
	for _, query := range []string{"SELECT id FROM b", "SELECT NULL FROM a"} {
		if _, err := sqldb.Column(db.Read.QueryContext(t.Context(), query)); err == nil {
			t.Errorf("%s passed", query)
		}
	}
	if in := db.Read.Stats().InUse; in != before {
		t.Errorf("%d connections more are in use", in-before)
	}
}
