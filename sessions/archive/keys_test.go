package archive_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/sessions"
	"parley/sessions/archive/folder"
	"parley/sessions/schedules"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

func openStore(t testing.TB) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// keySubjects returns the subjects of the keys in the database at a place.
func keySubjects(t testing.TB, at string) (all []string) {
	t.Helper()
	err := sqldb.WithReadOnly(t.Context(), at, func(db *sqldb.DB) error {
		rows, err := db.Read.QueryContext(t.Context(), "SELECT kind, subject FROM audit_keys ORDER BY kind, subject")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var kind, subject string
			if err := rows.Scan(&kind, &subject); err != nil {
				return err
			}
			all = append(all, kind+" "+subject)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// If retention leaves nothing of a person, it deletes the person's key, so nobody can tell which lines are
// theirs. As long as anything is left, the pseudonym stays the same. Programs keep their keys.
func TestRetentionDeletesKeysOfForgottenPeople(t *testing.T) {
	const claire, program = "telegram:43", "ci"
	sqlstoretest.Each(t, func(t *testing.T, at string, s, _ *sqlstore.Store) {
		dir := t.TempDir()
		place := folder.New(dir)
		retain := func(day int, people ...string) {
			t.Helper()
			if _, err := s.EraseBefore(t.Context(), monday().AddDate(0, 0, day)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, key := range keySubjects(t, at) {
				if person, ok := strings.CutPrefix(key, "person "); ok {
					got = append(got, person)
				}
			}
			if slices.Sort(people); !slices.Equal(got, people) {
				t.Errorf("after day %d there are keys of %q, want %q", day, got, people)
			}
		}
		by := func(file int) (name string) { // by returns who, according to a file, did the last thing of its day
			lines := readLines(t, filePath(dir, file))
			var r struct{ By string }
			if err := json.Unmarshal([]byte(lines[len(lines)-2]), &r); err != nil || r.By == "" {
				t.Fatal(r, err)
			}
			return r.By
		}
		alone := func(day int, person string) sessions.AuditRecord {
			r := toolCallRecord(day, private, person)
			r.Detail = ""
			return r
		}
		addSessions(t, s, private, anna)
		if _, err := s.Schedules().Add(t.Context(), schedules.Schedule{ID: "s1", Session: private, Person: claire, When: "every day", MadeAt: monday(), Next: monday()}, 10); err != nil {
			t.Fatal(err)
		}
		addRecords(t, s, alone(0, claire), alone(0, program), toolCallRecord(0, group, anna), toolCallRecord(4, group, anna), alone(8, anna))
		archiveAt(t, s, place, timeAfterDays(1))
		first := by(0)
		retain(-10_000, anna, berta, claire, program)
		retain(1, anna, berta, claire, program) // records of anna and berta are left, and a schedule of claire
		archiveAt(t, s, place, timeAfterDays(5))
		if got := by(4); got != first {
			t.Errorf("while records are left, anna became %s, and was %s", got, first)
		}
		retain(7, anna, claire, program) // berta had only approved a call
		archiveAt(t, s, place, timeAfterDays(9))
		if got := by(8); got != first {
			t.Errorf("while a record is left, anna became %s, and was %s", got, first)
		}
		if err := s.Schedules().Remove(t.Context(), "s1"); err != nil {
			t.Fatal(err)
		}
		retain(10, program)
		wantWhole(t, s, place, 3, 5)
		addRecords(t, s, alone(11, anna)) // a person who comes back gets a new pseudonym
		archiveAt(t, s, place, timeAfterDays(12))
		if got := by(11); got == first {
			t.Error("anna's old lines are still hers")
		}
		retain(11, anna, program)
		wantWhole(t, s, place, 4, 6)
	})
}
