package sqlbook_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
)

// A book with the earlier table layout keeps everything that it knows of sends.
func TestSendsOfTheEarlierLayoutAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.db")
	earlier := sqlbook.Schema().SQLite
	earlier = earlier[:slices.IndexFunc(earlier, func(m string) bool { return m == sqlbook.Compact })]
	db, err := sqldb.Open(t.Context(), path, earlier)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(`INSERT INTO sends (id, channel, chat, thread, begun, session) VALUES (?, 'test', ?, 'th', ?, 's')`,
				fmt.Sprint("o", n), fmt.Sprint(n), int64(1e15)+int64(n))
			if err != nil {
				return err
			}
			for part, state := range []string{channels.Sent, channels.Drafted, channels.OutcomeUnknown} {
				if _, err := tx.Exec(`INSERT INTO parts (send, part, state, body, plain, platform_id, interrupted, code, changed, edits, under, file)
					VALUES (?, ?, ?, 'b', 'p', ?, 2, 'c', ?, 'e', 'u', 1)`,
					fmt.Sprint("o", n), part, state, fmt.Sprintf("m%d%d", n, part), int64(2e15)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db, err = sqldb.Open(t.Context(), path, sqlbook.Schema().SQLite) // opened without a Book, because it would delete these old sends
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var sends, parts, indexes int
	if err := db.Read.QueryRow(`SELECT count(*) FROM sends WHERE channel = 'test' AND chat = substr(id, 2) AND thread = 'th' AND session = 's'
		AND begun = 1000000000000000 + chat`).Scan(&sends); err != nil {
		t.Fatal(err)
	}
	if err := db.Read.QueryRow(`SELECT count(*) FROM parts WHERE body = 'b' AND plain = 'p' AND platform_id = 'm' || substr(send, 2) || part
		AND state IN ('sent', 'draft', 'unknown') AND interrupted = 2 AND code = 'c' AND changed = 2000000000000000 AND edits = 'e' AND under = 'u' AND file = 1`).Scan(&parts); err != nil {
		t.Fatal(err)
	}
	if err := db.Read.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND sql <> '' AND tbl_name IN ('sends', 'parts')`).Scan(&indexes); err != nil {
		t.Fatal(err)
	}
	if sends != 50 || parts != 150 || indexes != 8 {
		t.Errorf("%d sends, %d parts and %d indexes are left, want 50, 150 and 8", sends, parts, indexes)
	}
	var known bus.Address
	if err := db.Read.QueryRow(`SELECT channel, chat, thread FROM sends WHERE id = 'o7'`).Scan(&known.Channel, &known.Chat, &known.Thread); err != nil || known.Chat != "7" {
		t.Errorf("a send by its id is at %v, %v", known, err)
	}
}
