package sessionstest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
)

func logTests() []test {
	return []test{
		{"what was appended is read back, at once and after reopening", testReadBack},
		{"numbers begin at 1 and the entries get theirs, and the time", testNumbersAndTimes},
		{"text as people write it comes back", testOddText},
		{"data that is not JSON is refused whole", testNotJSON},
		{"a hundred entries and a megabyte are one append", testLargeEntries},
		{"the same entries at the same place succeed again", testAppendSameAgain},
		{"the same entries succeed for one who has opened anew", testAppendSameAfterReopen},
		{"other entries at that place are a conflict", testAppendConflict},
		{"appending nothing does nothing", testAppendNothing},
		{"what is appended soon stands before what is appended next", testAppendSoon},
		{"what is appended soon is refused as it would be at once", testAppendSoonRefused},
		{"many sessions side by side", testManySessions},
	}
}

func testReadBack(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	use := entry("t1", sessions.KindToolUse, sessions.ToolUse{Name: "read_file", Args: []byte(`{"path":"a"}`)})
	use.Call = "c1"
	entries := []sessions.Entry{
		turnStarted("t1"), said("t1", "m1", "hello"), use, replied("t1", "hi"), turnDone("t1", "o1"), turnPublished("t1"),
	}
	entries[3].At = time.Date(2026, 3, 4, 5, 6, 7, 89000, time.FixedZone("", 3600))
	mustAppend(t, l, entries[:2]...)
	mustAppend(t, l, entries[2:]...)
	wantLog(t, s, key, entries)
	wantSame(t, "the log opened again", openLog(t, s, key, 1).Entries(), entries)
	s = p.reopen(s)
	wantLog(t, s, key, entries)
	wantSame(t, "the log after reopening", openLog(t, s, key, 2).Entries(), entries)
}

func testNumbersAndTimes(t *testing.T, p place) {
	l := openLog(t, p.open(), key, 1)
	if len(l.Entries()) != 0 || l.Next() != 1 {
		t.Fatalf("a new log has %d entries and goes on at %d", len(l.Entries()), l.Next())
	}
	before := time.Now().Add(-time.Millisecond)
	own := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	entries := []sessions.Entry{replied("t", "a"), replied("t", "b"), replied("t", "c")}
	entries[1].At = own
	mustAppend(t, l, entries...)
	for i, e := range entries {
		if e.N != int64(i+1) {
			t.Errorf("entry %d has number %d", i, e.N)
		}
		if i != 1 && (e.At.Before(before) || e.At.After(time.Now())) {
			t.Errorf("entry %d was appended at %s", i, e.At)
		}
	}
	if !entries[1].At.Equal(own) {
		t.Errorf("a time of the caller's became %s", entries[1].At)
	}
	if len(l.Entries()) != 0 {
		t.Error("what was appended since is among the entries of the opening")
	}
}

func testOddText(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	odd := []string{"", "nul \x00 in it", "\xff\xfe", `\x00`, `\xzz`, "'; DROP TABLE entries; --", "שלום 👩‍👩‍👧 \u2028", "\u0000"}
	var entries []sessions.Entry
	for i, o := range odd {
		e := said("t"+o, fmt.Sprintf("%s %d", o, i), o)
		e.Person, e.Call = o, o
		entries = append(entries, e)
	}
	mustAppend(t, l, entries...)
	s = p.reopen(s)
	wantLog(t, s, key, entries)
	for i, e := range entries {
		found, err := s.Find(t.Context(), key, e.Cause)
		if err != nil {
			t.Fatal(err)
		}
		user, err := sessions.Decode[sessions.User](found)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(odd[i], "\uFFFD"); user.Text != want && user.Text != string([]rune(odd[i])) {
			t.Errorf("%q came back as %q", odd[i], user.Text)
		}
	}
	// A vendor's JSON may hold invalid UTF-8. It is replaced, and the same entries can
	// still be appended again.
	raw := replied("t", "")
	raw.Data = []byte("{\"text\":\"a\xff\xfeb\"}")
	at := l.Next()
	l = openLog(t, s, key, 1)
	for range 2 {
		if err := l.Append(t.Context(), at, withoutNumbers([]sessions.Entry{raw})...); err != nil {
			t.Fatal(err)
		}
	}
	text, err := sessions.Decode[sessions.Text](readLog(t, s, key)[at-1])
	if err != nil || text.Text != "a\uFFFD\uFFFDb" {
		t.Errorf("%q, %v", text.Text, err)
	}
}

