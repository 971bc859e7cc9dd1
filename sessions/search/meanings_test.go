package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/openai"
	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/search/searchtest"
	"parley/sessions/search/vectors"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
	"parley/tools/testrace"
)

func TestMain(m *testing.M) { os.Exit(testrace.Run(m.Run)) }

const key = "main:test:1"

// A meaningsTest is a process with a store and Meanings, and the provider that they ask.
type meaningsTest struct {
	*search.Meanings
	t        *testing.T
	place    string
	store    *sqlstore.Store
	provider *searchtest.Provider
	log      *bytes.Buffer

	mu          sync.Mutex
	model       string
	fence       int64
	budgetSpent bool // whether the budget has no room
}

// onEachDatabase runs a test on both kinds of database, with two processes that have it open.
func onEachDatabase(t *testing.T, test func(t *testing.T, one, other *meaningsTest)) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
		p := searchtest.NewProvider(t)
		test(t, newMeaningsTest(t, at, one, p), newMeaningsTest(t, at, other, p))
	})
}

func newMeaningsTest(t *testing.T, at string, s *sqlstore.Store, p *searchtest.Provider) *meaningsTest {
	b := &meaningsTest{t: t, place: at, store: s, provider: p, model: "trigrams", log: &bytes.Buffer{}}
	b.Meanings = search.NewMeanings(search.MeaningsConfig{
		Table: s.Words(), Embedding: b.embedding, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		RemoveSecrets: func(text string) string { return strings.ReplaceAll(text, "sesame", "***") },
		MayAsk: func(context.Context) (bool, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return !b.budgetSpent, nil
		},
	})
	return b
}

func (b *meaningsTest) embedding() search.Embedding {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.model == "" {
		return search.Embedding{}
	}
	e, err := openai.NewEmbedder(openai.Config{BaseURL: b.provider.URL, Name: b.model}, nil)
	if err != nil {
		b.t.Error(err)
	}
	return search.Embedding{Model: b.model, Embedder: e}
}

func (b *meaningsTest) useModel(model string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.model = model
}

