package sessionstest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley/sessions"
)

func openTests() []test {
	return []test{
		{"the newest summary hides what it covers", testSummaryCovers},
		{"a summary that claims to cover itself hides nothing after it", testSummaryAhead},
		{"a summary keeps what it names", testSummaryKeeps},
		{"a turn that has not ended survives a summary", testUnfinishedSurvives},
		{"a turn that is not published survives a summary", testUnpublishedSurvives},
		{"several unfinished turns come in order", testUnfinishedInOrder},
		{"whatever is appended, what matters is returned", testOpenReturnsWhatMatters},
	}
}

func testSummaryCovers(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	for i := range 5 {
		turn := fmt.Sprint("t", i)
		mustAppend(t, l, turnStarted(turn), said(turn, "m"+turn, "hello"), turnDone(turn))
	}
	mustAppend(t, l, summary(9)) // keeps turns 3 and 4 word for word
	mustAppend(t, l, replied("t5", "after"))
	entries := readLog(t, s, key)
	wantSame(t, "what matters", openLog(t, s, key, 1).Entries(), entries[9:])

	mustAppend(t, l, summary(17))
	mustAppend(t, l, replied("t6", "after"))
	entries = readLog(t, s, key)
	for range 2 {
		l = openLog(t, s, key, 2)
		wantSame(t, "what matters", l.Entries(), entries[17:])
		if l.Next() != 20 {
			t.Errorf("the next is %d", l.Next())
		}
		s = p.reopen(s)
	}
}

// testSummaryKeeps checks that a summary which covers the beginning of an unfinished turn
// keeps the entries that it names.
func testSummaryKeeps(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l, turnStarted("t1"), said("t1", "m1", "first"), turnDone("t1"), turnStarted("t2"), said("t2", "m2", "second"), replied("t2", "a"))
	mustAppend(t, l, entry("t2", sessions.KindSummary, sessions.Summary{Covers: 6, Text: "so far", Turn: "t2", Keep: []int64{2, 5, 99}}))
	mustAppend(t, l, replied("t2", "b"))
	entries := readLog(t, s, key)
	of := func(numbers ...int) (some []sessions.Entry) {
		for _, n := range numbers {
			some = append(some, entries[n-1])
		}
		return some
	}
	wantSame(t, "while the turn goes on", openLog(t, s, key, 1).Entries(), of(2, 4, 5, 6, 7, 8))
	mustAppend(t, l, turnDone("t2"))
	entries = readLog(t, s, key)
	for range 2 {
		wantSame(t, "once it has ended", openLog(t, s, key, 2).Entries(), of(2, 5, 7, 8, 9))
		s = p.reopen(s)
	}
}

func testSummaryAhead(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l, replied("t1", "before"), summary(1000), replied("t2", "after"))
	entries := readLog(t, s, key)
	wantSame(t, "what matters", openLog(t, s, key, 1).Entries(), entries[1:])
	mustAppend(t, l, summary(-5))
	entries = readLog(t, s, key)
	wantSame(t, "what matters", openLog(t, s, key, 1).Entries(), entries)
}

func testUnfinishedSurvives(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l, turnStarted("t0"), said("t0", "m0", "hello"), turnDone("t0"))
	mustAppend(t, l, said("t1", "m1", "hello"), turnStarted("t1"), replied("t1", "one"), replied("x", "another's"), replied("t1", "two"))
	mustAppend(t, l, summary(8))
	mustAppend(t, l, turnPublished("t1")) // this does not end the turn
	s = p.reopen(s)
	l = openLog(t, s, key, 2)
	entries := readLog(t, s, key)
	want := append(append(append([]sessions.Entry(nil), entries[3:6]...), entries[7]), entries[8:]...)
	wantSame(t, "what matters", l.Entries(), want)

	mustAppend(t, l, turnDone("t1"))
	entries = readLog(t, s, key)
	wantSame(t, "what matters when it has ended", openLog(t, s, key, 2).Entries(), entries[8:])
}

