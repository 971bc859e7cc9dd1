package sessionstest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/sessions"
)

func reopenTests() []test {
	return []test{
		{"whoever held a log last opens it again and goes on", testReopen},
		{"a log that another has opened since is not opened again", testReopenTooLate},
		{"a log that has grown is not opened again", testReopenGrown},
		{"a log of which something was erased is not opened again", testReopenErased},
		{"a log that is opened again while it is erased from is what its holder knows", testReopenUnderErasure},
		{"a log that is reopened later is opened by the next append", testReopenLater},
		{"a log that is reopened later takes nothing if another has opened it since", testReopenLaterTooLate},
		{"a log that is reopened later takes nothing if it has grown", testReopenLaterGrown},
		{"a message is erased in a log that is reopened later", testReopenLaterErasesMessage},
	}
}

// reopen opens a log again, and fails the test unless Reopen succeeds or not as want says.
func reopen(t *testing.T, l sessions.Log, fence int64, want bool) {
	t.Helper()
	again, ok := l.(sessions.ReopenableLog)
	if !ok {
		t.Fatalf("%T is no ReopenableLog", l)
	}
	if got, err := again.Reopen(t.Context(), fence); got != want || err != nil {
		t.Fatalf("reopened under %d: %t, %v, want %t", fence, got, err, want)
	}
}

func testReopen(t *testing.T, p place) {
	stores := p.stores()
	l, former := openLog(t, stores[0], key, 10), openLog(t, stores[1], key, 10)
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, l, entries...)
	again := l.(sessions.ReopenableLog) //nolint:forcetypeassert // reopen says so in words
	again.Release()
	if got := l.Entries(); len(got) != 0 {
		t.Errorf("%d entries after they were released", len(got))
	}
	reopen(t, l, 11, true)
	wantFenced(t, "append under the former fence", former.Append(t.Context(), 5, replied("t1", "late")))
	if _, err := again.Reopen(t.Context(), 10); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("reopened under a lower fence: %v", err)
	}
	more := wholeTurn(anna, "t2", "more")
	mustAppend(t, l, more...)
	reopen(t, l, 12, true)
	reopen(t, l, 12, true)
	wantSeen(t, l.Append(t.Context(), l.Next(), said("t3", "t2", "again")), "t2", "t2")
	wantLog(t, stores[1], key, slices.Concat(entries, more))
	wantSame(t, "the next holder's log", openLog(t, stores[1], key, 13).Entries(), slices.Concat(entries, more))
}

func testReopenTooLate(t *testing.T, p place) {
	stores := p.stores()
	l := openLog(t, stores[0], key, 10)
	mustAppend(t, l, wholeTurn(anna, "t1", "hello")...)
	next := openLog(t, stores[1], key, 11) // the reopened log must not write anything
	reopen(t, l, 12, false)
	mustAppend(t, next, wholeTurn(anna, "t2", "nobody has shut it out")...)
	reopen(t, l, 12, false)
	wantFenced(t, "append", l.Append(t.Context(), 5, replied("t1", "late")))
}

func testReopenGrown(t *testing.T, p place) {
	stores := p.stores()
	l, same := openLog(t, stores[0], key, 10), openLog(t, stores[1], key, 10)
	mustAppend(t, same, wholeTurn(anna, "t1", "hello")...)
	reopen(t, l, 11, false)
	reopen(t, same, 11, true)
}

