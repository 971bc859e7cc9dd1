package sqlitebus_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/sessions/sqldb"
)

// openAdopting opens a bus with a shared database, which first takes over the files of other buses.
func openAdopting(t *testing.T, dir string, files ...string) *sqlitebus.Bus {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db"), Database: func(ctx context.Context) (*sqldb.DB, error) {
		db, err := sqldb.OpenFile(ctx, filepath.Join(dir, "shared.db"), sqlitebus.Schema())
		for _, file := range files {
			if err == nil {
				err = db.Adopt(ctx, sqldb.Source{Path: file, Schema: sqlitebus.Schema()})
			}
		}
		return db, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func publish(t *testing.T, b *sqlitebus.Bus, key string, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: key, Body: []byte("of " + id)}); err != nil {
			t.Fatal(err)
		}
	}
}

// take claims the next mailbox, settles its messages, buries the last one if dead is true, and returns the ids.
func take(t *testing.T, b *sqlitebus.Bus, dead bool) (ids []string) {
	t.Helper()
	l, err := b.Claim(t.Context(), bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	mail, err := l.Mail(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mail {
		ids = append(ids, m.ID)
		if i > 0 && m.Seq <= mail[i-1].Seq {
			t.Errorf("%s has number %d after %d", m.ID, m.Seq, mail[i-1].Seq)
		}
	}
	last := mail[len(mail)-1].Seq
	end := bus.End{Done: last}
	if dead {
		end = bus.End{Dead: last, Reason: "in vain"}
	}
	if err := l.Settle(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	return ids
}

func closeBus(t *testing.T, b *sqlitebus.Bus) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// A bus takes over everything in another bus's file, even repeatedly, and even while it works on what it has taken
// over.
func TestABusTakesOverAnother(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "other.db")
	other := open(t, file)
	publish(t, other, "a", "a1")
	take(t, other, true)
	publish(t, other, "b", "b1")
	take(t, other, false)
	publish(t, other, "c", "c1", "c2", "c3")
	publish(t, other, "d", "d1")
	if err := other.Pause(t.Context(), bus.OutboundTopic("x"), time.Hour); err != nil {
		t.Fatal(err)
	}
	highest := other.Highest()
	closeBus(t, other)

	b := openAdopting(t, dir, file, file)
	if got := b.Highest(); got <= highest {
		t.Errorf("its numbers begin at %d, want above %d", got, highest)
	}
	check := func(when string, waiting int, dead int) {
		t.Helper()
		d, err := b.Depth(t.Context(), bus.InboundTopic)
		if err != nil || d.Waiting != waiting || d.Dead != dead {
			t.Errorf("%s there are %+v, %v; want %d messages and %d dead letters", when, d, err, waiting, dead)
		}
	}
	check("at first", 4, 1)
	publish(t, b, "c", "b1", "c2") // known ids
	publish(t, b, "c", "c4")
	check("with one more", 5, 1)
	if pauses, err := b.Pauses(t.Context()); err != nil || len(pauses) != 1 {
		t.Errorf("pauses are %v, %v", pauses, err)
	}
	if got := take(t, b, false); !slices.Equal(got, []string{"c1", "c2", "c3", "c4"}) {
		t.Errorf("the first mailbox has %q", got)
	}
	closeBus(t, b)
	b = openAdopting(t, dir, file) // the file came back
	check("after the file came back", 1, 1)
	if got := take(t, b, false); !slices.Equal(got, []string{"d1"}) {
		t.Errorf("what is left is %q", got)
	}
	closeBus(t, b)
}

// If two buses gave the same numbers to different messages, none is lost, and mailboxes keep their order.
func TestABusTakesOverMessagesOfTheSameNumbers(t *testing.T) {
	dir := t.TempDir()
	b := openAdopting(t, dir)
	publish(t, b, "k", "k1", "k2", "k3")
	closeBus(t, b)
	file := filepath.Join(dir, "other.db")
	other := open(t, file)
	var all []string
	for n := range 6 {
		all = append(all, fmt.Sprint("o", n))
	}
	publish(t, other, "o", all...)
	closeBus(t, other)
	b = openAdopting(t, dir, file)
	defer closeBus(t, b)
	publish(t, b, "o", "last")
	publish(t, b, "k", "k4")
	for _, want := range [][]string{{"k1", "k2", "k3", "k4"}, append(all, "last")} {
		if got := take(t, b, false); !slices.Equal(got, want) {
			t.Errorf("a mailbox has %q, want %q", got, want)
		}
	}
}

// A bus can move out of a shared database into a file of its own, even if the move is repeated.
func TestABusIsSplitOff(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own.db")
	b := openAdopting(t, dir)
	publish(t, b, "a", "a1", "a2")
	publish(t, b, "b", "b1")
	var points []string
	for range 2 {
		if err := b.Split(t.Context(), filepath.Join(dir, "shared.db"), own, func(at string) { points = append(points, at) }); err != nil {
			t.Fatal(err)
		}
	}
	closeBus(t, b)
	if len(points) != 4 {
		t.Errorf("it passed %q", points)
	}
	left := openAdopting(t, dir)
	if d, err := left.Depth(t.Context(), bus.InboundTopic); err != nil || d.Waiting != 0 {
		t.Errorf("there are left %+v, %v", d, err)
	}
	closeBus(t, left)
	b = open(t, own)
	publish(t, b, "b", "a1") // a known id
	for _, want := range [][]string{{"a1", "a2"}, {"b1"}} {
		if got := take(t, b, false); !slices.Equal(got, want) {
			t.Errorf("a mailbox has %q, want %q", got, want)
		}
	}
}

// While the file is purged, publishing waits but never fails, and held leases stay held.
func TestPublishingWaitsWhileTheFileIsPurged(t *testing.T) {
	dir := t.TempDir()
	var db *sqldb.DB
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db"), Database: func(ctx context.Context) (_ *sqldb.DB, err error) {
		db, err = sqldb.OpenFile(ctx, filepath.Join(dir, "shared.db"), sqldb.Schema{Name: "other", SQLite: []string{"CREATE TABLE other (text TEXT)"}}, sqlitebus.Schema())
		return db, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBus(t, b)
	if _, err := db.Exec(t.Context(), "WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 5000) INSERT INTO other (text) SELECT printf('%2000d', v) FROM n"); err != nil {
		t.Fatal(err)
	}
	publish(t, b, "held", "h")
	held, err := b.Claim(t.Context(), bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var purging sync.WaitGroup
	purging.Go(func() {
		for ctx.Err() == nil {
			if err := db.Purge(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	var all sync.WaitGroup
	for k := range 4 {
		all.Go(func() {
			for n := range 5 {
				m := bus.Message{ID: fmt.Sprint(k, "-", n), Key: fmt.Sprint(k), Body: []byte("{}")}
				if err := b.Publish(t.Context(), bus.InboundTopic, m); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	stop()
	purging.Wait()
	if err := held.Held(t.Context()); err != nil {
		t.Errorf("the lease that was held: %v", err)
	}
	if d, err := b.Depth(t.Context(), bus.InboundTopic); err != nil || d.Waiting != 20 || d.Leased != 1 {
		t.Errorf("there are %+v, %v; want 20 messages, and one mailbox leased", d, err)
	}
}
