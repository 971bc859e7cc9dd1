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
		{"an erased session is gone and begins anew under a higher fence", erasedSession},
		{"what was answered in an erased session is not answered again", erasedCauses},
		{"who was given the session before cannot bring it back", erasedUnseen},
		{"a person's own sessions go whole, of others their turns", erasedPerson},
		{"whoever works on a session is shut out when a person is taken out of it", erasedUnderWork},
		{"a summary of what was erased covers it still and says nothing", erasedSummary},
		{"budgets lose the person and keep no reservation of theirs open", erasedBudget},
		{"what is old goes, by session and by turn", erasedBefore},
		{"what is old goes from however many sessions", erasedFromMany},
		{"what is old goes without disturbing who is at work", erasedBeforeUnderWork},
		{"what was said on a person's behalf goes with them, and keeps no session of another's", erasedOnBehalf},
		{"what a newer release has written goes with its turn", erasedUnknown},
		{"nothing that was erased is left in any file", erasedTraces},
	}
}

// clockFence is a fence as buses give them: they begin at the clock.
func clockFence() int64 { return time.Now().UnixMicro() + 1 }

const (
	other  = "main:telegram:-100"
	anna   = "telegram:7" // as said has it
	berta  = "telegram:8"
	secret = "a word that nobody else says"
)

// by lets somebody else have said it.
func by(person string, e sessions.Entry) sessions.Entry {
	e.Person = person
	return e
}

// asked is a whole turn.
func asked(person, turn, text string) []sessions.Entry {
	return []sessions.Entry{by(person, started(turn)), by(person, said(turn, turn, text)), reply(turn, "about "+text), done(turn)}
}

func erased(t *testing.T, what string, got sessions.Erased, err error, whole, shared []string, entries int64) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.Equal(got.Sessions, whole) || !slices.Equal(got.Shared, shared) || got.Entries != entries {
		t.Errorf("%s erased %+v, want %v whole, %v in part and %d entries", what, got, whole, shared, entries)
	}
}

// turnsOf lists the turns that a log has entries of, in order.
func turnsOf(entries []sessions.Entry) (turns []string) {
	for _, e := range entries {
		if !slices.Contains(turns, e.Turn) {
			turns = append(turns, e.Turn)
		}
	}
	return turns
}

func erasedSession(t *testing.T, p place) {
	stores := p.stores()
	s := stores[0]
	f := clockFence()
	l := openLog(t, s, key, f)
	put(t, l, asked(anna, "t1", "hello")...)
	put(t, openLog(t, s, other, f), asked(anna, "t1", "hello")...)
	got, err := stores[1].EraseSession(t.Context(), key)
	erased(t, "the session", got, err, []string{key}, nil, 4)

	list, err := s.List(t.Context(), "", 10)
	if err != nil || len(list) != 1 || list[0].Key != other {
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
	if err := l.Append(t.Context(), l.Next(), reply("t1", "x")); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("who had it open appends: %v", err)
	}
	if _, err := s.Open(t.Context(), key, f); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("opened under the same fence: %v", err)
	}
	again := openLog(t, s, key, clockFence())
	if again.Next() != 1 || len(again.Entries()) != 0 {
		t.Errorf("it goes on at %d with %d entries", again.Next(), len(again.Entries()))
	}
	put(t, again, asked(anna, "t2", "hello")...)
	if _, err := s.EraseSession(t.Context(), "main:telegram:unknown"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
	if _, err := s.EraseSession(t.Context(), "no key"); !errors.Is(err, sessions.ErrInvalidKey) {
		t.Errorf("no key: %v", err)
	}
}

func erasedCauses(t *testing.T, p place) {
	s := p.open()
	put(t, openLog(t, s, key, clockFence()), append(asked(anna, "t1", "hello"), said("t1", "m2", "more"))...)
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	s = p.reopen(s)
	l := openLog(t, s, key, clockFence())
	seen(t, l.Append(t.Context(), 1, said("t2", "m2", "more")), "m2", "t1")
	seen(t, l.Append(t.Context(), 1, started("t1"), said("t1", "t1", "hello")), "t1", "t1")
	put(t, l, said("t3", "m3", "new"))
	put(t, openLog(t, s, other, clockFence()), said("t1", "m2", "another session knows nothing of it"))
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, s, key, clockFence())
	seen(t, l.Append(t.Context(), 1, said("t2", "m2", "more")), "m2", "t1")
	seen(t, l.Append(t.Context(), 1, said("t3", "m3", "new")), "m3", "t3")
}

func erasedUnseen(t *testing.T, p place) {
	s := p.open()
	claimed := clockFence() // of whom has not come to open it
	<-time.After(time.Millisecond)
	if _, err := s.EraseSession(t.Context(), key); !errors.Is(err, sessions.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), key, claimed); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("opened under a fence from before: %v", err)
	}
	put(t, openLog(t, s, key, clockFence()), said("t", "m", "hello"))
}