// appendTexts appends a person's texts to a session, each in its own turn.
func (b *meaningsTest) appendTexts(key string, texts ...string) {
	b.t.Helper()
	b.fence++
	l, err := b.store.Open(b.t.Context(), key, time.Now().UnixNano()+b.fence)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, text := range texts {
		turn := fmt.Sprint("t", l.Next())
		e, err := sessions.NewEntry(turn, sessions.KindUser, sessions.User{Text: text})
		if e.Cause, e.Person = turn, "test:7"; err == nil {
			err = l.Append(b.t.Context(), l.Next(), e)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// fillVectors makes vectors until none is missing.
func (b *meaningsTest) fillVectors() {
	b.t.Helper()
	b.fillWords()
	for more := true; more; {
		var err error
		if more, err = b.Fill(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *meaningsTest) fillWords() {
	b.t.Helper()
	for more := true; more; {
		var err error
		if more, err = b.store.Words().Fill(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *meaningsTest) state() (s vectors.State) {
	b.t.Helper()
	err := sqldb.WithReadOnly(b.t.Context(), b.place, func(db *sqldb.DB) (err error) {
		if db.IsPostgres() { // on PostgreSQL, the count is an estimate
			if err := db.Read.QueryRowContext(b.t.Context(), "SELECT count(*) FROM entry_vectors").Scan(&s.Vectors); err != nil {
				return err
			}
		}
		n := s.Vectors
		if s, err = (vectors.Store{DB: db}).State(b.t.Context()); db.IsPostgres() {
			s.Vectors = n
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *meaningsTest) wantVectors(when string, want int64) {
	b.t.Helper()
	if got := b.state(); got.Vectors != want {
		b.t.Errorf("%s there are the vectors %+v, want %d", when, got, want)
	}
}

// findTexts returns the found texts, the best first.
func (b *meaningsTest) findTexts(words string, keys ...string) (texts []string) {
	b.t.Helper()
	if len(keys) == 0 {
		keys = []string{key}
	}
	hits, err := b.Search(b.t.Context(), search.Query{Words: words, Sessions: keys})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, h := range hits {
		texts = append(texts, h.Text)
	}
	return texts
}

func (b *meaningsTest) wantFound(when, words string, want ...string) {
	b.t.Helper()
	if got := b.findTexts(words); !slices.Equal(got, want) {
		b.t.Errorf("%s %q finds %q, want %q", when, words, got, want)
	}
}

// unrelatedTexts returns so many different texts that the average is unlike each of them.
func unrelatedTexts() []string {
	return []string{"the weather is mild", "bring milk and bread", "nobody called today", "we won by two goals", "the printer has no ink"}
}

// A misspelled word finds a text by its meaning, but not by its words.
func TestMeaningsAreFound(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		b.appendTexts(key, append(unrelatedTexts(), "the lighthouse keeper sleeps")...)
		b.fillWords()
		b.wantFound("without vectors", "lighthousekeepers")
		b.fillVectors()
		b.wantVectors("filled", 6)
		b.wantFound("with vectors", "lighthousekeepers", "the lighthouse keeper sleeps")
		if got := b.findTexts("the lighthouse", "main:test:2"); len(got) > 0 {
			t.Errorf("in another session %q is found", got)
		}
		b.appendTexts(key, "a lamp")
		if got := b.findTexts("lamp"); len(got) == 0 || got[0] != "a lamp" {
			t.Errorf("what has no vector yet is not first by its word: %q", got)
		}
		b.useModel("")
		b.wantFound("with no model", "lighthousekeepers")
	})
}

// While a budget has no room, the provider is not asked, neither for texts nor for queries, and searches find
// by words. Once there is room again, the missing vectors are made. Both are reported to the operator once.
func TestVectorsWaitForABudget(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		spend := func(all bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.budgetSpent = all
		}
		b.appendTexts(key, append(unrelatedTexts(), "the lighthouse keeper sleeps")...)
		b.fillVectors()
		spend(true)
		b.provider.Asked() // discard the requests so far
		b.appendTexts(key, "a lamp")
		for range 2 {
			b.fillVectors()
		}
		b.wantVectors("without budget", 6)
		b.wantFound("without budget", "lighthousekeepers")
		b.wantFound("without budget", "lamp", "a lamp")
		if asked := b.provider.Asked(); len(asked) > 0 {
			t.Errorf("without budget, the provider was asked for %q", asked)
		}
		spend(false)
		for range 2 {
			b.fillVectors()
		}
		b.wantVectors("with budget again", 7)
		b.wantFound("with budget again", "lighthousekeepers", "the lighthouse keeper sleeps")
		if log := b.log.String(); strings.Count(log, "is reached; the vectors of what was said wait") != 1 || strings.Count(log, "there is budget again") != 1 {
			t.Errorf("the log says %s", log)
		}
	})
}

func TestMeaningsKeepTheQuerysLimits(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		b.appendTexts(key, append(unrelatedTexts(), "the lighthouse keeper sleeps")...)
		b.fillVectors()
		for name, c := range map[string]struct {
			q    search.Query
			want int
		}{
			"all":              {search.Query{}, 1},
			"of another turn":  {search.Query{ExcludedTurn: "t1"}, 1},
			"of the same turn": {search.Query{ExcludedTurn: "t6"}, 0},
			"since now":        {search.Query{Since: time.Now()}, 0},
			"since an hour":    {search.Query{Since: time.Now().Add(-time.Hour)}, 1},
			"until an hour":    {search.Query{Until: time.Now().Add(-time.Hour)}, 0},
		} {
			c.q.Words, c.q.Sessions = "lighthousekeepers", []string{key}
			hits, err := b.Search(t.Context(), c.q)
			found := 0
			for _, h := range hits {
				if h.Text == "the lighthouse keeper sleeps" {
					found++
				}
			}
			if err != nil || found != c.want {
				t.Errorf("%s: found %+v, %v", name, hits, err)
			}
		}
	})
}

// Vectors of another model, or of another length, are never compared with those of the current one.
func TestVectorsOfAnotherModelAreNotMixed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, other *meaningsTest) {
		b.appendTexts(key, append(unrelatedTexts(), "the lighthouse keeper sleeps")...)
		b.fillVectors()
		b.useModel("others")
		b.wantFound("with the vectors of another model", "lighthousekeepers")
		b.wantFound("with the vectors of another model", "lighthouse", "the lighthouse keeper sleeps")
		if _, err := b.Fill(t.Context()); err != nil { // replaces all vectors
			t.Fatal(err)
		}
		b.wantVectors("begun anew", 0)
		if got := other.findTexts("lighthousekeepers"); len(got) > 0 {
			t.Errorf("a process with the model of before finds %q", got)
		}
		b.fillVectors()
		b.wantVectors("made anew", 6)
		if got, want := b.state().Identity, (vectors.Identity{Model: "others", Prompt: "plain 1", Dimensions: 256}); got != want {
			t.Errorf("the vectors are of %+v, want %+v", got, want)
		}
		b.wantFound("made anew", "lighthousekeepers", "the lighthouse keeper sleeps")

		b.provider.Resize(100) // the model now has vectors of another length
		b.wantFound("of another length", "lighthousekeepers")
		b.appendTexts(key, "a lamp")
		b.fillVectors()
		b.wantVectors("of the new length", 7)
		if got := b.state().Identity.Dimensions; got != 100 {
			t.Errorf("the vectors have %d dimensions", got)
		}
		b.wantFound("of the new length", "lighthousekeepers", "the lighthouse keeper sleeps")

		b.provider.Resize(256) // another change: not twice within an hour
		b.appendTexts(key, "a bulb")
		b.fillWords()
		if _, err := b.Fill(t.Context()); err == nil || !strings.Contains(err.Error(), "less than an hour ago") {
			t.Errorf("made anew again: %v", err)
		}
		b.wantVectors("that were not made anew", 7)
	})
}

// Two processes with different models do not replace each other's vectors forever.
func TestTwoModelsDoNotRebuildForever(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, other *meaningsTest) {
		b.appendTexts(key, unrelatedTexts()...)
		b.fillVectors()
		other.useModel("others")
		for range 5 {
			_, _ = b.Fill(t.Context())
			_, _ = other.Fill(t.Context())
		}
		sent := 0
		for _, texts := range b.provider.Asked() {
			sent += len(texts)
		}
		if sent > 2*(5+1)+5*2 { // each text once for each model, and a probe before each start
			t.Errorf("%d texts were sent", sent)
		}
	})
}

