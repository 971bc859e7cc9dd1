package home_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/route"
	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/data/home"
	"parley/sessions"
)

// What was read when a turn began is used by that turn only, once, and only for a moment.
func TestWhatWasReadWithATurnsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book, err := sqlbook.Open(t.Context(), filepath.Join(t.TempDir(), "book.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { book.Close() })
		if err := book.Remember(t.Context(), channels.ScopePerson, "test:ann", "c1", true, false, func(string) (string, error) { return "now", nil }); err != nil {
			t.Fatal(err)
		}
		m := home.NewTurnMemories(book)
		begin := func(turn string, group bool) {
			t.Helper()
			private := !group
			started, err := sessions.NewEntry(turn, sessions.KindTurnStarted, sessions.TurnStarted{Route: route.Route{At: bus.Address{Channel: "test"}, Group: group, Private: &private}.Encode(), Agent: "main"})
			if err != nil {
				t.Fatal(err)
			}
			started.Person = "test:ann"
			query, ok := m.TurnStartQuery("main:test:1", started)
			if !ok {
				t.Fatal("nothing is queried")
			}
			query.Result(`[["person", "then", "1"], ["agent", "of the agent", "0"]]`)
		}
		want := func(turn, person, text string) {
			t.Helper()
			if _, got, err := m.For(t.Context(), "main:test:1", turn, "main", person); err != nil || got.Content != text || got.Untrusted != (text == "then") {
				t.Errorf("%s is told %+v, %v; want %q", turn, got, err, text)
			}
		}
		begin("t1", false)
		want("t2", "test:ann", "now")
		want("t1", "test:ann", "then")
		want("t1", "test:ann", "now")
		begin("t3", false)
		time.Sleep(time.Second)
		want("t3", "test:ann", "now")
		begin("t4", true) // a query that concerns no person
		want("t4", "test:ann", "now")
		begin("t5", false)
		want("t5", "", "")
		begin("t6", false)
		m.Clear()
		want("t6", "test:ann", "now")
	})
}
