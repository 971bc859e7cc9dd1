package sqlitebus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/sessions/sqldb"
)

func harness() bustest.Harness {
	return bustest.Harness{
		NewPlace: bustest.FilePlace,
		Open: func(ctx context.Context, place string, o bustest.Options) (bustest.Bus, error) {
			c := sqlitebus.Config{Path: place, Caps: o.Caps, MaxHold: o.MaxHold}
			if filepath.Base(place) == sharedName {
				return openShared(ctx, c)
			}
			return sqlitebus.Open(ctx, c)
		},
		Residue: func(t testing.TB, _ string, b bustest.Bus) []string {
			keys, err := b.(interface{ Keys() ([]string, error) }).Keys()
			if err != nil {
				t.Fatal(err)
			}
			return keys
		},
		Simulated: true,
	}
}

func TestMain(m *testing.M) { bustest.Main(m, harness()) }

func TestBus(t *testing.T) { bustest.Run(t, harness()) }

// sharedName is the name of files in which a bus shares its database with other components.
const sharedName = "shared.db"

// A sharedBus is a bus whose messages are published in the transactions of another component.
type sharedBus struct {
	*sqlitebus.Bus
	db    *sqldb.DB
	close func() error
}

func openShared(ctx context.Context, c sqlitebus.Config) (b *sharedBus, err error) {
	b = &sharedBus{}
	c.Database = func(ctx context.Context) (_ *sqldb.DB, err error) {
		b.db, err = sqldb.OpenFile(ctx, c.Path, sqldb.Schema{Name: "other", SQLite: []string{"CREATE TABLE other (id TEXT)"}}, sqlitebus.Schema())
		return b.db, err
	}
	if b.Bus, err = sqlitebus.Open(ctx, c); err != nil {
		return nil, err
	}
	b.close = sync.OnceValue(func() error { return errors.Join(b.Bus.Close(), b.db.Close()) })
	return b, nil
}

// Publish publishes a message in a transaction that also inserts a row. Urgent and delayed messages, which other
// components never publish, are published directly.
func (b *sharedBus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	if m.Urgent || !m.NotBefore.IsZero() {
		return b.Bus.Publish(ctx, topic, m)
	}
	share, err := b.Share(string(topic), m.Key, m.ID, m.Body)
	if err != nil {
		return err
	}
	err = b.db.Write(ctx, func(tx *sqldb.Tx) error {
		if _, err := tx.Exec("INSERT INTO other (id) VALUES (?)", m.ID); err != nil {
			return err
		}
		refused, err := share.Write(tx)
		return errors.Join(refused, err)
	})
	share.End(err == nil)
	if errors.Is(err, sqldb.ErrClosed) {
		err = bus.ErrClosed
	}
	return err
}

func (b *sharedBus) Close() error { return b.close() }

// Publishing in another component's transaction keeps all promises of Publish.
func TestSharedBus(t *testing.T) {
	h := harness()
	h.NewPlace = func(t testing.TB) string { return filepath.Join(t.TempDir(), sharedName) }
	bustest.Run(t, h)
}

func BenchmarkBus(b *testing.B) { bustest.Bench(b, harness()) }

func open(t *testing.T, path string) *sqlitebus.Bus {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// A shared database is opened only by the process that holds the bus, and is closed before another process can hold
// it.
func TestSharedDatabaseIsOpenedByTheHolderAlone(t *testing.T) {
	path := bustest.FilePlace(t)
	opens := func() (b *sqlitebus.Bus, shared *sqldb.DB, err error) {
		b, err = sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path, Database: func(ctx context.Context) (*sqldb.DB, error) {
			shared, err = sqldb.OpenFile(ctx, path+".shared", sqlitebus.Schema())
			return shared, err
		}})
		return b, shared, err
	}
	first, db, err := opens()
	if err != nil {
		t.Fatal(err)
	}
	if _, again, err := opens(); again != nil || err == nil {
		t.Fatalf("the second: %v, and the database was opened: %t", err, again != nil)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Write(t.Context(), func(*sqldb.Tx) error { return nil }); !errors.Is(err, sqldb.ErrClosed) {
		t.Errorf("after the bus: %v, want it closed", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	next, _, err := opens()
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

func TestSecondOpenIsRefusedByName(t *testing.T) {
	path := bustest.FilePlace(t)
	first := open(t, path)
	_, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path})
	inUse, ok := errors.AsType[*sqlitebus.InUseError](err)
	if !ok || inUse.PID != os.Getpid() || inUse.Path != path {
		t.Fatalf("second open: %v", err)
	}
	if want := fmt.Sprintf("the folder %s is in use by process %d", filepath.Dir(path), os.Getpid()); !strings.Contains(err.Error(), want) {
		t.Errorf("the message %q does not say %q", err, want)
	}
	if err := first.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "a", Key: "k"}); err != nil {
		t.Errorf("the first is disturbed: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestFailedOpenFreesTheFile(t *testing.T) {
	path := bustest.FilePlace(t)
	if err := os.WriteFile(path, []byte(strings.Repeat("this is no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path}); err == nil {
		t.Fatal("opened what is no database")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if _, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(path, "not", "there")}); err == nil {
		t.Fatal("opened a path below a file")
	}
}

// stampOf claims one message and returns its fence and the id of an event.
func stampOf(t *testing.T, b *sqlitebus.Bus, id string) (fence int64, event uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seq, err := b.Subscribe(ctx, bus.SessionFeed("s"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.Emit(bus.Event{Session: "s"})
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		event = e.ID
		break
	}
	if err := b.Publish(ctx, bus.InboundTopic, bus.Message{ID: id, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	l, err := b.Claim(ctx, bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Settle(ctx, bus.End{Done: 1 << 60}); err != nil {
		t.Fatal(err)
	}
	if reserved, err := b.Reserved(); err != nil || reserved <= l.Claim().Fence {
		t.Errorf("fence %d was given while %d was reserved on disk: %v", l.Claim().Fence, reserved, err)
	}
	return l.Claim().Fence, event
}

// Numbers keep growing when the clock is set back: here the bus was last used tomorrow.
func TestNumbersGrowWhenTheClockGoesBack(t *testing.T) {
	path := bustest.FilePlace(t)
	var fence int64
	var event uint64
	synctest.Test(t, func(t *testing.T) {
		b := open(t, path)
		<-time.After(24 * time.Hour)
		fence, event = stampOf(t, b, "a")
	})
	synctest.Test(t, func(t *testing.T) { // the fake clock starts over
		if now := time.Now().UnixMicro(); now >= fence {
			t.Fatalf("the clock, %d, has not gone back behind %d", now, fence)
		}
		b := open(t, path)
		f, e := stampOf(t, b, "b")
		if f <= fence || e <= event {
			t.Errorf("fence %d after %d, event %d after %d", f, fence, e, event)
		}
	})
}

func TestIdleBusWaitsForNoTime(t *testing.T) {
	b := open(t, bustest.FilePlace(t))
	if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "later", Key: "t", NotBefore: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if b.Deadlines() != 1 {
		t.Errorf("%d alarms while one mailbox is delayed", b.Deadlines())
	}
	c := open(t, bustest.FilePlace(t))
	stampOf(t, c, "a")
	if c.Deadlines() != 0 {
		t.Errorf("%d alarms while nothing waits", c.Deadlines())
	}
}
