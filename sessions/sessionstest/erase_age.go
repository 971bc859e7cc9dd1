package sessionstest

import (
	"context"
	"fmt"
	"parley/sessions"
	"slices"
	"sync"
	"testing"
	"time"
)

// withTime sets the time of the entries, and returns them.
func withTime(when time.Time, entries ...sessions.Entry) []sessions.Entry {
	for i := range entries {
		entries[i].At = when
	}
	return entries
}

func testEraseBefore(t *testing.T, p place) {
	s := p.open()
	now := time.Now()
	long, lately := now.Add(-48*time.Hour), now.Add(-time.Hour)
	appendAll(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "t1", "old by its last append alone")...)
	l := openLog(t, s, otherKey, clockFence())
	appendAll(t, l, withTime(long, wholeTurn(anna, "old", "x")...)...)
	appendAll(t, l, withTime(long, summary(4))...)
	appendAll(t, l, withTime(long, saidBy(anna, turnStarted("open")), saidBy(anna, said("open", "open", "x")))...)
	appendAll(t, l, withTime(long, saidBy(anna, turnStarted("slow")), saidBy(anna, said("slow", "slow", "x")))...)
	appendAll(t, l, withTime(lately, append([]sessions.Entry{turnDone("slow")}, wholeTurn(anna, "new", "x")...)...)...)

	got, err := s.EraseBefore(t.Context(), now.Add(-24*time.Hour))
	wantErased(t, "what is old", got, err, nil, []string{otherKey}, 5)
	if got := turnsOf(readLog(t, s, otherKey)); !slices.Equal(got, []string{"s", "open", "slow", "new"}) {
		t.Errorf("turns %v are left", got)
	}
	appendAll(t, l, turnDone("open")) // nobody is shut out
	wantSeen(t, l.Append(t.Context(), l.Next(), said("x", "old", "again")), "old", "old")

	got, err = s.EraseBefore(t.Context(), time.Now().Add(time.Minute))
	wantErased(t, "everything", got, err, []string{otherKey, key}, nil, 4+11)
}

// waitingTurn returns the entries of a turn in which a person says something and which then waits
// for an approval, the ask with that id.
func waitingTurn(person, turn, ask string) []sessions.Entry {
	parked := sessions.TurnParked{Asks: []sessions.Ask{{ID: ask, Call: "c1", Kind: "approval"}}}
	return []sessions.Entry{saidBy(person, turnStarted(turn)), saidBy(person, said(turn, turn, "x")), entry(turn, sessions.KindTurnParked, parked), turnPublished(turn)}
}

// approvedBy returns the entry that says that person has approved an ask.
func approvedBy(person, turn, ask string) sessions.Entry {
	return endedBy(person, turn, ask, sessions.AskEnded{Ask: ask, State: "answered", Answer: "approve"})
}

// endedBy returns the entry that says that an ask has ended as ended says, by a person's decision.
func endedBy(person, turn, ask string, ended sessions.AskEnded) sessions.Entry {
	e := saidBy(person, entry(turn, sessions.KindAskEnded, ended))
	e.Cause = ask
	return e
}

func testEraseWaiting(t *testing.T, p place) {
	s := p.open()
	now := time.Now()
	long := now.Add(-48 * time.Hour)
	const waits, goes = "main:telegram:8", "main:telegram:9"
	for _, key := range []string{waits, goes} {
		l := openLog(t, s, key, clockFence())
		appendAll(t, l, withTime(long, wholeTurn(anna, "old", "x")...)...)
		appendAll(t, l, withTime(long, waitingTurn(anna, "w", "ask")...)...)
		if key == goes { // it was answered and is over
			appendAll(t, l, withTime(long, approvedBy(anna, "w", "ask"), entry("w", sessions.KindTurnUnparked, nil), turnDone("w"))...)
		}
	}
	// Nothing was written since, and yet the turn is not over.
	got, err := s.EraseBefore(t.Context(), now.Add(time.Minute))
	wantErased(t, "what is old", got, err, []string{goes}, []string{waits}, 4+7+4)
	if got := turnsOf(readLog(t, s, waits)); !slices.Equal(got, []string{"w"}) {
		t.Errorf("turns %v are left", got)
	}
	l := openLog(t, s, waits, clockFence())
	if got := turnsOf(l.Entries()); !slices.Equal(got, []string{"w"}) {
		t.Errorf("opened it has turns %v", got)
	}
	appendAll(t, l, approvedBy(anna, "w", "ask"), entry("w", sessions.KindTurnUnparked, nil), turnDone("w"))
	got, err = s.EraseBefore(t.Context(), time.Now().Add(time.Minute))
	wantErased(t, "what waits no more", got, err, []string{waits}, nil, 4+3)
}

func testEraseFromMany(t *testing.T, p place) {
	const many = 450
	s := p.open()
	var whole []string
	for n := range many {
		key := fmt.Sprintf("main:telegram:%04d", n)
		whole = append(whole, key)
		appendAll(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a", "x")...)
	}
	got, err := s.EraseBefore(t.Context(), time.Now().Add(time.Hour))
	wantErased(t, "what is old", got, err, whole, nil, 4*many)
}

func testEraseBeforeUnderWork(t *testing.T, p place) {
	stores := p.stores()
	s := stores[0]
	before := time.Now().Add(-time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	var working, warm sync.WaitGroup
	for w := range 4 {
		warm.Add(1)
		l := openLog(t, s, fmt.Sprintf("main:telegram:%d", w), clockFence())
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				turn := fmt.Sprint("t", n)
				e := wholeTurn(anna, turn, "x")
				if n%2 == 0 {
					e = withTime(before.Add(-time.Hour), e...)
				}
				appendAll(t, l, e...)
				if n == 8 {
					warm.Done()
				}
			}
		})
	}
	warm.Wait()
	var n int64
	for range 3 {
		got, err := stores[1].EraseBefore(t.Context(), before)
		if err != nil {
			t.Error(err)
		}
		n += got.Entries
	}
	stop()
	working.Wait()
	got, err := s.EraseBefore(t.Context(), before)
	if err != nil || n+got.Entries == 0 {
		t.Errorf("erased %d entries, %v", n, err)
	}
	for w := range 4 {
		entries := readLog(t, s, fmt.Sprintf("main:telegram:%d", w))
		if last := entries[len(entries)-1].N; last < 8 || int64(len(entries)) > last-last%8/2 {
			t.Errorf("session %d has %d of %d entries", w, len(entries), last)
		}
		for _, e := range entries {
			if e.At.Before(before) {
				t.Fatalf("entry %d is left", e.N)
			}
		}
	}
}