// Whatever erases or changes an entry removes its vector in the same transaction. What is left of the entry
// gets a new one.
func TestVectorsGoWithTheirEntries(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, other *meaningsTest) {
		b.appendTexts(key, unrelatedTexts()...)
		b.appendTexts("main:test:2", "the lighthouse keeper sleeps")
		b.fillVectors()
		b.wantVectors("filled", 6)
		b.provider.Asked()
		vector := vectors.Pack(searchtest.VectorOf("the lighthouse keeper sleeps", 256))
		if strings.HasSuffix(b.place, ".db") && !filesContain(t, b.place, vector) {
			t.Fatal("the vector is in no file: the test cannot fail")
		}
		l, err := b.store.Open(t.Context(), key, time.Now().UnixNano())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.store.EraseSession(t.Context(), "main:test:2"); err != nil {
			t.Fatal(err)
		}
		b.wantVectors("without a session", 5)
		if strings.HasSuffix(b.place, ".db") && filesContain(t, b.place, vector) {
			t.Error("the vector of what was erased is in a file")
		}
		if got := other.findTexts("lighthousekeepers", "main:test:2"); len(got) > 0 {
			t.Errorf("what was erased is found: %q", got)
		}
		eraser, ok := l.(sessions.MessageEraser)
		if !ok {
			t.Fatal("the log erases no messages")
		}
		if err := eraser.EraseMessage(t.Context(), "t2"); err != nil {
			t.Fatal(err)
		}
		b.wantVectors("without a message", 4)
		b.fillVectors()
		b.wantVectors("filled again", 4)
		if asked := b.provider.Asked(); len(slices.Concat(asked...)) > 1 {
			t.Errorf("these were asked for again: %q", asked)
		}
		if _, err := b.store.ErasePerson(t.Context(), "test:7"); err != nil {
			t.Fatal(err)
		}
		b.wantVectors("without a person", 0)
	})
}

