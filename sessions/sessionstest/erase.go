package sessionstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
)

func eraseTests() []test {
	return []test{
		{"an erased session is gone and begins anew under a higher fence", testEraseSession},
		{"what was answered in an erased session is not answered again", testEraseCauses},
		{"who was given the session before cannot bring it back", testEraseUnseen},
		{"a person's own sessions go whole, of others their turns", testErasePerson},
		{"who approves a call does not speak in its session", testEraseApprover},
		{"whoever works on a session is shut out when a person is taken out of it", testEraseUnderWork},
		{"a summary of what was erased covers it still and says nothing", testEraseSummary},
		{"budgets lose the person and keep no reservation of theirs open", testEraseBudget},
		{"what is old goes, by session and by turn", testEraseBefore},
		{"a turn that waits for people is not old", testEraseWaiting},
		{"what is old goes from however many sessions", testEraseFromMany},
		{"what is old goes without disturbing who is at work", testEraseBeforeUnderWork},
		{"what was said on a person's behalf goes with them, and keeps no session of another's", testEraseOnBehalf},
		{"what a newer release has written goes with its turn", testEraseUnknown},
		{"nothing that was erased is left in any file", testEraseTraces},
	}
}

// clockFence returns a fence as buses issue them: the first one is taken from the clock.
func clockFence() int64 { return time.Now().UnixMicro() + 1 }

const (
	otherKey = "main:telegram:-100"
	anna     = "telegram:7" // the person in whose name said writes
	berta    = "telegram:8"
	secret   = "a word that nobody else says"
)

// withPerson returns an entry with that Person.
func withPerson(person string, e sessions.Entry) sessions.Entry {
	e.Person = person
	return e
}

// wholeTurn returns the entries of a turn in which person says text and is answered.
func wholeTurn(person, turn, text string) []sessions.Entry {
	return []sessions.Entry{withPerson(person, turnStarted(turn)), withPerson(person, said(turn, turn, text)), replied(turn, "about "+text), turnDone(turn)}
}

// wantErased fails the test unless an erasure has returned exactly these sessions and
// this number of entries.
func wantErased(t *testing.T, what string, got sessions.Erased, err error, whole, shared []string, entries int64) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.Equal(got.Sessions, whole) || !slices.Equal(got.PartlyErased, shared) || got.Entries != entries {
		t.Errorf("%s erased %+v, want %v whole, %v in part and %d entries", what, got, whole, shared, entries)
	}
}

// turnsOf lists the turns that entries belong to, in order.
func turnsOf(entries []sessions.Entry) (turns []string) {
	for _, e := range entries {
		if !slices.Contains(turns, e.Turn) {
			turns = append(turns, e.Turn)
		}
	}
	return turns
}

func testEraseSession(t *testing.T, p place) {
	stores := p.stores()
	s := stores[0]
	f := clockFence()
	l := openLog(t, s, key, f)
	mustAppend(t, l, wholeTurn(anna, "t1", "hello")...)
	mustAppend(t, openLog(t, s, otherKey, f), wholeTurn(anna, "t1", "hello")...)
	got, err := stores[1].EraseSession(t.Context(), key)
	wantErased(t, "the session", got, err, []string{key}, nil, 4)

	list, err := s.List(t.Context(), "", 10)
	if err != nil || len(list) != 1 || list[0].Key != otherKey {
		t.Errorf("the list is %v, %v", list, err)
	}
	for _, err := range s.Read(t.Context(), key, 1) {
		if !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("reading it: %v", err)
		}
	}
	if _, err := s.Find(t.Context(), key, "t1"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("finding a cause: %v", err)
	}
	if err := l.Append(t.Context(), l.Next(), replied("t1", "x")); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("who had it open appends: %v", err)
	}
	if _, err := s.Open(t.Context(), key, f); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("opened under the same fence: %v", err)
	}
	again := openLog(t, s, key, clockFence())
	if again.Next() != 1 || len(again.Entries()) != 0 {
		t.Errorf("it goes on at %d with %d entries", again.Next(), len(again.Entries()))
	}
	mustAppend(t, again, wholeTurn(anna, "t2", "hello")...)
	if _, err := s.EraseSession(t.Context(), "main:telegram:unknown"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
	if _, err := s.EraseSession(t.Context(), "no key"); !errors.Is(err, sessions.ErrInvalidKey) {
		t.Errorf("no key: %v", err)
	}
}

func testEraseCauses(t *testing.T, p place) {
	s := p.open()
	mustAppend(t, openLog(t, s, key, clockFence()), append(wholeTurn(anna, "t1", "hello"), said("t1", "m2", "more"))...)
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	s = p.reopen(s)
	l := openLog(t, s, key, clockFence())
	wantSeen(t, l.Append(t.Context(), 1, said("t2", "m2", "more")), "m2", "t1")
	wantSeen(t, l.Append(t.Context(), 1, turnStarted("t1"), said("t1", "t1", "hello")), "t1", "t1")
	mustAppend(t, l, said("t3", "m3", "new"))
	mustAppend(t, openLog(t, s, otherKey, clockFence()), said("t1", "m2", "another session knows nothing of it"))
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, s, key, clockFence())
	wantSeen(t, l.Append(t.Context(), 1, said("t2", "m2", "more")), "m2", "t1")
	wantSeen(t, l.Append(t.Context(), 1, said("t3", "m3", "new")), "m3", "t3")
}