func testReopenErased(t *testing.T, p place) {
	stores := p.stores()
	long := time.Now().Add(-48 * time.Hour)
	for name, erase := range map[string]func(s Store, key string) (sessions.Erased, error){
		"the session": func(s Store, key string) (sessions.Erased, error) { return s.EraseSession(t.Context(), key) },
		"a person":    func(s Store, _ string) (sessions.Erased, error) { return s.ErasePerson(t.Context(), anna) },
		"what is old": func(s Store, _ string) (sessions.Erased, error) {
			return s.EraseBefore(t.Context(), long.Add(time.Hour))
		},
		"all that was": func(s Store, _ string) (sessions.Erased, error) {
			return s.EraseBefore(t.Context(), time.Now().Add(time.Hour))
		},
	} {
		l := openLog(t, stores[0], key, clockFence())
		n := l.Next()
		turn := func(person, turn string) []sessions.Entry { return wholeTurn(person, fmt.Sprint(turn, n, name), "x") }
		mustAppend(t, l, withTime(long, turn(anna, "old")...)...)
		mustAppend(t, l, turn(berta, "new")...)
		reopen(t, l, clockFence(), true)
		if got, err := erase(stores[1], key); err != nil || got.Entries == 0 {
			t.Fatalf("%s: erased %+v, %v", name, got, err)
		}
		reopenLater(t, l, clockFence())
		wantConflict(t, name, l.Append(t.Context(), l.Next(), turnStarted("late")))
		reopen(t, l, clockFence(), false)
		anew := openLog(t, stores[1], key, clockFence())
		reopen(t, l, clockFence(), false)
		mustAppend(t, anew, turn(berta, "anew")...)
		reopen(t, anew, clockFence(), true)
	}
	// An erasure that leaves a session unchanged shuts nobody out.
	l := openLog(t, stores[0], otherKey, clockFence())
	mustAppend(t, l, wholeTurn(berta, "b", "x")...)
	if _, err := stores[1].EraseBefore(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	reopen(t, l, clockFence(), true)
}

// reopenLater has the next append open a log again.
func reopenLater(t *testing.T, l sessions.Log, fence int64) {
	t.Helper()
	if err := l.(sessions.ReopenableLog).ReopenLater(fence); err != nil { //nolint:forcetypeassert // reopen says so in words
		t.Fatalf("reopened later under %d: %v", fence, err)
	}
}

// wantConflict fails the test unless err is ErrConflict.
func wantConflict(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("%s: %v, want a conflict", what, err)
	}
}

func testReopenLater(t *testing.T, p place) {
	stores := p.stores()
	l, former := openLog(t, stores[0], key, 10), openLog(t, stores[1], key, 10)
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, l, entries...)
	reopenLater(t, l, 11)
	wantSeen(t, l.Append(t.Context(), 5, said("t2", "t1", "again")), "t1", "t1")
	more := wholeTurn(anna, "t2", "more")
	mustAppend(t, l, more[:1]...)
	wantFenced(t, "append under the former fence", former.Append(t.Context(), 6, replied("t1", "late")))
	_, err := stores[1].Open(t.Context(), key, 10)
	wantFenced(t, "open under the former fence", err)
	if err := l.(sessions.ReopenableLog).ReopenLater(10); !errors.Is(err, sessions.ErrFenced) { //nolint:forcetypeassert // reopen says so in words
		t.Errorf("reopened later under a lower fence: %v", err)
	}
	mustAppend(t, l, more[1:]...)
	reopenLater(t, l, 12) // an append that writes nothing
	reopenLater(t, l, 13)
	more = append(more, wholeTurn(anna, "t3", "still more")...)
	if err := l.Append(t.Context(), l.Next(), more[4:]...); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), 9, withoutNumbers(more[4:])...); err != nil {
		t.Errorf("the same append again: %v", err)
	}
	reopen(t, l, 14, true)
	reopenLater(t, l, 15)
	reopen(t, l, 16, true)
	_, err = stores[1].Open(t.Context(), key, 15)
	wantFenced(t, "open under a fence that was never written", err)
	want := slices.Concat(entries, more)
	wantLog(t, stores[1], key, want)
	wantSame(t, "the next holder's log", openLog(t, stores[1], key, 17).Entries(), want)
}