// filesContain reports whether the files of a SQLite database contain these bytes.
func filesContain(t *testing.T, at string, want []byte) bool {
	t.Helper()
	files, err := filepath.Glob(at + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, want) {
			return true
		}
	}
	return false
}

// An entry that is erased while the provider is asked gets no vector.
func TestEntriesErasedDuringARequestGetNoVector(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		b.appendTexts(key, unrelatedTexts()...)
		b.appendTexts("main:test:2", "the lighthouse keeper sleeps")
		b.fillVectors()
		b.appendTexts(key, "a lamp")
		b.appendTexts("main:test:2", "the keeper has a lamp")
		b.fillWords()
		l, err := b.store.Open(t.Context(), key, time.Now().UnixNano())
		eraser, ok := l.(sessions.MessageEraser)
		if err != nil || !ok {
			t.Fatal(err, ok)
		}
		erased := false
		b.provider.Fail(func(_ http.ResponseWriter, _ *http.Request, texts []string) bool {
			if !erased && slices.Contains(texts, "the keeper has a lamp") {
				erased = true
				if _, err := b.store.EraseSession(context.WithoutCancel(t.Context()), "main:test:2"); err != nil {
					t.Error(err)
				}
				if err := eraser.EraseMessage(context.WithoutCancel(t.Context()), "t6"); err != nil {
					t.Error(err)
				}
			}
			return false
		})
		b.fillVectors()
		if !erased {
			t.Fatal("nothing was erased: the test cannot fail")
		}
		b.wantVectors("filled", 5)
	})
}

