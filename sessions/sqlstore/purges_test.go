package sqlstore

import (
	"context"
	"path/filepath"
	"testing"

	"parley/sessions/sqldb"
)

// If somebody else's erasure ends, and the file is rewritten, before all is erased that another has
// announced, that other's record is taken away with the rest. What is put off at its end is recorded
// all the same, so that the next process rewrites the file.
func TestTheRecordOfAnErasureOutlivesThoseOfOthers(t *testing.T) {
	db, err := sqldb.Open(t.Context(), filepath.Join(t.TempDir(), "one.db"), []string{purgesMigration})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	record := newPurger(db)
	endLong, err := record.announce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	endShort, err := record.announce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := endShort(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var putOff sqldb.Purges
	if err := putOff.Collect(t.Context(), func(ctx context.Context) (bool, error) { return true, endLong(ctx, true) }); err != nil || putOff.IsEmpty() {
		t.Fatalf("nothing is put off: %v", err)
	}
	var next sqldb.Purges // of the next process
	if err := next.Collect(t.Context(), func(ctx context.Context) (bool, error) { return true, record.erase(ctx, func() error { return nil }) }); err != nil || next.IsEmpty() {
		t.Errorf("nothing is left to be purged: %v", err)
	}
}
