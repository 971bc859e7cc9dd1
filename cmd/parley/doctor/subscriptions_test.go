package doctor

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions/sqlstore"
	"parley/sessions/subscriptions"
)

func TestDoctorOnSubscriptions(t *testing.T) {
	cfg := &config.Config{Home: t.TempDir()}
	if got := checkSubscriptions(t.Context(), cfg); got != nil {
		t.Errorf("without subscriptions: %+v", got)
	}
	cfg.Subscriptions = map[string]config.Subscription{"a": {Name: "a"}, "b": {Name: "b"}}
	want := func(state, detail string) {
		t.Helper()
		got := checkSubscriptions(t.Context(), cfg)
		if len(got) != 2 || got[0].Part != "subscription a" || got[0].State != state || !strings.Contains(got[0].Detail, detail) || (state == wrong) != (got[0].Remedy != "") {
			t.Errorf("it finds %+v, want %s, %q", got, state, detail)
		}
		if got[1].State != fine || got[1].Detail != textSubscriptionNew {
			t.Errorf("of the other it finds %+v", got[1])
		}
	}
	want(fine, textSubscriptionNew) // without a home
	s, err := sqlstore.Open(t.Context(), filepath.Join(cfg.Home, home.StoreFile))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	table := s.Subscriptions()
	table.Want(subscriptions.Subscription{Name: "a", Events: "channel.up"})
	if err := table.Add(t.Context(), subscriptions.Event{ID: "e", Type: subscriptions.ChannelUp, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	q, _, err := table.Take(t.Context(), "a")
	if err == nil {
		err = q.RecordRefusal(t.Context(), "HTTP 500", time.Now(), "")
	}
	if err != nil {
		t.Fatal(err)
	}
	want(wrong, "HTTP 500")
	next, err := q.Next(t.Context(), 1)
	if err == nil {
		err = q.Remove(t.Context(), next...)
	}
	if err != nil {
		t.Fatal(err)
	}
	want(fine, "it last accepted an event")
	if got := judgeSubscription("a", subscriptions.State{Accepted: time.Now(), Dropped: 3, DroppedAt: time.Now()}, time.Now()); !strings.Contains(got.Detail, "events dropped: 3") {
		t.Errorf("with dropped events: %+v", got)
	}
	if got := judgeSubscription("a", subscriptions.State{Waiting: 3}, time.Now()); got.State != note || got.Remedy == "" {
		t.Errorf("with events that nobody posts: %+v", got)
	}
}
