package sqlitebus_test

import (
	"os"
	"path/filepath"
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

// Who settles the last message of a mailbox waits for no flush. A crash right afterwards
// brings the message back, one a little later does not.
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
