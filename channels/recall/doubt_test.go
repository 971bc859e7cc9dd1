package recall

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"testing"

	"parley/bus"
	"parley/sessions"
	"parley/sessions/search"
)

// countedLogs are the logs of sessions, with the number of entries that were read.
type countedLogs struct {
	Sessions
	entries   map[string][]sessions.Entry
	readCount int
}

func (l *countedLogs) Read(_ context.Context, key string, from int64) iter.Seq2[sessions.Entry, error] {
	return func(yield func(sessions.Entry, error) bool) {
		all, there := l.entries[key]
		if !there {
			yield(sessions.Entry{}, sessions.ErrNotFound)
			return
		}
		for _, e := range all {
			if e.N < from {
				continue
			}
			if l.readCount++; !yield(e, nil) {
				return
			}
		}
	}
}

// isInDoubt applies the rule for doubt to a single hit.
func isInDoubt(l *countedLogs, session string, n int64) bool {
	from := max(1, n-entriesLookedBack)
	in := from > 1
	for e, err := range l.Read(context.Background(), session, from) {
		if errors.Is(err, sessions.ErrNotFound) {
			return true
		}
		if e.N >= n {
			break
		}
		if anew, foreign := trustEffect(e); anew || foreign {
			in = foreign
		}
	}
	return in
}

// randomLog makes a log of entries that seldom contain words. Some numbers are missing, as if their entries
// were erased.
func randomLog(t *testing.T, random *rand.Rand) (entries []sessions.Entry) {
	t.Helper()
	for n := range int64(random.IntN(1500)) {
		kind, data := sessions.KindText, any(sessions.Text{Text: "x"})
		switch random.IntN(300) {
		case 0:
			kind, data = sessions.KindToolResult, sessions.ToolResult{Content: []byte(`"x"`), Untrusted: true}
		case 1:
			kind, data = sessions.KindSummary, sessions.Summary{Covers: n}
		case 2:
			kind, data = sessions.KindUser, sessions.User{Quotes: []sessions.Quote{{Kind: bus.Forwarded}}}
		case 3:
			kind, data = "of a newer release", nil
		case 4, 5, 6, 7, 8, 9, 10:
			continue
		}
		e, err := sessions.NewEntry("t", kind, data)
		if err != nil {
			t.Fatal(err)
		}
		e.N = n + 1
		entries = append(entries, e)
	}
	return entries
}

// The doubt of many hits in several logs is the same as that of each hit alone, and no entry is read much more
// than once.
func TestDoubtOfManyHitsIsThatOfEach(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // it is no secret
	doubtful, trusted := 0, 0
	for range 200 {
		l := &countedLogs{entries: map[string][]sessions.Entry{"a": randomLog(t, random), "b": randomLog(t, random)}}
		var hits []search.Hit
		for range random.IntN(50) {
			kinds := []sessions.Kind{sessions.KindText, sessions.KindSummary, sessions.KindToolResult}
			hits = append(hits, search.Hit{Session: []string{"a", "b", "gone"}[random.IntN(3)], N: 1 + random.Int64N(1600), Kind: kinds[random.IntN(3)]})
		}
		got, err := (&Finder{Config{Sessions: l}}).doubtfulEntries(t.Context(), hits)
		if err != nil {
			t.Fatal(err)
		}
		if most := len(l.entries["a"]) + len(l.entries["b"]) + len(hits); l.readCount > most {
			t.Errorf("for %d hits %d entries were read, of %d", len(hits), l.readCount, most)
		}
		for _, h := range hits {
			want := isInDoubt(l, h.Session, h.N)
			if got[entryID{h.Session, h.N}] != want {
				t.Fatalf("entry %d of %s is in doubt: %v, want %v", h.N, h.Session, !want, want)
			}
			if want {
				doubtful++
			} else {
				trusted++
			}
		}
	}
	if min(doubtful, trusted) < 300 {
		t.Errorf("%d in doubt, %d not: the test says little", doubtful, trusted)
	}
	if got, err := (&Finder{Config{Sessions: &countedLogs{}}}).doubtfulEntries(t.Context(), []search.Hit{{Session: "gone", Kind: sessions.KindUser}, {Session: "gone", Kind: sessions.KindText, Untrusted: true}}); len(got) > 0 || err != nil {
		t.Errorf("hits that nobody asks about: %v, %v", got, err)
	}
}
