package sqlstore_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/sessionstest"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// A zipfSpeaker says texts whose word frequencies are like those of a natural language: the n-th word occurs
// one n-th as often as the first.
type zipfSpeaker struct{ zipf *rand.Zipf }

func newSpeaker() zipfSpeaker {
	return zipfSpeaker{rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.07, 3, 60_000)}
}

func spellWord(n uint64) string {
	const syllables = "ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su ta te ti to tu"
	all := strings.Fields(syllables)
	var b strings.Builder
	for n += uint64(len(all)); n > 0; n /= uint64(len(all)) {
		b.WriteString(all[n%uint64(len(all))])
	}
	return b.String()
}

func (s zipfSpeaker) text(words int) string {
	var b strings.Builder
	for range words {
		b.WriteString(spellWord(s.zipf.Uint64()) + " ")
	}
	return b.String()
}

// BenchmarkSearch measures queries of three words in 300,000 entries of 3,000 sessions.
func BenchmarkSearch(b *testing.B) {
	for _, h := range []struct {
		name string
		sessionstest.Harness
	}{{"sqlite", sqliteHarness()}, {"postgres", postgresHarness()}} {
		b.Run(h.name, func(b *testing.B) { benchmarkSearch(b, h.New(b)) })
	}
}

const benchEntries = 100

// the number of sessions; use fewer for a quick look.
var benchSessions = 3000

func benchmarkSearch(b *testing.B, place string) {
	if n, err := strconv.Atoi(os.Getenv("BENCH_SESSIONS")); err == nil {
		benchSessions = n
	}
	s, err := sqlstore.Open(b.Context(), place)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	began := time.Now()
	fillStore(b, s, newSpeaker())
	fmt.Printf("appended in %s\n", time.Since(began))
	fillAll(b, s)
	if strings.HasPrefix(place, "postgres:") { // the server does so by itself within a minute or two
		sqldbtest.Query(b, "pgx", place, "ANALYZE entry_words")
	}
	table := s.Words()
	for _, among := range []int{1, 20, 60, 200} {
		var keys []string
		for i := range among {
			keys = append(keys, fmt.Sprintf("main:telegram:%d", i*benchSessions/among))
		}
		for name, words := range map[string][]uint64{"common": {3, 5, 9}, "middle": {100, 300, 700}, "rare": {5_000, 9_000, 15_000}, "mixed": {4, 400, 9_000}} {
			query := search.Query{Words: spellWord(words[0]) + " " + spellWord(words[1]) + " " + spellWord(words[2]), Sessions: keys}
			b.Run(fmt.Sprintf("among=%d/%s", among, name), func(b *testing.B) {
				var took []time.Duration
				found := 0
				for b.Loop() {
					began := time.Now()
					hits, err := table.Search(b.Context(), query)
					if err != nil {
						b.Fatal(err)
					}
					took, found = append(took, time.Since(began)), len(hits)
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2])/1e6, "median-ms")
				b.ReportMetric(float64(took[len(took)*99/100])/1e6, "worst-ms")
				b.ReportMetric(float64(found), "hits")
			})
		}
	}
}

func fillStore(b *testing.B, s *sqlstore.Store, speaker zipfSpeaker) {
	for i := range benchSessions {
		l, err := s.Open(b.Context(), fmt.Sprintf("main:telegram:%d", i), 1)
		if err != nil {
			b.Fatal(err)
		}
		soon := l.(sessions.SoonLog).Soon(time.Second)
		var entries []sessions.Entry
		for j := range benchEntries {
			kind, data := sessions.KindUser, any(sessions.User{Name: "Anna", Text: speaker.text(8 + j%20)})
			if j%2 == 1 {
				kind, data = sessions.KindText, sessions.Text{Text: speaker.text(30 + j)}
			}
			e, err := sessions.NewEntry(fmt.Sprint("t", j/2), kind, data)
			if err != nil {
				b.Fatal(err)
			}
			entries = append(entries, e)
		}
		for chunk := range slices.Chunk(entries, 20) {
			if err := soon.Append(b.Context(), soon.Next(), chunk...); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// fillAll fills the index, and reports the longest call and the time per entry.
func fillAll(b *testing.B, s *sqlstore.Store) {
	var longest, sum time.Duration
	for more := true; more; {
		began := time.Now()
		var err error
		if more, err = s.Words().Fill(b.Context()); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		longest, sum = max(longest, took), sum+took
	}
	fmt.Printf("filled in %s, %s for each entry, the longest call %s\n", sum, sum/time.Duration(benchSessions*benchEntries), longest)
}

// BenchmarkAppendBesideFill measures an append without the index being filled, and with a fill after every 50
// entries.
func BenchmarkAppendBesideFill(b *testing.B) {
	for _, h := range []struct {
		name string
		sessionstest.Harness
	}{{"sqlite", sqliteHarness()}, {"postgres", postgresHarness()}} {
		b.Run(h.name, func(b *testing.B) {
			s, err := sqlstore.Open(b.Context(), h.New(b))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			l, err := s.Open(b.Context(), "main:telegram:7", 1)
			if err != nil {
				b.Fatal(err)
			}
			speaker := newSpeaker()
			var appends, fills time.Duration
			for b.Loop() {
				e, err := sessions.NewEntry("t", sessions.KindText, sessions.Text{Text: speaker.text(40)})
				if err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				if err := l.Append(b.Context(), l.Next(), e); err != nil {
					b.Fatal(err)
				}
				appends += time.Since(began)
				if l.Next()%50 == 0 {
					began = time.Now()
					if _, err := s.Words().Fill(b.Context()); err != nil {
						b.Fatal(err)
					}
					fills += time.Since(began)
				}
			}
			b.ReportMetric(float64(appends)/float64(b.N)/1e6, "append-ms")
			b.ReportMetric(float64(fills)/float64(b.N)/1e6, "fill-ms")
		})
	}
}
