package sqlbook_test

import (
	"strings"
	"testing"

	"parley/bus"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// PrivateChatAt finds its row by the primary key, which sorts by thread. It reads no other chat, and sorts
// nothing.
func TestPrivateChatAtUsesThePrimaryKey(t *testing.T) {
	var statements sqldbtest.Statements
	lite, err := sqldb.OpenAt(statements.Watch(t.Context()), newPlace(t), sqlbook.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lite.Close() })
	b, err := sqlbook.Use(t.Context(), lite)
	if err != nil {
		t.Fatal(err)
	}
	statements.Forget()
	if _, _, err := b.PrivateChatAt(t.Context(), bus.Address{Channel: "c", Chat: "1"}); err != nil {
		t.Fatal(err)
	}
	asked := statements.List()
	if len(asked) != 1 {
		t.Fatalf("the statements are %q", asked)
	}
	check := func(t *testing.T, db *sqldb.DB, key string) {
		t.Helper()
		plan := strings.Join(sqldbtest.Plan(t, db.Read, db.IsPostgres(), asked[0]), "\n")
		if !strings.Contains(plan, key) || strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("it is found so:\n%s", plan)
		}
	}
	t.Run("sqlite", func(t *testing.T) { check(t, lite, "sqlite_autoindex_chats_1 (channel=? AND chat=?)") })
	t.Run("postgres", func(t *testing.T) {
		pg, err := sqldb.OpenAt(t.Context(), sqldbtest.New(t), sqlbook.Schema())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pg.Close() })
		check(t, pg, "Index Scan using chats_pkey on chats")
	})
}