// If the provider is down or slow, or returns nonsense, only vectors are missing; searches still find by words.
func TestAFailingProviderOnlyDelaysVectors(t *testing.T) {
	answer := func(status int, text string) func(http.ResponseWriter, *http.Request, []string) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
			return true
		}
	}
	faults := map[string]func(http.ResponseWriter, *http.Request, []string) bool{
		"away":            answer(http.StatusBadGateway, ""),
		"no key":          answer(http.StatusUnauthorized, `{"error":{"message":"the key sk-12345678 is wrong"}}`),
		"too many":        answer(http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`),
		"a page":          answer(http.StatusOK, "<html>hello</html>"),
		"nothing":         answer(http.StatusOK, `{"data":[]}`),
		"too many dim":    answer(http.StatusOK, `{"data":[{"index":0,"embedding":[0,0,0]}]}`),
		"huge numbers":    answer(http.StatusOK, `{"data":[{"index":0,"embedding":[1e300]}]}`),
		"another's place": answer(http.StatusOK, `{"data":[{"index":7,"embedding":[1]}]}`),
		"slow": func(_ http.ResponseWriter, r *http.Request, _ []string) bool {
			<-r.Context().Done()
			return true
		},
	}
	onEachDatabase(t, func(t *testing.T, b, other *meaningsTest) {
		b.appendTexts(key, append(unrelatedTexts(), "the lighthouse keeper sleeps")...)
		b.fillVectors()
		b.appendTexts(key, "a lamp")
		b.fillWords()
		for name, fault := range faults {
			b.provider.Fail(fault)
			b := newMeaningsTest(t, b.place, b.store, b.provider)
			began := time.Now()
			b.wantFound("with a provider that is "+name, "lighthouse", "the lighthouse keeper sleeps")
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("%s: the answer takes %s", name, took)
			}
			began = time.Now()
			b.wantFound("again with a provider that is "+name, "lamp", "a lamp")
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: the second answer takes %s", name, took)
			}
			if got := b.log.String(); strings.Count(got, "level=") != 1 || strings.Contains(got, "sk-1234") || strings.Contains(got, "lighthouse") {
				t.Errorf("%s: the operator is told %s", name, got)
			}
			if name == "slow" {
				continue // a request for texts waits for a minute
			}
			if _, err := b.Fill(t.Context()); err == nil || strings.Contains(err.Error(), "sk-1234") {
				t.Errorf("%s: filled, %v", name, err)
			}
			b.wantVectors("with a provider that is "+name, 6)
		}
		b.provider.Fail(nil)
		b.fillVectors()
		b.wantVectors("in the end", 7)
	})
}

// An entry whose text the provider refuses gets no vector, and all others get theirs.
func TestARefusedTextGetsNoVector(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		for range 30 {
			b.appendTexts(key, "the lighthouse keeper sleeps")
		}
		b.appendTexts(key, append([]string{"this is poison"}, unrelatedTexts()...)...)
		b.provider.Fail(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			poisoned := slices.Contains(texts, "this is poison")
			if poisoned {
				http.Error(w, `{"error":{"message":"too long"}}`, http.StatusBadRequest)
			}
			return poisoned
		})
		b.fillVectors()
		b.wantVectors("filled", 35)
		if got := b.state(); got.Waiting != 0 {
			t.Errorf("there are the vectors %+v", got)
		}
		if got := b.findTexts("poison"); len(got) == 0 || got[0] != "this is poison" {
			t.Errorf("without a vector it is not first by its words: %q", got)
		}
	})
}

// If a text is too long for the model, its vector is made from its beginning, whether or not the provider says
// what is wrong. The same holds for queries. Other texts get their vectors.
func TestATooLongTextIsEmbeddedByItsBeginning(t *testing.T) {
	const most = 200
	long := "the lighthouse keeper sleeps " + strings.Repeat("and the wind blows over the sea ", 40)
	for name, fault := range map[string]struct {
		status int
		answer string
	}{
		"of OpenAI":    {http.StatusBadRequest, `{"error":{"message":"This model's maximum context length is 512 tokens, however you requested 700 tokens"}}`},
		"of llama.cpp": {http.StatusInternalServerError, `{"error":{"message":"input is too large to process. increase the physical batch size"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
				b.appendTexts(key, unrelatedTexts()...)
				b.appendTexts(key, long)
				b.appendTexts(key, "a lamp", "a bulb")
				b.provider.Fail(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
					tooLong := slices.ContainsFunc(texts, func(text string) bool { return len(text) > most })
					if tooLong {
						w.WriteHeader(fault.status)
						_, _ = io.WriteString(w, fault.answer)
					}
					return tooLong
				})
				b.fillVectors()
				b.wantVectors("filled", 8)
				if got := b.state(); got.Waiting != 0 {
					t.Errorf("there are the vectors %+v", got)
				}
				if got := b.findTexts("lighthousekeepers"); len(got) == 0 || !strings.HasPrefix(got[0], "the lighthouse keeper sleeps") {
					t.Errorf("found is %q", got)
				}
				if strings.Contains(b.log.String(), "level=WARN") {
					t.Errorf("the operator is told %s", b.log)
				}
			})
		})
	}
}

// If a query is too long for the model, its beginning is sent. Later queries are not affected.
func TestATooLongQueryIsEmbeddedByItsBeginning(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		b.appendTexts(key, append(unrelatedTexts(), "the lighthouse keeper sleeps")...)
		b.fillVectors()
		b.provider.Fail(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			if len(texts[0]) <= 300 {
				return false
			}
			http.Error(w, `{"error":{"message":"too many input tokens"}}`, http.StatusBadRequest)
			return true
		})
		b.wantFound("too long", strings.Repeat("lighthousekeepers ", 60), "the lighthouse keeper sleeps")
		b.wantFound("short", "lighthousekeepers", "the lighthouse keeper sleeps")
		if strings.Contains(b.log.String(), "level=WARN") {
			t.Errorf("the operator is told %s", b.log)
		}
	})
}