func testUnpublishedSurvives(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l, turnStarted("t1"), said("t1", "m1", "hello"), turnDone("t1", "o1"))
	mustAppend(t, l, summary(3))
	entries := readLog(t, s, key)
	wantSame(t, "what matters", openLog(t, s, key, 2).Entries(), entries)
	l = openLog(t, p.reopen(s), key, 3)
	mustAppend(t, l, turnPublished("t1"))
	s = p.open()
	entries = readLog(t, s, key)
	wantSame(t, "what matters when it is published", openLog(t, s, key, 3).Entries(), entries[3:])
}

func testUnfinishedInOrder(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l, turnStarted("b"), turnStarted("a"), replied("b", "1"), replied("c", "2"), replied("a", "3"), replied("b", "4"))
	mustAppend(t, l, turnDone("a", "o"), summary(7))
	entries := readLog(t, s, key)
	want := append(append([]sessions.Entry(nil), entries[:3]...), entries[4:]...)
	wantSame(t, "what matters", openLog(t, s, key, 1).Entries(), want)
}

// testOpenReturnsWhatMatters appends at random, as several holders, and compares what Open
// returns with what expectedOnOpen finds in the whole log.
func testOpenReturnsWhatMatters(t *testing.T, p place) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := p.open()
	fence, cause := int64(1), 0
	l := openLog(t, s, key, fence)
	begun, finished := map[string]bool{}, map[string]bool{}
	for range 400 {
		var batch []sessions.Entry
		for range 1 + r.IntN(4) {
			turn := fmt.Sprint("t", cause/3+r.IntN(3))
			if finished[turn] {
				continue
			}
			if !begun[turn] {
				begun[turn] = true
				cause++
				batch = append(batch, said(turn, fmt.Sprint("m", cause), "hello"), turnStarted(turn))
			}
			e := replied(turn, "text")
			switch r.IntN(8) {
			case 0, 1:
				cause++
				e = said(turn, fmt.Sprint("m", cause), "steered")
			case 2:
				e = turnDone(turn)
				finished[turn] = true
			case 3:
				e = turnDone(turn, "o"+turn)
				if r.IntN(2) == 0 {
					batch = append(batch, e)
					e = turnPublished(turn)
				}
				finished[turn] = true
			case 4:
				e = summary(r.Int64N(l.Next() + 1))
			}
			batch = append(batch, e)
		}
		mustAppend(t, l, batch...)
		if r.IntN(3) == 0 {
			fence += r.Int64N(2)
			l = openLog(t, s, key, fence)
			wantSame(t, "what matters", l.Entries(), expectedOnOpen(t, readLog(t, s, key)))
		}
	}
}

// expectedOnOpen returns what Open must return by its contract. It is a second, simple implementation to compare
// with.
func expectedOnOpen(t *testing.T, log []sessions.Entry) []sessions.Entry {
	t.Helper()
	type turn struct{ started, done, pending, published bool }
	turns := map[string]turn{}
	covers := int64(0)
	for _, e := range log {
		u := turns[e.Turn]
		switch e.Kind {
		case sessions.KindSummary:
			data, err := sessions.Decode[sessions.Summary](e)
			if err != nil {
				t.Fatal(err)
			}
			covers = min(data.Covers, e.N-1)
		case sessions.KindTurnStarted:
			u.started = true
		case sessions.KindTurnDone:
			data, err := sessions.Decode[sessions.TurnDone](e)
			if err != nil {
				t.Fatal(err)
			}
			u.done, u.pending = true, len(data.Outbound) > 0
		case sessions.KindPublished:
			u.published = true
		}
		turns[e.Turn] = u
	}
	var kept []sessions.Entry
	for _, e := range log {
		u := turns[e.Turn]
		unfinished := u.started && !u.done || u.done && u.pending && !u.published
		if e.N > covers || unfinished {
			kept = append(kept, e)
		}
	}
	return kept
}