func erasedPerson(t *testing.T, p place) {
	s := p.open()
	put(t, openLog(t, s, key, clockFence()), asked(anna, "a1", "mine")...)
	shared := openLog(t, s, other, clockFence())
	put(t, shared, asked(anna, "a1", "hers")...)
	put(t, shared, asked(berta, "b1", "ours")...)
	put(t, shared, asked(anna, "a2", "hers")...)
	command := by(anna, entry("c1", sessions.KindCommand, sessions.Command{Name: "help", Route: []byte("{}")}))
	command.Cause = "c1"
	put(t, shared, command)
	put(t, shared, by(anna, started("open")), by(anna, said("open", "open", "not done yet")))
	put(t, shared, by(berta, started("b2")), by(berta, said("b2", "b2", "nor this")))
	put(t, openLog(t, s, "main:telegram:8", clockFence()), asked(berta, "b1", "private")...)

	got, err := s.ErasePerson(t.Context(), anna)
	erased(t, "the person", got, err, []string{key}, []string{other}, 4+4+4+1+2)
	if got := turnsOf(all(t, s, other)); !slices.Equal(got, []string{"b1", "b2"}) {
		t.Errorf("turns %v are left", got)
	}
	if n := len(all(t, s, "main:telegram:8")); n != 4 {
		t.Errorf("another's session has %d entries", n)
	}
	l := openLog(t, s, other, clockFence())
	if l.Next() != shared.Next() {
		t.Errorf("it goes on at %d, not at %d", l.Next(), shared.Next())
	}
	if got := turnsOf(l.Entries()); !slices.Equal(got, []string{"b1", "b2"}) {
		t.Errorf("opened it has turns %v", got)
	}
	for _, cause := range []string{"a1", "a2", "c1", "open"} {
		seen(t, l.Append(t.Context(), l.Next(), said("x", cause, "again")), cause, cause)
	}
	put(t, l, published("b1"))
	got, err = s.ErasePerson(t.Context(), anna)
	erased(t, "the person once more", got, err, nil, nil, 0)
	if _, err := s.ErasePerson(t.Context(), ""); err == nil {
		t.Error("nobody was erased")
	}
}

func erasedOnBehalf(t *testing.T, p place) {
	s := p.open()
	told := by(anna, entry("n1", sessions.KindNotice, sessions.Notice{Code: "told", Quotes: []sessions.Quote{{Kind: "told", Person: anna, Text: secret}}}))
	told.Cause = "n1"
	for _, session := range []string{key, other} {
		l := openLog(t, s, session, clockFence())
		put(t, l, asked(berta, "b1", "mine")...)
		put(t, l, told)
	}
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	got, err := s.ErasePerson(t.Context(), anna)
	erased(t, "on whose behalf it was said", got, err, nil, []string{other}, 1)
	l := openLog(t, s, other, clockFence())
	seen(t, l.Append(t.Context(), l.Next(), said("x", "n1", "again")), "n1", "n1")
	told.Turn, told.Cause = "n2", "n2"
	put(t, l, told)
	got, err = s.ErasePerson(t.Context(), berta)
	erased(t, "to whom it was said", got, err, []string{other}, nil, 5)
}

func erasedUnknown(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, other, clockFence())
	put(t, l, asked(berta, "b1", "ours")...)
	put(t, l, by(anna, started("a1")), by(anna, said("a1", "a1", "hers")), entry("a1", "kind_of_tomorrow", map[string]string{"text": secret}))
	if got := l.Entries(); len(got) > 0 {
		t.Fatalf("a new log had %v", got)
	}
	if got := openLog(t, s, other, clockFence()).Entries(); len(got) != 7 || got[6].Kind != "kind_of_tomorrow" {
		t.Errorf("opened it has %v", got)
	}
	got, err := s.ErasePerson(t.Context(), anna)
	erased(t, "the person", got, err, nil, []string{other}, 3)
	old := time.Now().Add(time.Hour)
	put(t, openLog(t, s, other, clockFence()), entry("b1", "kind_of_tomorrow", nil), published("b1"))
	got, err = s.EraseBefore(t.Context(), old)
	erased(t, "what is old", got, err, []string{other}, nil, 6)
}

func erasedUnderWork(t *testing.T, p place) {
	s := p.open()
	f := clockFence()
	l := openLog(t, s, other, f)
	put(t, l, asked(anna, "a1", "hers")...)
	put(t, l, by(berta, started("b1")), by(berta, said("b1", "b1", "ours")))
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), l.Next(), reply("b1", "what she said")); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("who has read it appends: %v", err)
	}
	l = openLog(t, s, other, clockFence())
	put(t, l, reply("b1", "something else"), done("b1"))
}

func erasedSummary(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, other, clockFence())
	put(t, l, asked(berta, "b1", "ours")...)
	put(t, l, summary(4)) // as 5: of Berta alone
	put(t, l, asked(anna, "a1", "hers")...)
	put(t, l, summary(9))
	put(t, l, asked(berta, "b2", "ours")...)
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range all(t, s, other) {
		if e.Kind != sessions.KindSummary {
			continue
		}
		d, err := sessions.Decode[sessions.Summary](e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, fmt.Sprint(e.N, d.Covers, d.Text))
	}
	if want := []string{"5 4so far", "10 9"}; !slices.Equal(texts, want) {
		t.Errorf("the summaries are %q, want %q", texts, want)
	}
	if got := turnsOf(openLog(t, s, other, clockFence()).Entries()); !slices.Equal(got, []string{"s", "b2"}) {
		t.Errorf("opened it has turns %v: what was covered must not come back", got)
	}
}