// Run reports once that the provider is down, and makes the vectors once it works.
func TestRunReportsAnOutageOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		b.appendTexts(key, unrelatedTexts()...)
		b.fillWords()
		failures := make(chan struct{}, 10)
		b.provider.Fail(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			select {
			case failures <- struct{}{}:
			default:
			}
			http.Error(w, "", http.StatusBadGateway)
			return true
		})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		for range 2 {
			<-failures
		}
		b.provider.Fail(nil)
		for ctx.Err() == nil && b.state().Vectors < 5 {
			<-time.After(5 * time.Millisecond)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		b.wantVectors("in the end", 5)
		if got := b.log.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "can be made again") {
			t.Errorf("the operator is told %s", got)
		}
	})
}

// A process continues where another one was killed, and no text is sent twice.
func TestMakingVectorsContinuesAfterAKill(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, other *meaningsTest) {
		const texts = 300
		for i := range texts {
			b.appendTexts(fmt.Sprint("main:test:", i%7), fmt.Sprintf("text number %d", i))
		}
		b.fillWords()
		for i, more := 0, true; more; i++ {
			process := []*meaningsTest{b, other}[i%2]
			var err error
			if more, err = process.Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		other.fillVectors()
		b.wantVectors("filled", texts)
		sent := map[string]int{}
		for _, one := range b.provider.Asked() {
			if len(one) > 64 {
				t.Errorf("one request has %d texts", len(one))
			}
			for _, text := range one {
				if sent[text]++; sent[text] > 1 && text != "hello" {
					t.Errorf("%q was sent %d times", text, sent[text])
				}
			}
		}
	})
}

// While one process asks the provider, no other process asks for the same vectors.
func TestOneProcessAtATimeMakesVectors(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, other *meaningsTest) {
		b.appendTexts(key, unrelatedTexts()...)
		b.fillVectors()
		b.appendTexts(key, "a lamp")
		b.fillWords()
		asked := 0
		b.provider.Fail(func(http.ResponseWriter, *http.Request, []string) bool {
			if asked++; asked > 1 {
				t.Error("the other process asks, too")
			} else if more, err := other.Fill(context.WithoutCancel(t.Context())); more || err != nil {
				t.Errorf("the other process: %v, %v", more, err)
			}
			return false
		})
		b.fillVectors()
		b.wantVectors("filled", 6)
	})
}

// endHoldAndFill ends the time for which a process may make vectors alone, and lets another process make some.
func endHoldAndFill(t *testing.T, other *meaningsTest) {
	t.Helper()
	db, err := sqldb.OpenAt(t.Context(), other.place, sqlstore.Schema())
	if err == nil {
		_, err = db.Exec(t.Context(), "UPDATE vector_identity SET taken = taken / 2 WHERE taken > 0")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := other.Fill(t.Context()); err != nil {
		t.Errorf("the other process: %v", err)
	}
}

// A process whose hold ended while it asked the provider changes nothing: neither vectors of a process with
// another model, nor the record of which vectors are missing.
func TestAProcessWhoseHoldEndedChangesNothing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, other *meaningsTest) {
		b.appendTexts(key, unrelatedTexts()...)
		b.fillWords()
		overtaken := 0
		b.provider.Fail(func(_ http.ResponseWriter, r *http.Request, texts []string) bool {
			if overtaken++; overtaken == 1 {
				other.useModel("others")
				endHoldAndFill(t, other) // the other process replaces all vectors
				endHoldAndFill(t, other) // and makes them
			}
			return false
		})
		if more, err := b.Fill(t.Context()); more || err != nil { // would replace all vectors
			t.Errorf("who was overtaken: %v, %v", more, err)
		}
		b.wantVectors("of the other process", 5)
		b.useModel("others")
		b.appendTexts(key, "a lamp")
		b.fillWords()
		overtaken = 0
		b.provider.Fail(func(_ http.ResponseWriter, r *http.Request, texts []string) bool {
			if overtaken++; overtaken == 1 {
				b.useModel("third")
				other.useModel("third")
				endHoldAndFill(t, other) // the other process replaces the vectors, and has made none yet
			}
			return false
		})
		if more, err := b.Fill(t.Context()); more || err != nil {
			t.Errorf("who was overtaken: %v, %v", more, err)
		}
		b.wantVectors("begun anew by the other process", 0)
		if got := b.state(); got.Identity.Model != "third" || got.Waiting != 6 {
			t.Errorf("there are the vectors %+v", got)
		}
		other.fillVectors()
		b.wantVectors("in the end", 6)
	})
}