func testEraseUnseen(t *testing.T, p place) {
	s := p.open()
	claimed := clockFence() // the fence of a holder who has not opened the log yet
	<-time.After(time.Millisecond)
	if _, err := s.EraseSession(t.Context(), key); !errors.Is(err, sessions.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), key, claimed); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("opened under a fence from before: %v", err)
	}
	mustAppend(t, openLog(t, s, key, clockFence()), said("t", "m", "hello"))
}

func testEraseTraces(t *testing.T, p place) {
	if p.harness.Files == nil {
		t.Skip("the files are a server's")
	}
	s := p.open()
	for i := range 8 {
		private := openLog(t, s, fmt.Sprintf("main:telegram:%d", i), clockFence())
		shared := openLog(t, s, fmt.Sprintf("main:telegram:-%d", i), clockFence())
		for n := range 12 {
			turn := fmt.Sprint("t", n)
			mustAppend(t, private, wholeTurn(anna, turn, strings.Repeat(secret, 1+n*n*n))...)
			mustAppend(t, shared, wholeTurn(berta, "b"+turn, strings.Repeat("everybody says so ", 1+n*n))...)
			mustAppend(t, shared, wholeTurn(anna, "a"+turn, strings.Repeat(secret, 1+n))...)
		}
		mustAppend(t, shared, entry("", sessions.KindSummary, sessions.Summary{Covers: shared.Next() - 1, Text: secret}))
	}
	if n := p.countInFiles(secret); n == 0 {
		t.Fatal("the files do not hold what was said: the test cannot fail")
	}
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if n := p.countInFiles(secret); n != 0 {
		t.Errorf("%d traces are left", n)
	}
	if p.countInFiles("everybody says so") == 0 {
		t.Error("what others said is gone too")
	}
}

// countInFiles returns how often a text occurs in the files of the store.
func (p place) countInFiles(text string) (n int) {
	p.t.Helper()
	for _, name := range p.harness.Files(p.t, p.name) {
		raw, err := os.ReadFile(name)
		if err != nil {
			p.t.Fatal(err)
		}
		n += bytes.Count(raw, []byte(text))
	}
	return n
}

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
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "t1", "old by its last append alone")...)
	l := openLog(t, s, otherKey, clockFence())
	mustAppend(t, l, withTime(long, wholeTurn(anna, "old", "x")...)...)
	mustAppend(t, l, withTime(long, summary(4))...)
	mustAppend(t, l, withTime(long, withPerson(anna, turnStarted("open")), withPerson(anna, said("open", "open", "x")))...)
	mustAppend(t, l, withTime(long, withPerson(anna, turnStarted("slow")), withPerson(anna, said("slow", "slow", "x")))...)
	mustAppend(t, l, withTime(lately, append([]sessions.Entry{turnDone("slow")}, wholeTurn(anna, "new", "x")...)...)...)

	got, err := s.EraseBefore(t.Context(), now.Add(-24*time.Hour))
	wantErased(t, "what is old", got, err, nil, []string{otherKey}, 5)
	if got := turnsOf(readLog(t, s, otherKey)); !slices.Equal(got, []string{"s", "open", "slow", "new"}) {
		t.Errorf("turns %v are left", got)
	}
	mustAppend(t, l, turnDone("open")) // no holder is shut out
	wantSeen(t, l.Append(t.Context(), l.Next(), said("x", "old", "again")), "old", "old")

	got, err = s.EraseBefore(t.Context(), time.Now().Add(time.Minute))
	wantErased(t, "everything", got, err, []string{otherKey, key}, nil, 4+11)
}

// waitingTurn returns the entries of a turn in which a person says something and which then waits
// for an approval, the ask with that id.
func waitingTurn(person, turn, ask string) []sessions.Entry {
	parked := sessions.TurnParked{Asks: []sessions.Ask{{ID: ask, Call: "c1", Kind: "approval"}}}
	return []sessions.Entry{withPerson(person, turnStarted(turn)), withPerson(person, said(turn, turn, "x")), entry(turn, sessions.KindTurnParked, parked), turnPublished(turn)}
}

// approvedBy returns the entry that says that person has approved an ask.
func approvedBy(person, turn, ask string) sessions.Entry {
	return endedBy(person, turn, ask, sessions.AskEnded{Ask: ask, State: "answered", Answer: "approve"})
}

// endedBy returns the entry that says that an ask has ended as ended says, by a person's decision.
func endedBy(person, turn, ask string, ended sessions.AskEnded) sessions.Entry {
	e := withPerson(person, entry(turn, sessions.KindAskEnded, ended))
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
		mustAppend(t, l, withTime(long, wholeTurn(anna, "old", "x")...)...)
		mustAppend(t, l, withTime(long, waitingTurn(anna, "w", "ask")...)...)
		if key == goes { // the ask was answered, and the turn has ended
			mustAppend(t, l, withTime(long, approvedBy(anna, "w", "ask"), entry("w", sessions.KindTurnUnparked, nil), turnDone("w"))...)
		}
	}
	// Nothing was written since then, but the turn has not ended.
	got, err := s.EraseBefore(t.Context(), now.Add(time.Minute))
	wantErased(t, "what is old", got, err, []string{goes}, []string{waits}, 4+7+4)
	if got := turnsOf(readLog(t, s, waits)); !slices.Equal(got, []string{"w"}) {
		t.Errorf("turns %v are left", got)
	}
	l := openLog(t, s, waits, clockFence())
	if got := turnsOf(l.Entries()); !slices.Equal(got, []string{"w"}) {
		t.Errorf("opened it has turns %v", got)
	}
	mustAppend(t, l, approvedBy(anna, "w", "ask"), entry("w", sessions.KindTurnUnparked, nil), turnDone("w"))
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
		mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a", "x")...)
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
				mustAppend(t, l, e...)
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