func testReopenLaterTooLate(t *testing.T, p place) {
	stores := p.stores()
	l := openLog(t, stores[0], key, 10)
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, l, entries...)
	next := openLog(t, stores[1], key, 11) // the reopened log must not write anything
	reopenLater(t, l, 12)
	wantConflict(t, "after another has opened it", l.Append(t.Context(), 5, turnStarted("t2")))
	more := wholeTurn(anna, "t2", "nobody has shut it out")
	mustAppend(t, next, more...)
	for at := range int64(10) {
		wantConflict(t, fmt.Sprint("at ", at), l.Append(t.Context(), at, withoutNumbers(more[:1])...))
	}
	wantConflict(t, "a cause that is known", l.Append(t.Context(), 5, said("t2", "t2", "x")))
	openLog(t, stores[1], key, 13)
	wantFenced(t, "under a higher fence", l.Append(t.Context(), 5, turnStarted("t2")))
	wantLog(t, stores[0], key, slices.Concat(entries, more))
}

func testReopenLaterGrown(t *testing.T, p place) {
	stores := p.stores()
	l, same := openLog(t, stores[0], key, 10), openLog(t, stores[1], key, 10)
	entries := wholeTurn(anna, "t1", "hello")
	mustAppend(t, same, entries...)
	reopenLater(t, l, 11)
	wantConflict(t, "what stands there", l.Append(t.Context(), 1, withoutNumbers(entries)...))
	wantConflict(t, "something else", l.Append(t.Context(), 1, turnStarted("t2")))
	reopenLater(t, same, 11)
	more := []sessions.Entry{turnStarted("t2")}
	mustAppend(t, same, more...)
	wantConflict(t, "under the same fence", l.Append(t.Context(), 5, turnStarted("t3")))
	wantLog(t, stores[0], key, slices.Concat(entries, more))
}

func testReopenLaterErasesMessage(t *testing.T, p place) {
	stores := p.stores()
	l := openLog(t, stores[0], key, 10)
	mustAppend(t, l, wholeTurn(anna, "t1", "secret")...)
	reopenLater(t, l, 11)
	eraser := l.(sessions.MessageEraser) //nolint:forcetypeassert // every store in this suite is one
	if err := eraser.EraseMessage(t.Context(), "t1"); err != nil {
		t.Fatal(err)
	}
	for _, e := range readLog(t, stores[1], key) {
		if e.Cause == "t1" && bytes.Contains(e.Data, []byte("secret")) {
			t.Errorf("entry %d is %s", e.N, e.Data)
		}
	}
	openLog(t, stores[1], key, 12)
	reopenLater(t, l, 13)
	wantConflict(t, "erase a message after another has opened it", eraser.EraseMessage(t.Context(), "t1"))
}

func testReopenUnderErasure(t *testing.T, p place) {
	stores := p.stores()
	long := time.Now().Add(-48 * time.Hour)
	l := openLog(t, stores[0], key, clockFence())
	mustAppend(t, l, wholeTurn(anna, "first", "x")...)
	known := len(readLog(t, stores[0], key))
	kept := 0
	for n := range 30 {
		turn := fmt.Sprint("t", n)
		mustAppend(t, l, withTime(long, wholeTurn(anna, turn, "x")...)...)
		known += 4
		var erasing sync.WaitGroup
		erasing.Go(func() {
			if _, err := stores[1].EraseBefore(t.Context(), long.Add(time.Hour)); err != nil {
				t.Error(err)
			}
		})
		_, err := l.(sessions.ReopenableLog).Reopen(t.Context(), clockFence()) //nolint:forcetypeassert // reopen says so in words
		if err != nil {
			t.Fatal(err)
		}
		erasing.Wait()
		again, err := l.(sessions.ReopenableLog).Reopen(t.Context(), clockFence()) //nolint:forcetypeassert // reopen says so in words
		if err != nil {
			t.Fatal(err)
		}
		if there := len(readLog(t, stores[1], key)); again && there != known {
			t.Fatalf("reopened with %d entries, of which %d are left", known, there)
		}
		if again {
			kept++
			continue
		}
		l = openLog(t, stores[0], key, clockFence())
		known = len(readLog(t, stores[0], key))
	}
	if kept == 30 {
		t.Error("nothing was ever erased")
	}
}