func erasedBudget(t *testing.T, p place) {
	s := p.open()
	now := time.Now()
	for _, r := range []sessions.Reservation{
		{ID: "r1", Person: anna, Tokens: 10, Cap: 100, At: now},
		{ID: "r2", Person: anna, Tokens: 20, Cap: 100, At: now},
		{ID: "r3", Person: berta, Tokens: 40, Cap: 100, At: now},
	} {
		if err := s.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), "r1", 7); err != nil {
		t.Errorf("settling what she had reserved: %v", err)
	}
	for person, want := range map[string]int64{anna: 0, berta: 40} {
		if got, err := s.Spent(t.Context(), person, now); err != nil || got != want {
			t.Errorf("%s has spent %d, want %d: %v", person, got, want, err)
		}
	}
}

// at lets entries have been appended then.
func at(when time.Time, entries ...sessions.Entry) []sessions.Entry {
	for i := range entries {
		entries[i].At = when
	}
	return entries
}

func erasedBefore(t *testing.T, p place) {
	s := p.open()
	now := time.Now()
	long, lately := now.Add(-48*time.Hour), now.Add(-time.Hour)
	put(t, openLog(t, s, key, clockFence()), asked(anna, "t1", "old by its last append alone")...)
	l := openLog(t, s, other, clockFence())
	put(t, l, at(long, asked(anna, "old", "x")...)...)
	put(t, l, at(long, summary(4))...)
	put(t, l, at(long, by(anna, started("open")), by(anna, said("open", "open", "x")))...)
	put(t, l, at(long, by(anna, started("slow")), by(anna, said("slow", "slow", "x")))...)
	put(t, l, at(lately, append([]sessions.Entry{done("slow")}, asked(anna, "new", "x")...)...)...)

	got, err := s.EraseBefore(t.Context(), now.Add(-24*time.Hour))
	erased(t, "what is old", got, err, nil, []string{other}, 5)
	if got := turnsOf(all(t, s, other)); !slices.Equal(got, []string{"s", "open", "slow", "new"}) {
		t.Errorf("turns %v are left", got)
	}
	put(t, l, done("open")) // nobody is shut out
	seen(t, l.Append(t.Context(), l.Next(), said("x", "old", "again")), "old", "old")

	got, err = s.EraseBefore(t.Context(), time.Now().Add(time.Minute))
	erased(t, "everything", got, err, []string{other, key}, nil, 4+11)
}

func erasedFromMany(t *testing.T, p place) {
	const many = 450
	s := p.open()
	var whole []string
	for n := range many {
		key := fmt.Sprintf("main:telegram:%04d", n)
		whole = append(whole, key)
		put(t, openLog(t, s, key, clockFence()), asked(anna, "a", "x")...)
	}
	got, err := s.EraseBefore(t.Context(), time.Now().Add(time.Hour))
	erased(t, "what is old", got, err, whole, nil, 4*many)
}

func erasedBeforeUnderWork(t *testing.T, p place) {
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
				e := asked(anna, turn, "x")
				if n%2 == 0 {
					e = at(before.Add(-time.Hour), e...)
				}
				put(t, l, e...)
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
		entries := all(t, s, fmt.Sprintf("main:telegram:%d", w))
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

func erasedTraces(t *testing.T, p place) {
	if p.h.Files == nil {
		t.Skip("the files are a server's")
	}
	s := p.open()
	for i := range 8 {
		private := openLog(t, s, fmt.Sprintf("main:telegram:%d", i), clockFence())
		shared := openLog(t, s, fmt.Sprintf("main:telegram:-%d", i), clockFence())
		for n := range 12 {
			turn := fmt.Sprint("t", n)
			put(t, private, asked(anna, turn, strings.Repeat(secret, 1+n*n*n))...)
			put(t, shared, asked(berta, "b"+turn, strings.Repeat("everybody says so ", 1+n*n))...)
			put(t, shared, asked(anna, "a"+turn, strings.Repeat(secret, 1+n))...)
		}
		put(t, shared, entry("", sessions.KindSummary, sessions.Summary{Covers: shared.Next() - 1, Text: secret}))
	}
	if n := p.count(secret); n == 0 {
		t.Fatal("the files do not hold what was said: the test cannot fail")
	}
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if n := p.count(secret); n != 0 {
		t.Errorf("%d traces are left", n)
	}
	if p.count("everybody says so") == 0 {
		t.Error("what others said is gone too")
	}
}

// count is how often a text stands in the files of the store.
func (p place) count(text string) (n int) {
	p.t.Helper()
	for _, name := range p.h.Files(p.t, p.at) {
		raw, err := os.ReadFile(name)
		if err != nil {
			p.t.Fatal(err)
		}
		n += bytes.Count(raw, []byte(text))
	}
	return n
}
