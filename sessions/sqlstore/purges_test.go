package sqlstore

import (
	"context"
	"path/filepath"
	"testing"

	"parley/sessions/sqldb"
)

// Another erasure may end, and purge the file, before an announced one has finished. That removes the record of
// the announced erasure. The end of the announced one records it again, so that the next process purges the
// file.
func TestAnAnnouncedErasureIsPurgedDespiteAnotherOne(t *testing.T) {
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
	var next sqldb.Purges // as the next process sees them
	if err := next.Collect(t.Context(), func(ctx context.Context) (bool, error) { return true, record.erase(ctx, func() error { return nil }) }); err != nil || next.IsEmpty() {
		t.Errorf("nothing is left to be purged: %v", err)
	}
}
