package sqlbook_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// However many old sends there are, one transaction deletes only a few hundred of them, with their parts.
func TestOldSendsAreDeletedAFewAtATime(t *testing.T) {
	for name, place := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return filepath.Join(t.TempDir(), "book.db") },
		"postgres": sqldbtest.New,
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.OpenAt(t.Context(), place(t), sqlbook.Schema())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			const old = 1300
			err = db.Write(t.Context(), func(tx *sqldb.Tx) error {
				for n := range old + 10 {
					begun := time.Now().UnixMicro()
					if n < old {
						begun = int64(1 + n)
					}
					if _, err := tx.Exec(`INSERT INTO sends (id, channel, chat, thread, begun) VALUES (?, 'test', '1', '', ?)`, fmt.Sprint(n), begun); err != nil {
						return err
					}
					if n%3 == 0 { // an interrupted erasure leaves sends without parts
						continue
					}
					if _, err := tx.Exec(`INSERT INTO parts (send, part, state, body, plain, platform_id, interrupted, code, changed) VALUES (?, 0, 'sent', '', '', '', 0, '', 1)`, fmt.Sprint(n)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []int{10 + old - sqlbook.PruneLimit, 10 + old - 2*sqlbook.PruneLimit, 10, 10} {
				if _, err := sqlbook.Use(t.Context(), db); err != nil { // opening a book deletes old sends
					t.Fatal(err)
				}
				var sends, orphans int
				if err := db.Read.QueryRow("SELECT count(*) FROM sends").Scan(&sends); err != nil {
					t.Fatal(err)
				}
				if err := db.Read.QueryRow("SELECT count(*) FROM parts WHERE send NOT IN (SELECT id FROM sends)").Scan(&orphans); err != nil {
					t.Fatal(err)
				}
				if sends != want || orphans != 0 {
					t.Errorf("%d sends are left, want %d, and %d parts without a send", sends, want, orphans)
				}
			}
		})
	}
}