func testNotJSON(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	for _, data := range []string{"{", "hello", "{\"text\":\"\x00\"}", "{} {}"} {
		bad := replied("t", "")
		bad.Data = []byte(data)
		if err := l.Append(t.Context(), 1, replied("t", "good"), bad); err == nil {
			t.Errorf("%q passed as JSON", data)
		}
	}
	bad := entry("t", sessions.KindTurnDone, []int{1})
	if err := l.Append(t.Context(), 1, turnStarted("t"), bad); err == nil {
		t.Error("an end of a turn that is a list passed")
	}
	wantLog(t, s, key, nil)
	mustAppend(t, l, replied("t", "good"))
}

func testLargeEntries(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	var entries []sessions.Entry
	for i := range 101 {
		entries = append(entries, said("t", fmt.Sprint("m", i), strings.Repeat("x", 10_000*(i%2))))
	}
	entries = append(entries, replied("t", strings.Repeat("é", 1<<19)))
	mustAppend(t, l, entries...)
	wantLog(t, s, key, entries)
	wantSame(t, "the log", openLog(t, s, key, 2).Entries(), entries)
}

func testAppendSameAgain(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	first := []sessions.Entry{turnStarted("t1"), said("t1", "m1", "hello")}
	second := []sessions.Entry{replied("t1", "hi"), turnDone("t1")}
	mustAppend(t, l, first...)
	mustAppend(t, l, second...)
	want := append(append([]sessions.Entry(nil), first...), second...)

	retry := withoutNumbers(second)
	retry[0].At = time.Now().Add(time.Hour)
	for _, l := range []sessions.Log{l, openLog(t, s, key, 1)} {
		for _, part := range []struct {
			at      int64
			entries []sessions.Entry
		}{{1, withoutNumbers(first)}, {3, retry}, {1, withoutNumbers(want)}, {2, withoutNumbers(want[1:3])}} {
			if err := l.Append(t.Context(), part.at, part.entries...); err != nil {
				t.Fatalf("again at %d: %v", part.at, err)
			}
			if got := part.entries[0].N; got != part.at {
				t.Errorf("entry %d was told that it is %d", part.at, got)
			}
			if part.entries[0].At.IsZero() {
				t.Error("an entry that was appended again has no time")
			}
		}
		if l.Next() != 5 {
			t.Fatalf("after appending again the next is %d", l.Next())
		}
	}
	wantLog(t, s, key, want)
	mustAppend(t, l, turnStarted("t2"))
}

// testAppendSameAfterReopen appends entries again after a commit whose answer was lost, so the holder
// knows fewer entries than the log has.
func testAppendSameAfterReopen(t *testing.T, p place) {
	s := p.open()
	ignorant, knowing := openLog(t, s, key, 1), openLog(t, s, key, 1)
	first := []sessions.Entry{turnStarted("t1"), said("t1", "m1", "hello")}
	mustAppend(t, knowing, first...)
	mustAppend(t, ignorant, withoutNumbers(first)...)
	second := []sessions.Entry{turnDone("t1", "o1"), turnPublished("t1"), summary(2)}
	mustAppend(t, knowing, second...)
	mustAppend(t, ignorant, withoutNumbers(second)...)
	third := []sessions.Entry{said("t2", "m2", "more")}
	if err := ignorant.Append(t.Context(), 6, third...); err != nil {
		t.Fatal(err)
	}
	fourth := []sessions.Entry{replied("t2", "yes")}
	if err := knowing.Append(t.Context(), 7, fourth...); err != nil {
		t.Fatalf("at the end of a log that has grown meanwhile: %v", err)
	}
	want := append(append(append(append([]sessions.Entry(nil), first...), second...), third...), fourth...)
	wantLog(t, s, key, want)
	wantSame(t, "what matters", openLog(t, s, key, 1).Entries(), want[2:])
}

