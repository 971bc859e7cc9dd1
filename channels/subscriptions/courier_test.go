package subscriptions

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqlstore"
	"parley/sessions/subscriptions"
)

// The waits between attempts grow to five minutes.
func TestRetryWaitsGrow(t *testing.T) {
	for tries, length := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute} {
		for range 20 {
			if got := waitAfter(tries); got < length/2 || got > length {
				t.Errorf("after %d attempts the wait is %s", tries, got)
			}
		}
	}
}

// Owners are told that events are accepted again only if one was accepted.
func TestOwnersAreToldOfRecoveryOnlyAfterAnAcceptedEvent(t *testing.T) {
	db := openStore(t)
	table := db.Subscriptions()
	table.Want(subscriptions.Subscription{Name: "a", Events: "channel.up"})
	source := Source(table, func() bool { return true }, time.Minute)
	look := func() int {
		t.Helper()
		all, err := source.FindConcerns(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	add := func(session string) *subscriptions.Queue {
		t.Helper()
		e := subscriptions.Event{ID: "e" + session, Type: subscriptions.ChannelUp, At: time.Now(), Data: subscriptions.Data{Session: session}}
		if err := table.Add(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		q, _, err := table.Take(t.Context(), "a")
		if err == nil {
			err = q.RecordRefusal(t.Context(), "HTTP 500", time.Now(), "")
		}
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	add("main:web:x")
	if look() != 1 {
		t.Error("a failure is no concern")
	}
	if _, err := db.EraseSession(t.Context(), "main:web:x"); err != nil && !errors.Is(err, sessions.ErrNotFound) {
		t.Fatal(err)
	}
	if n, text := look(), source.EndText("subscription/a"); n != 0 || text != "" {
		t.Errorf("when all was erased there are %d concerns, and owners hear %q", n, text)
	}
	q := add("")
	look()
	next, err := q.Next(t.Context(), 9)
	if err == nil {
		err = q.Remove(t.Context(), next...)
	}
	if err != nil {
		t.Fatal(err)
	}
	if n, text := look(), source.EndText("subscription/a"); n != 0 || !strings.Contains(text, "accepts events again") {
		t.Errorf("when it was accepted there are %d concerns, and owners hear %q", n, text)
	}
	table.Want()
	if text := source.EndText("subscription/a"); text != "" {
		t.Errorf("of one that was removed they hear %q", text)
	}
}

func openStore(t *testing.T) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Owners are told of a subscriber that accepts nothing, and of dropped events.
func TestConcernsAboutSubscriptions(t *testing.T) {
	s := subscriptions.State{Name: "a", Waiting: 7, Problem: "HTTP 500"}
	if got := concernsAbout(s, time.Minute); len(got) > 0 {
		t.Errorf("of one that is well: %+v", got)
	}
	s.Failing, s.Dropped, s.DroppedAt = time.Now(), 12, time.Now()
	got := concernsAbout(s, time.Minute)
	if len(got) != 2 || got[0].TellAfter != time.Minute || !strings.Contains(got[0].Text, "HTTP 500") || !strings.Contains(got[0].Text, "waiting: 7") || got[1].Count != 12 || got[0].ID == got[1].ID {
		t.Errorf("it is %+v", got)
	}
	s.DroppedAt = time.Now().Add(-25 * time.Hour)
	if got := concernsAbout(s, time.Minute); len(got) != 1 {
		t.Errorf("a day later it is %+v", got)
	}
}
