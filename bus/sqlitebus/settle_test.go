package sqlitebus_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
)

// crashed returns the messages that the next process would find if this one died now.
func crashed(t *testing.T, path string) (ids []string) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "bus.db")
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(copied+suffix, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, copied)
	d, err := b.Depth(t.Context(), bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	if d.Waiting == 0 {
		return nil
	}
	l, err := b.Claim(t.Context(), bus.InboundTopic)
	if err != nil {
		t.Fatal(err)
	}
	mail, err := l.Mail(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mail {
		ids = append(ids, m.ID)
	}
	return ids
}

// Settling the last message of a mailbox doesn't wait for a flush. A crash right afterwards brings the message back;
// a crash a little later doesn't.
func TestSettlingTheLastMessageSharesALaterFlush(t *testing.T) {
	path := bustest.FilePlace(t)
	synctest.Test(t, func(t *testing.T) {
		b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		handle := func(id string, settle bool) {
			t.Helper()
			if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: "k", Body: []byte("hello")}); err != nil {
				t.Fatal(err)
			}
			l, err := b.Claim(t.Context(), bus.InboundTopic)
			if err != nil {
				t.Fatal(err)
			}
			mail, err := l.Mail(t.Context(), 0)
			if err != nil || len(mail) != 1 || mail[0].ID != id {
				t.Fatalf("mail is %v, %v, want %s alone", mail, err, id)
			}
			if !settle {
				return
			}
			if err := l.Settle(t.Context(), bus.End{Done: mail[0].Seq}); err != nil {
				t.Fatal(err)
			}
		}
		handle("first", true)
		if ids := crashed(t, path); len(ids) != 1 || ids[0] != "first" {
			t.Errorf("a crash right after Settle leaves %v, want the settled message: Settle has waited for the disk", ids)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if ids := crashed(t, path); len(ids) != 0 {
			t.Errorf("a crash a second after Settle leaves %v, want nothing", ids)
		}
		handle("second", true)
		handle("third", false)
		if ids := crashed(t, path); len(ids) != 1 || ids[0] != "third" {
			t.Errorf("a crash leaves %v, want the message that was published after Settle, alone", ids)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Forget also reaches settled messages that are still on the disk, whether or not the mailbox has others, and leaves
// the others alone.
func TestForgetReachesWhatTheDiskKeeps(t *testing.T) {
	for name, later := range map[string][]string{"alone": nil, "before others": {"second", "third"}} {
		t.Run(name, func(t *testing.T) {
			path := bustest.FilePlace(t)
			b := open(t, path)
			beside, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer beside.Close()
			change := func(query string) {
				t.Helper()
				if _, err := beside.Exec(query); err != nil {
					t.Fatal(err)
				}
			}
			publish := func(id string) {
				t.Helper()
				if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: "k", Body: []byte("hello")}); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			claim := func() (bus.Lease, []bus.Message) {
				t.Helper()
				l, err := b.Claim(ctx, bus.InboundTopic)
				if err != nil {
					t.Fatal(err)
				}
				mail, err := l.Mail(t.Context(), 0)
				if err != nil {
					t.Fatal(err)
				}
				return l, mail
			}
			publish("first")
			change("PRAGMA busy_timeout = 10000; CREATE TRIGGER kept BEFORE DELETE ON message BEGIN SELECT RAISE(ABORT, 'the disk fails'); END")
			l, mail := claim()
			if err := l.Settle(t.Context(), bus.End{Done: mail[0].Seq}); err != nil {
				t.Fatal(err)
			}
			b.Flush()
			change("DROP TRIGGER kept")
			for _, id := range later {
				publish(id)
			}
			if ids := storedIDs(t, beside); !slices.Equal(ids, append([]string{"first"}, later...)) {
				t.Fatalf("the disk has %v, so this proves nothing", ids)
			}
			if _, err := b.Forget(t.Context(), func(_ bus.Topic, m bus.Message) bool { return m.ID != "third" }); err != nil {
				t.Fatal(err)
			}
			left := slices.DeleteFunc(slices.Clone(later), func(id string) bool { return id != "third" })
			if ids := storedIDs(t, beside); !slices.Equal(ids, left) {
				t.Errorf("the disk has %v, want %v", ids, left)
			}
			if d, err := b.Depth(t.Context(), bus.InboundTopic); err != nil || d.Waiting != len(left) {
				t.Errorf("%d messages wait, %v; want %d", d.Waiting, err, len(left))
			}
			if len(left) == 0 {
				return
			}
			if l, mail = claim(); len(mail) != 1 || mail[0].ID != "third" {
				t.Fatalf("left is %v", mail)
			}
			if err := l.Settle(t.Context(), bus.End{Done: mail[0].Seq}); err != nil {
				t.Fatal(err)
			}
			b.Flush()
			if ids := storedIDs(t, beside); len(ids) > 0 {
				t.Errorf("the disk has %v in the end", ids)
			}
		})
	}
}

// storedIDs returns the ids of the messages on the disk, in order.
func storedIDs(t *testing.T, db *sql.DB) (ids []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM message ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// A settled message that is still on the disk no longer counts as part of its mailbox.
func TestWhatTheDiskKeepsOfASettledMessageIsNotCounted(t *testing.T) {
	path := bustest.FilePlace(t)
	b := open(t, path)
	beside, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer beside.Close()
	change := func(query string) {
		t.Helper()
		if _, err := beside.Exec(query); err != nil {
			t.Fatal(err)
		}
	}
	publish := func(ids ...string) {
		t.Helper()
		for _, id := range ids {
			if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: id, Key: "k", Body: []byte("hello")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle := func(most int) (left int) {
		t.Helper()
		l, err := b.Claim(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		mail, err := l.Mail(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Settle(t.Context(), bus.End{Done: mail[min(most, len(mail))-1].Seq}); err != nil {
			t.Fatal(err)
		}
		d, err := b.Depth(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		return d.Waiting
	}
	publish("first")
	change("PRAGMA busy_timeout = 10000; CREATE TRIGGER kept BEFORE DELETE ON message BEGIN SELECT RAISE(ABORT, 'the disk fails'); END")
	if left := settle(1); left != 0 {
		t.Errorf("%d messages wait, want none", left)
	}
	b.Flush()
	change("DROP TRIGGER kept")
	publish("second", "third", "fourth")
	if left := settle(1); left != 2 {
		t.Errorf("%d messages wait after one of three was settled, want 2", left)
	}
	if left := settle(2); left != 0 {
		t.Errorf("%d messages wait after all were settled, want none", left)
	}
	if keys, err := b.Keys(); err != nil || len(keys) != 0 {
		t.Errorf("left are %v, %v; want nothing", keys, err)
	}
}

// Settled messages that couldn't be deleted, for example from a full disk, are deleted with the next settlement or
// when the bus is closed. Otherwise the next process would deliver them again.
func TestWhatTheDiskKeepsOfASettlementGoesLater(t *testing.T) {
	for name, later := range map[string]func(t *testing.T, b *sqlitebus.Bus, handle func(key string)){
		"with the next settlement": func(_ *testing.T, b *sqlitebus.Bus, handle func(key string)) {
			handle("other")
			b.Flush()
		},
		"when the bus is closed": func(t *testing.T, b *sqlitebus.Bus, _ func(key string)) {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := bustest.FilePlace(t)
			b := open(t, path)
			beside, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer beside.Close()
			change := func(query string) {
				t.Helper()
				if _, err := beside.Exec(query); err != nil {
					t.Fatal(err)
				}
			}
			handle := func(key string) {
				t.Helper()
				if err := b.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "to " + key, Key: key, Body: []byte("hello")}); err != nil {
					t.Fatal(err)
				}
				l, err := b.Claim(t.Context(), bus.InboundTopic)
				if err != nil {
					t.Fatal(err)
				}
				mail, err := l.Mail(t.Context(), 0)
				if err != nil || len(mail) != 1 || mail[0].Key != key {
					t.Fatalf("mail is %v, %v", mail, err)
				}
				if err := l.Settle(t.Context(), bus.End{Done: mail[0].Seq}); err != nil {
					t.Fatal(err)
				}
			}
			beside.SetMaxOpenConns(1)
			change(`PRAGMA busy_timeout = 10000; CREATE TRIGGER full BEFORE DELETE ON message BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`)
			handle("a")
			handle("b")
			b.Flush()
			change(`DROP TRIGGER full`)
			stored := func() (n int) {
				t.Helper()
				if err := beside.QueryRow("SELECT count(*) FROM message").Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			if n := stored(); n != 2 {
				t.Fatalf("%d messages are on the disk, want the two that it has kept", n)
			}
			later(t, b, handle)
			if n := stored(); n != 0 {
				t.Errorf("%d messages are still on the disk", n)
			}
		})
	}
}
