package sqlstore_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/sessions"
	"parley/sessions/sessionstest"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// A sharingStore is a store that shares its file with the bus that carries its messages.
type sharingStore struct {
	*sqlstore.Store
	bus    *sqlitebus.Bus
	db     *sqldb.DB
	closed bool
}

// deferredCheckSchema returns a component with a table whose constraint is checked at COMMIT.
func deferredCheckSchema() sqldb.Schema {
	return sqldb.Schema{Name: "checked", SQLite: []string{
		"CREATE TABLE known (n INTEGER PRIMARY KEY); CREATE TABLE checked (n INTEGER REFERENCES known(n) DEFERRABLE INITIALLY DEFERRED)",
	}}
}

const outboundCap = 3

func openSharingStore(t testing.TB, path string) sessionstest.SharingStore {
	t.Helper()
	s := &sharingStore{}
	var err error
	s.bus, err = sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path, Caps: bus.Caps{Outbound: outboundCap}, Database: func(ctx context.Context) (*sqldb.DB, error) {
		var err error
		s.db, err = sqldb.OpenFile(ctx, path, sqlstore.Schema(), sqlitebus.Schema(), deferredCheckSchema())
		return s.db, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Store, err = sqlstore.Use(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
	s.PublishBy(s.bus)
	return sessionstest.SharingStore{Store: s, WaitingMessages: s.waitingMessages, Cap: outboundCap, FailCommit: s.failCommit, Block: s.block, FailWrite: s.failWrite}
}

// Close closes the store, the bus and the file. It may be called again.
func (s *sharingStore) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(s.Store.Close(), s.bus.Close(), s.db.Close())
}

// waitingMessages returns the ids of the messages in a mailbox, as a holder of its lease reads them. It fails
// the test if the file contains messages of other mailboxes.
func (s *sharingStore) waitingMessages(t testing.TB, topic, key string) (ids []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if lease, err := s.bus.Claim(ctx, bus.Topic(topic)); err == nil {
		mail, err := lease.Mail(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mail {
			if m.Key != key || string(m.Body) != "body of "+m.ID {
				t.Errorf("message %+v", m)
			}
			ids = append(ids, m.ID)
		}
		if err := lease.Settle(ctx, bus.End{Uncounted: true}); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := s.db.Read.QueryContext(t.Context(), "SELECT id FROM message WHERE topic = ? AND key = ? ORDER BY seq", topic, key)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var stored []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		stored = append(stored, id)
	}
	if err := rows.Err(); err != nil || !slices.Equal(ids, stored) {
		t.Errorf("the holder of the mailbox reads %q, and the file has %q, %v", ids, stored, err)
	}
	return ids
}

func (s *sharingStore) failCommit(t testing.TB) {
	t.Helper()
	err := s.db.Soon(t.Context(), time.Hour, func(tx *sqldb.Tx) error {
		_, err := tx.Exec("INSERT INTO checked (n) VALUES (1)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *sharingStore) block(t testing.TB) (release func()) {
	t.Helper()
	blocked, released := make(chan struct{}), make(chan struct{})
	go func() {
		err := s.db.Write(t.Context(), func(*sqldb.Tx) error {
			close(blocked)
			<-released
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-blocked
	return func() { close(released) }
}

func (s *sharingStore) failWrite(t testing.TB) {
	refused := errors.New("refused")
	err := s.db.Write(t.Context(), func(tx *sqldb.Tx) error {
		_, err := tx.Exec("INSERT INTO known (n) VALUES (1)")
		return errors.Join(refused, err)
	})
	if !errors.Is(err, refused) {
		t.Errorf("a write that fails gives %v", err)
	}
}

func TestPublishing(t *testing.T) {
	sessionstest.RunPublishing(t, func(t testing.TB) string { return filepath.Join(t.TempDir(), "all.db") }, openSharingStore)
}

// A store whose database is not shared with a bus does not publish.
func TestASeparateStoreDoesNotPublish(t *testing.T) {
	onEachPlace(t, func(t *testing.T, place string, _ func(string) []string) {
		l, err := openTestStore(t, place).Open(t.Context(), longKey, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := l.(sessions.Publisher).Publishing(sessions.Mail{ID: "o"}); ok {
			t.Error("a log publishes what nobody carries")
		}
	})
}
