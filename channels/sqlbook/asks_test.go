package sqlbook_test

import (
	"errors"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/sqlbook"
)

// Asks are erased with their session, with the person whose turn asked, with the person who answered, and by
// age. An open ask is never old.
func TestAsksAreErased(t *testing.T) {
	b := openBook(t, newPlace(t))
	t.Cleanup(func() { b.Close() })
	now := time.Now()
	for id, a := range map[string]bus.Ask{
		"session":  {Session: "main:c:1", Person: "c:bob"},
		"person":   {Session: "main:c:2", Person: "c:ann"},
		"answerer": {Session: "main:c:2", Person: "c:bob"},
		"old":      {Session: "main:c:2", Person: "c:bob"},
		"untold":   {Session: "main:c:2", Person: "c:bob"},
		"waits":    {Session: "main:c:2", Person: "c:bob"},
	} {
		a.ID, a.Kind, a.Made, a.Expires = id, bus.AskApproval, now, now.Add(time.Hour)
		if err := b.OpenAsk(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	end := func(id, by string) {
		if _, _, err := b.EndAsk(t.Context(), id, bus.AskAnswered, bus.Answer{Text: bus.Approve, By: bus.Person{ID: by}}); err != nil {
			t.Fatal(err)
		}
	}
	end("answerer", "c:ann")
	end("untold", "c:ann")
	end("old", "c:olga")
	if err := b.NoteTold(t.Context(), "answerer"); err != nil {
		t.Fatal(err)
	}
	for _, what := range []struct {
		erase sqlbook.Erasure
		n     int64
	}{
		{sqlbook.Erasure{Sessions: []string{"main:c:1"}}, 1},
		{sqlbook.Erasure{Person: "c:ann"}, 3},
		{sqlbook.Erasure{Before: now.Add(time.Minute)}, 2},
	} {
		if done, err := b.Erase(t.Context(), what.erase); err != nil || done.Asks != what.n {
			t.Errorf("%+v erased %d asks, want %d (%v)", what.erase, done.Asks, what.n, err)
		}
		if what.erase.Person == "" {
			continue
		}
		if a, err := b.LookupAsk(t.Context(), "untold"); err != nil || a.State != bus.AskAnswered || a.Answer.Text != bus.Approve || a.Answer.By.ID != "" {
			t.Errorf("what its session does not know yet is %+v, %v", a, err)
		}
	}
	if _, err := b.LookupAsk(t.Context(), "waits"); err != nil {
		t.Errorf("what waits: %v", err)
	}
	if _, err := b.LookupAsk(t.Context(), "old"); !errors.Is(err, bus.ErrNoAsk) {
		t.Errorf("what is old: %v", err)
	}
}

// Of the open asks, only as many are read as the caller wants.
func TestTheOldestAsks(t *testing.T) {
	b := openBook(t, newPlace(t))
	t.Cleanup(func() { b.Close() })
	now := time.Now()
	for n, id := range []string{"second", "first", "ended", "third"} {
		made := now.Add(time.Duration(n) * time.Minute)
		if id == "first" {
			made = now.Add(-time.Hour)
		}
		if err := b.OpenAsk(t.Context(), bus.Ask{ID: id, Kind: bus.AskQuestion, Session: "main:c:1", Person: "c:ann", Made: made, Expires: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := b.EndAsk(t.Context(), "ended", bus.AskWithdrawn, bus.Answer{}); err != nil {
		t.Fatal(err)
	}
	oldest, count, err := b.OldestAsks(t.Context(), 2)
	if err != nil || count != 3 || len(oldest) != 2 || oldest[0].ID != "first" || oldest[1].ID != "second" {
		t.Errorf("of %d asks the oldest are %+v, %v", count, oldest, err)
	}
}
