package sessionstest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley/sessions"
)

func openTests() []test {
	return []test{
		{"the newest summary hides what it covers", summaryCovers},
		{"a summary that claims to cover itself hides nothing after it", summaryAhead},
		{"a summary keeps what it names", summaryKeeps},
		{"a turn that has not ended survives a summary", unfinishedSurvives},
		{"a turn that is not published survives a summary", unpublishedSurvives},
		{"several unfinished turns come in order", unfinishedInOrder},
		{"whatever is appended, what matters is returned", openReturnsWhatMatters},
	}
}

func summaryCovers(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	for i := range 5 {
		turn := fmt.Sprint("t", i)
		appendAll(t, l, started(turn), said(turn, "m"+turn, "hello"), done(turn))
	}
	appendAll(t, l, summary(9)) // keeps turns 3 and 4 word for word
	appendAll(t, l, reply("t5", "after"))
	entries := readLog(t, s, key)
	sameEntries(t, "what matters", openLog(t, s, key, 1).Entries(), entries[9:])

	appendAll(t, l, summary(17))
	appendAll(t, l, reply("t6", "after"))
	entries = readLog(t, s, key)
	for range 2 {
		l = openLog(t, s, key, 2)
		sameEntries(t, "what matters", l.Entries(), entries[17:])
		if l.Next() != 20 {
			t.Errorf("the next is %d", l.Next())
		}
		s = p.reopen(s)
	}
}

// summaryKeeps checks that a summary which covers the beginning of an unfinished turn
// keeps the entries that it names.
func summaryKeeps(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	appendAll(t, l, started("t1"), said("t1", "m1", "first"), done("t1"), started("t2"), said("t2", "m2", "second"), reply("t2", "a"))
	appendAll(t, l, entry("t2", sessions.KindSummary, sessions.Summary{Covers: 6, Text: "so far", Turn: "t2", Keep: []int64{2, 5, 99}}))
	appendAll(t, l, reply("t2", "b"))
	entries := readLog(t, s, key)
	of := func(numbers ...int) (some []sessions.Entry) {
		for _, n := range numbers {
			some = append(some, entries[n-1])
		}
		return some
	}
	sameEntries(t, "while the turn goes on", openLog(t, s, key, 1).Entries(), of(2, 4, 5, 6, 7, 8))
	appendAll(t, l, done("t2"))
	entries = readLog(t, s, key)
	for range 2 {
		sameEntries(t, "once it has ended", openLog(t, s, key, 2).Entries(), of(2, 5, 7, 8, 9))
		s = p.reopen(s)
	}
}

func summaryAhead(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	appendAll(t, l, reply("t1", "before"), summary(1000), reply("t2", "after"))
	entries := readLog(t, s, key)
	sameEntries(t, "what matters", openLog(t, s, key, 1).Entries(), entries[1:])
	appendAll(t, l, summary(-5))
	entries = readLog(t, s, key)
	sameEntries(t, "what matters", openLog(t, s, key, 1).Entries(), entries)
}

func unfinishedSurvives(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	appendAll(t, l, started("t0"), said("t0", "m0", "hello"), done("t0"))
	appendAll(t, l, said("t1", "m1", "hello"), started("t1"), reply("t1", "one"), reply("x", "another's"), reply("t1", "two"))
	appendAll(t, l, summary(8))
	appendAll(t, l, published("t1")) // which does not end it
	s = p.reopen(s)
	l = openLog(t, s, key, 2)
	entries := readLog(t, s, key)
	want := append(append(append([]sessions.Entry(nil), entries[3:6]...), entries[7]), entries[8:]...)
	sameEntries(t, "what matters", l.Entries(), want)

	appendAll(t, l, done("t1"))
	entries = readLog(t, s, key)
	sameEntries(t, "what matters when it has ended", openLog(t, s, key, 2).Entries(), entries[8:])
}

func unpublishedSurvives(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	appendAll(t, l, started("t1"), said("t1", "m1", "hello"), done("t1", "o1"))
	appendAll(t, l, summary(3))
	entries := readLog(t, s, key)
	sameEntries(t, "what matters", openLog(t, s, key, 2).Entries(), entries)
	l = openLog(t, p.reopen(s), key, 3)
	appendAll(t, l, published("t1"))
	s = p.open()
	entries = readLog(t, s, key)
	sameEntries(t, "what matters when it is published", openLog(t, s, key, 3).Entries(), entries[3:])
}

func unfinishedInOrder(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	appendAll(t, l, started("b"), started("a"), reply("b", "1"), reply("c", "2"), reply("a", "3"), reply("b", "4"))
	appendAll(t, l, done("a", "o"), summary(7))
	entries := readLog(t, s, key)
	want := append(append([]sessions.Entry(nil), entries[:3]...), entries[4:]...)
	sameEntries(t, "what matters", openLog(t, s, key, 1).Entries(), want)
}

// openReturnsWhatMatters appends at random, as several holders, and compares what Open
// returns with what expectedOnOpen finds in the whole log.
func openReturnsWhatMatters(t *testing.T, p place) {
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
				batch = append(batch, said(turn, fmt.Sprint("m", cause), "hello"), started(turn))
			}
			e := reply(turn, "text")
			switch r.IntN(8) {
			case 0, 1:
				cause++
				e = said(turn, fmt.Sprint("m", cause), "steered")
			case 2:
				e = done(turn)
				finished[turn] = true
			case 3:
				e = done(turn, "o"+turn)
				if r.IntN(2) == 0 {
					batch = append(batch, e)
					e = published(turn)
				}
				finished[turn] = true
			case 4:
				e = summary(r.Int64N(l.Next() + 1))
			}
			batch = append(batch, e)
		}
		appendAll(t, l, batch...)
		if r.IntN(3) == 0 {
			fence += r.Int64N(2)
			l = openLog(t, s, key, fence)
			sameEntries(t, "what matters", l.Entries(), expectedOnOpen(t, readLog(t, s, key)))
		}
	}
}

// expectedOnOpen returns what Open must return by its contract, found in the simplest
// way.
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
