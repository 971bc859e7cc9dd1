package subscriptions

import (
	"path/filepath"
	"testing"

	"parley/sessions/sqldb"
)

// If it is unknown whether a channel's event was stored, it is recorded again with the same id, unless the
// channel has changed since.
func TestARetriedChannelEventKeepsItsID(t *testing.T) {
	db, err := sqldb.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	table := NewTable(db)
	table.Want(Subscription{Name: "a", Events: "channel.*"})
	record := func(state string) string {
		t.Helper()
		if err := table.RecordChannel(t.Context(), "slack", state); err == nil {
			t.Fatal("it was recorded in a closed database")
		}
		e, _ := table.unstoredChannels.Load("slack")
		return e.(Event).ID
	}
	up := record("up")
	if again := record("up"); again != up {
		t.Errorf("it was %s and is %s", up, again)
	}
	down := record("down")
	if again := record("up"); down == up || again == up || again == down {
		t.Errorf("three changes are %s, %s and %s", up, down, again)
	}
}
