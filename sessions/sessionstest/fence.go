package sessionstest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"parley/sessions"
)

func fenceTests() []test {
	return []test{
		{"a former holder is refused at Append and at Open", testFormerHolder},
		{"a former holder is refused even what stands there", testFormerHolderRetries},
		{"the fence outlives a restart", testFenceRestart},
		{"a fence holds for its session alone", testFencesApart},
		{"a text that is no key opens nothing", testInvalidKey},
		{"holders that race leave one order", testHolderRace},
	}
}

// wantFenced fails the test unless err is ErrFenced.
func wantFenced(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("%s: %v, want it fenced", what, err)
	}
}

func testFormerHolder(t *testing.T, p place) {
	s := p.open()
	old := openLog(t, s, key, 10)
	entries := []sessions.Entry{said("t1", "m1", "hello")}
	mustAppend(t, old, entries...)
	now := openLog(t, s, key, 11)
	wantSame(t, "the new holder's log", now.Entries(), entries)
	wantFenced(t, "append", old.Append(t.Context(), 2, replied("t1", "late")))
	_, err := s.Open(t.Context(), key, 10)
	wantFenced(t, "open", err)
	_, err = s.Open(t.Context(), key, -3)
	wantFenced(t, "open below zero", err)
	mustAppend(t, now, replied("t1", "in time"))
	wantFenced(t, "append at the new end", old.Append(t.Context(), 3, replied("t1", "late")))
	again := openLog(t, s, key, 11)
	mustAppend(t, again, replied("t1", "the same fence opens it again"))
	if got := len(readLog(t, s, key)); got != 3 {
		t.Errorf("%d entries, want 3", got)
	}
}

func testFormerHolderRetries(t *testing.T, p place) {
	s := p.open()
	old := openLog(t, s, key, 10)
	entries := []sessions.Entry{said("t1", "m1", "hello")}
	mustAppend(t, old, entries...)
	openLog(t, s, key, 11)
	wantFenced(t, "the same again", old.Append(t.Context(), 1, withoutNumbers(entries)...))
	wantFenced(t, "something else there", old.Append(t.Context(), 1, replied("t1", "x")))
	wantFenced(t, "a cause that is known", old.Append(t.Context(), 2, withoutNumbers(entries)...))
	wantFenced(t, "a gap", old.Append(t.Context(), 9, replied("t1", "x")))
	wantLog(t, s, key, entries)
}

func testFenceRestart(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, 1_790_000_000_000_000)
	s = p.reopen(s)
	_, err := s.Open(t.Context(), key, 1_789_999_999_999_999)
	wantFenced(t, "open after a restart", err)
	openLog(t, s, key, 1_790_000_000_000_000)
}

func testFencesApart(t *testing.T, p place) {
	s := p.open()
	low := openLog(t, s, "main:telegram:1", 1)
	openLog(t, s, "main:telegram:1:1", 99)
	openLog(t, s, "main:telegram:2", 99)
	mustAppend(t, low, said("t1", "m1", "hello"))
}

func testInvalidKey(t *testing.T, p place) {
	s := p.open()
	for _, key := range []string{"", "main", "main:telegram", "main::42", "a:b:c:d:e:f", "a:b:c:d:", "main:telegram:a/b", "main:telegram:\x00"} {
		if _, err := s.Open(t.Context(), key, 1); !errors.Is(err, sessions.ErrInvalidKey) {
			t.Errorf("open %q: %v", key, err)
		}
	}
	if list, err := s.List(t.Context(), "", 10); err != nil || len(list) != 0 {
		t.Errorf("there are sessions %v, %v", list, err)
	}
}

// testHolderRace lets holders with growing fences open one session and append until they are
// fenced. In whatever order they come, none may append an entry after a later holder has
// opened the log.
func testHolderRace(t *testing.T, p place) {
	stores := p.stores()
	const holders, most = 40, 25
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		acked  = map[string]bool{}
		opened = map[string]int64{} // by holder, where its log ended
	)
	for h := range holders {
		wg.Go(func() {
			turn := fmt.Sprintf("holder%02d", h)
			l, err := stores[h%2].Open(t.Context(), key, int64(h+1))
			if err != nil {
				wantFenced(t, "open", err)
				return
			}
			mu.Lock()
			opened[turn] = l.Next()
			mu.Unlock()
			for n := range most {
				cause := fmt.Sprintf("%s-%d", turn, n)
				if err := l.Append(t.Context(), l.Next(), replied(turn, "x"), said(turn, cause, "y")); err != nil {
					wantFenced(t, "append", err)
					return
				}
				mu.Lock()
				acked[cause] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if _, ok := opened[fmt.Sprintf("holder%02d", holders-1)]; !ok {
		t.Error("the highest fence was refused")
	}
	checkRace(t, readLog(t, stores[0], key), opened, acked)
}

// checkRace checks a log for which holders raced. opened has, for each holder's turn, the number of
// the next entry when the holder opened the log; acked has the causes of the entries that were
// acknowledged.
func checkRace(t *testing.T, entries []sessions.Entry, opened map[string]int64, acked map[string]bool) {
	t.Helper()
	for i, e := range entries {
		if e.N != int64(i+1) {
			t.Fatalf("entry %d has number %d", i, e.N)
		}
		if i > 0 && e.Turn < entries[i-1].Turn {
			t.Fatalf("%s has written after %s", e.Turn, entries[i-1].Turn)
		}
		if e.N < opened[e.Turn] {
			t.Fatalf("%s has written below the end of its log", e.Turn)
		}
		for turn, next := range opened {
			if e.Turn < turn && e.N >= next {
				t.Fatalf("%s has written after %s had opened the log", e.Turn, turn)
			}
		}
		if e.Cause != "" && !acked[e.Cause] {
			t.Fatalf("%s was refused and stands in the log", e.Cause)
		}
		delete(acked, e.Cause)
	}
	if len(acked) > 0 {
		t.Errorf("%d appends that were acknowledged are not in the log", len(acked))
	}
}