// Neither texts nor queries are sent with a secret in them.
func TestSecretsAreNotSent(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		b.appendTexts(key, "the password is sesame", strings.Repeat("x", 1497)+"sesame") // the limit cuts the secret in half
		b.fillVectors()
		b.findTexts("is it sesame")
		asked := slices.Concat(b.provider.Asked()...)
		if !slices.Contains(asked, "the password is ***") || !slices.Contains(asked, "is it ***") {
			t.Errorf("sent were %q", asked)
		}
		for _, text := range asked {
			if strings.Contains(text, "ses") {
				t.Errorf("a part of a secret was sent: %q", text)
			}
		}
	})
}

// Questions about a year of messages find their answers as well with vectors as without, over HTTP. The vectors
// are not a real model's, so this does not show how much better the order becomes.
func TestAnswersAreAmongTheFirstHitsWithVectors(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	onEachDatabase(t, func(t *testing.T, b, _ *meaningsTest) {
		loaded := searchtest.Load(t, b.store)
		b.fillVectors()
		if got := b.state(); got.Vectors < searchtest.Size {
			t.Errorf("there are the vectors %+v", got)
		}
		questions, err := searchtest.Tuning()
		if err != nil {
			t.Fatal(err)
		}
		b.provider.Asked()
		r := loaded.Measure(t, b, questions)
		if asked := len(b.provider.Asked()); asked != len(questions) {
			t.Errorf("%d of %d questions were sent", asked, len(questions))
		}
		t.Logf("with vectors %.3f", r.Recall())
		if r.Recall() < 0.85 {
			t.Error(r)
		}
	})
}

func TestPack(t *testing.T) {
	for _, none := range [][]float32{nil, {}, {0, 0}, {1, float32(math.NaN())}, {float32(math.Inf(1))}, make([]float32, vectors.MaxDimensions+1)} {
		if p := vectors.Pack(none); p != nil {
			t.Errorf("the direction of %d numbers is %v", len(none), p)
		}
	}
	for _, c := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{0.001, 0}, 1}, {[]float32{1, 0}, []float32{0, 5}, 0}, {[]float32{1, 1}, []float32{-2, -2}, -1},
		{[]float32{1, 0}, []float32{1, 1}, math.Sqrt2 / 2}, {[]float32{1}, []float32{1, 1}, 0},
	} {
		if got := vectors.Pack(c.a).Likeness(vectors.Pack(c.b)); math.Abs(got-c.want) > 0.005 {
			t.Errorf("%v and %v are alike by %.3f, want %.3f", c.a, c.b, got, c.want)
		}
	}
	one := searchtest.VectorOf("the lighthouse keeper sleeps in the tower", 768)
	two := searchtest.VectorOf("who keeps the lighthouse?", 768)
	dot, a, b := 0.0, 0.0, 0.0
	for i := range one {
		x, y := float64(one[i]), float64(two[i])
		dot, a, b = dot+x*y, a+x*x, b+y*y
	}
	if got, want := vectors.Pack(one).Likeness(vectors.Pack(two)), dot/math.Sqrt(a*b); math.Abs(got-want) > 0.01 {
		t.Errorf("they are alike by %.4f, want %.4f", got, want)
	}
}