func testAppendConflict(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	stood := []sessions.Entry{turnStarted("t1"), said("t1", "m1", "hello"), replied("t1", "hi")}
	mustAppend(t, l, stood...)
	changed := func(change func(*sessions.Entry)) []sessions.Entry {
		e := withoutNumbers(stood[1:2])
		change(&e[0])
		return e
	}
	for name, tt := range map[string]struct {
		at      int64
		entries []sessions.Entry
	}{
		"turn":            {2, changed(func(e *sessions.Entry) { e.Turn = "t2" })},
		"kind":            {2, changed(func(e *sessions.Entry) { e.Kind = sessions.KindNotice })},
		"cause":           {2, changed(func(e *sessions.Entry) { e.Cause = "m2" })},
		"no cause":        {2, changed(func(e *sessions.Entry) { e.Cause = "" })},
		"person":          {2, changed(func(e *sessions.Entry) { e.Person = "telegram:8" })},
		"call":            {2, changed(func(e *sessions.Entry) { e.Call = "c" })},
		"data":            {2, changed(func(e *sessions.Entry) { e.Data = append([]byte(" "), e.Data...) })},
		"no data":         {2, changed(func(e *sessions.Entry) { e.Data = nil })},
		"partial overlap": {3, append(withoutNumbers(stood[2:]), replied("t1", "more"))},
		"a gap":           {5, []sessions.Entry{replied("t1", "more")}},
		"number zero":     {0, []sessions.Entry{replied("t1", "more")}},
		"before zero":     {-1, withoutNumbers(stood)},
		"one too early":   {2, withoutNumbers(stood)[:2]},
	} {
		if err := l.Append(t.Context(), tt.at, tt.entries...); !errors.Is(err, sessions.ErrConflict) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	wantLog(t, s, key, stood)
	mustAppend(t, l, replied("t1", "more"))
}

func testAppendNothing(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l)
	wantLog(t, s, key, nil)
}

func testManySessions(t *testing.T, p place) {
	s := p.open()
	const count, turns = 100, 5
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			key := fmt.Sprintf("main:telegram:%d", i)
			for n := range turns {
				l, err := s.Open(t.Context(), key, int64(n+1))
				if err != nil {
					t.Error(err)
					return
				}
				turn := fmt.Sprintf("t%d", n)
				if len(l.Entries()) != 3*n {
					t.Errorf("%s has %d entries after %d turns", key, len(l.Entries()), n)
				}
				for _, e := range []sessions.Entry{turnStarted(turn), said(turn, "m"+turn, key), turnDone(turn)} {
					if err := l.Append(t.Context(), l.Next(), e); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range count {
		key := fmt.Sprintf("main:telegram:%d", i)
		entries := readLog(t, s, key)
		if len(entries) != 3*turns {
			t.Fatalf("%s has %d entries", key, len(entries))
		}
		for i, e := range entries {
			if u, _ := sessions.Decode[sessions.User](e); e.N != int64(i+1) || e.Kind == sessions.KindUser && u.Text != key {
				t.Fatalf("%s holds %s", key, describe(e))
			}
		}
	}
}

// soonLog returns the log as one whose entries are durable later, or skips the test.
func soonLog(t *testing.T, l sessions.Log) sessions.Log {
	t.Helper()
	soon, ok := l.(sessions.SoonLog)
	if !ok {
		t.Skip("the log is no SoonLog")
	}
	return soon.Soon(time.Minute)
}

func testAppendSoon(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	soon := soonLog(t, l)
	var all []sessions.Entry
	for i := range 20 {
		turn := fmt.Sprint("t", i)
		entries := []sessions.Entry{turnStarted(turn), said(turn, "m"+turn, "hello")}
		if err := soon.Append(t.Context(), l.Next(), entries...); err != nil {
			t.Fatal(err)
		}
		all = append(all, entries...)
		if i%3 == 0 {
			wantLog(t, s, key, all) // at once
		}
		if i%4 == 0 {
			end := []sessions.Entry{turnDone(turn)}
			mustAppend(t, l, end...)
			all = append(all, end...)
		}
	}
	wantSame(t, "the log opened by the next holder", openLog(t, s, key, 2).Entries(), all)
	s = p.reopen(s)
	wantLog(t, s, key, all)
}

func testAppendSoonRefused(t *testing.T, p place) {
	s := p.open()
	old := openLog(t, s, key, 1)
	soon := soonLog(t, old)
	if err := soon.Append(t.Context(), 1, said("t1", "m1", "hello")); err != nil {
		t.Fatal(err)
	}
	err := soon.Append(t.Context(), 2, said("t2", "m1", "hello"))
	if seen, ok := errors.AsType[*sessions.SeenError](err); !ok || seen.Turn != "t1" {
		t.Errorf("a known cause gives %v", err)
	}
	if err := soon.Append(t.Context(), 3, replied("t1", "hi")); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("a place beyond the end gives %v", err)
	}
	l := openLog(t, s, key, 2)
	if err := soon.Append(t.Context(), 2, replied("t1", "hi")); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("a former holder gets %v", err)
	}
	mustAppend(t, l, replied("t1", "hi"))
}
