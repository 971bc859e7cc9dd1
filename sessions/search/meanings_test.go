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

// A bench is a store with meanings, and the provider that they ask.
type bench struct {
	*search.Meanings
	t        *testing.T
	at       string
	store    *sqlstore.Store
	provider *searchtest.Provider
	log      *bytes.Buffer

	mu    sync.Mutex
	model string
	fence int64
	spent bool // the budget has no room
}

// each runs a test on a database of each kind, with two processes that have it open.
func each(t *testing.T, test func(t *testing.T, one, other *bench)) {
	sqlstoretest.Each(t, func(t *testing.T, at string, one, other *sqlstore.Store) {
		p := searchtest.NewProvider(t)
		test(t, newBench(t, at, one, p), newBench(t, at, other, p))
	})
}

func newBench(t *testing.T, at string, s *sqlstore.Store, p *searchtest.Provider) *bench {
	b := &bench{t: t, at: at, store: s, provider: p, model: "trigrams", log: &bytes.Buffer{}}
	b.Meanings = search.NewMeanings(search.MeaningsConfig{
		Table: s.Words(), With: b.embedding, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Plain: func(text string) string { return strings.ReplaceAll(text, "sesame", "***") },
		MayAsk: func(context.Context) (bool, error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			return !b.spent, nil
		},
	})
	return b
}

func (b *bench) embedding() search.Embedding {
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

func (b *bench) use(model string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.model = model
}

// say appends texts of a person to a session, each in a turn of its own.
func (b *bench) say(key string, texts ...string) {
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

// fill makes vectors until none is missing.
func (b *bench) fill() {
	b.t.Helper()
	b.fillWords()
	for more := true; more; {
		var err error
		if more, err = b.Fill(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) fillWords() {
	b.t.Helper()
	for more := true; more; {
		var err error
		if more, err = b.store.Words().Fill(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) state() (s vectors.State) {
	b.t.Helper()
	err := sqldb.WithReadOnly(b.t.Context(), b.at, func(db *sqldb.DB) (err error) {
		if db.IsPostgres() { // where else the count is an estimate
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

func (b *bench) wantVectors(when string, want int64) {
	b.t.Helper()
	if got := b.state(); got.Vectors != want {
		b.t.Errorf("%s there are the vectors %+v, want %d", when, got, want)
	}
}

// find returns the texts that are found, the best first.
func (b *bench) find(words string, keys ...string) (texts []string) {
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

func (b *bench) want(when, words string, want ...string) {
	b.t.Helper()
	if got := b.find(words); !slices.Equal(got, want) {
		b.t.Errorf("%s %q finds %q, want %q", when, words, got, want)
	}
}

// crowd is so much that an average text is unlike each of them.
func crowd() []string {
	return []string{"the weather is mild", "bring milk and bread", "nobody called today", "we won by two goals", "the printer has no ink"}
}

// A text is found by a misspelled word, which no word of it is, and not without vectors.
func TestMeaningsAreFound(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		b.say(key, append(crowd(), "the lighthouse keeper sleeps")...)
		b.fillWords()
		b.want("without vectors", "lighthousekeepers")
		b.fill()
		b.wantVectors("filled", 6)
		b.want("with vectors", "lighthousekeepers", "the lighthouse keeper sleeps")
		if got := b.find("the lighthouse", "main:test:2"); len(got) > 0 {
			t.Errorf("in another session %q is found", got)
		}
		b.say(key, "a lamp")
		if got := b.find("lamp"); len(got) == 0 || got[0] != "a lamp" {
			t.Errorf("what has no vector yet is not first by its word: %q", got)
		}
		b.use("")
		b.want("with no model", "lighthousekeepers")
	})
}

// While a budget has no room, the provider is not asked, neither for texts nor for a query; words still find. Once it has
// room again, the vectors that are missing are made. The operator is told of both, once.
func TestVectorsWaitForABudget(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		spend := func(all bool) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.spent = all
		}
		b.say(key, append(crowd(), "the lighthouse keeper sleeps")...)
		b.fill()
		spend(true)
		b.provider.Asked() // so far
		b.say(key, "a lamp")
		for range 2 {
			b.fill()
		}
		b.wantVectors("without budget", 6)
		b.want("without budget", "lighthousekeepers")
		b.want("without budget", "lamp", "a lamp")
		if asked := b.provider.Asked(); len(asked) > 0 {
			t.Errorf("without budget, the provider was asked for %q", asked)
		}
		spend(false)
		for range 2 {
			b.fill()
		}
		b.wantVectors("with budget again", 7)
		b.want("with budget again", "lighthousekeepers", "the lighthouse keeper sleeps")
		if log := b.log.String(); strings.Count(log, "is reached; the vectors of what was said wait") != 1 || strings.Count(log, "there is budget again") != 1 {
			t.Errorf("the log says %s", log)
		}
	})
}

func TestMeaningsAreBoundAsQueriesAre(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		b.say(key, append(crowd(), "the lighthouse keeper sleeps")...)
		b.fill()
		for name, c := range map[string]struct {
			q    search.Query
			want int
		}{
			"all":              {search.Query{}, 1},
			"of another turn":  {search.Query{NotTurn: "t1"}, 1},
			"of the same turn": {search.Query{NotTurn: "t6"}, 0},
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

// The vectors of another model, or of another length, are not compared with those of this one.
func TestVectorsOfAnotherModelAreNotMixed(t *testing.T) {
	each(t, func(t *testing.T, b, other *bench) {
		b.say(key, append(crowd(), "the lighthouse keeper sleeps")...)
		b.fill()
		b.use("others")
		b.want("with the vectors of another model", "lighthousekeepers")
		b.want("with the vectors of another model", "lighthouse", "the lighthouse keeper sleeps")
		if _, err := b.Fill(t.Context()); err != nil { // begins anew
			t.Fatal(err)
		}
		b.wantVectors("begun anew", 0)
		if got := other.find("lighthousekeepers"); len(got) > 0 {
			t.Errorf("a process with the model of before finds %q", got)
		}
		b.fill()
		b.wantVectors("made anew", 6)
		if got, want := b.state().Of, (vectors.Identity{Model: "others", Prompt: "plain 1", Dimensions: 256}); got != want {
			t.Errorf("the vectors are of %+v, want %+v", got, want)
		}
		b.want("made anew", "lighthousekeepers", "the lighthouse keeper sleeps")

		b.provider.Resize(100) // the model has another length by now
		b.want("of another length", "lighthousekeepers")
		b.say(key, "a lamp")
		b.fill()
		b.wantVectors("of the new length", 7)
		if got := b.state().Of.Dimensions; got != 100 {
			t.Errorf("the vectors have %d dimensions", got)
		}
		b.want("of the new length", "lighthousekeepers", "the lighthouse keeper sleeps")

		b.provider.Resize(256) // and again: not twice within an hour
		b.say(key, "a bulb")
		b.fillWords()
		if _, err := b.Fill(t.Context()); err == nil || !strings.Contains(err.Error(), "less than an hour ago") {
			t.Errorf("made anew again: %v", err)
		}
		b.wantVectors("that were not made anew", 7)
	})
}

// Two processes with other models do not take turns in making vectors anew for ever.
func TestTwoModelsDoNotPayForEver(t *testing.T) {
	each(t, func(t *testing.T, b, other *bench) {
		b.say(key, crowd()...)
		b.fill()
		other.use("others")
		for range 5 {
			_, _ = b.Fill(t.Context())
			_, _ = other.Fill(t.Context())
		}
		sent := 0
		for _, texts := range b.provider.Asked() {
			sent += len(texts)
		}
		if sent > 2*(5+1)+5*2 { // once each, and what they ask before they begin
			t.Errorf("%d texts were sent", sent)
		}
	})
}

// Whatever erases or changes an entry takes its vector in the same transaction; what is left of it gets a new one.
func TestVectorsGoWithTheirEntries(t *testing.T) {
	each(t, func(t *testing.T, b, other *bench) {
		b.say(key, crowd()...)
		b.say("main:test:2", "the lighthouse keeper sleeps")
		b.fill()
		b.wantVectors("filled", 6)
		b.provider.Asked()
		vector := vectors.Pack(searchtest.VectorOf("the lighthouse keeper sleeps", 256))
		if strings.HasSuffix(b.at, ".db") && !inFiles(t, b.at, vector) {
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
		if strings.HasSuffix(b.at, ".db") && inFiles(t, b.at, vector) {
			t.Error("the vector of what was erased is in a file")
		}
		if got := other.find("lighthousekeepers", "main:test:2"); len(got) > 0 {
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
		b.fill()
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

// inFiles reports whether the files of a SQLite database have these bytes.
func inFiles(t *testing.T, at string, want []byte) bool {
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

// What is erased while the provider is asked gets no vector.
func TestWhatIsErasedMeanwhileGetsNoVector(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		b.say(key, crowd()...)
		b.say("main:test:2", "the lighthouse keeper sleeps")
		b.fill()
		b.say(key, "a lamp")
		b.say("main:test:2", "the keeper has a lamp")
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
		b.fill()
		if !erased {
			t.Fatal("nothing was erased: the test cannot fail")
		}
		b.wantVectors("filled", 5)
	})
}

// A provider that is away, slow, or writes nonsense costs the vectors alone.
func TestAProviderThatFailsCostsTheVectorsAlone(t *testing.T) {
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
	each(t, func(t *testing.T, b, other *bench) {
		b.say(key, append(crowd(), "the lighthouse keeper sleeps")...)
		b.fill()
		b.say(key, "a lamp")
		b.fillWords()
		for name, fault := range faults {
			b.provider.Fail(fault)
			b := newBench(t, b.at, b.store, b.provider)
			began := time.Now()
			b.want("with a provider that is "+name, "lighthouse", "the lighthouse keeper sleeps")
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("%s: the answer takes %s", name, took)
			}
			began = time.Now()
			b.want("again with a provider that is "+name, "lamp", "a lamp")
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
		b.fill()
		b.wantVectors("in the end", 7)
	})
}

// An entry whose text the provider refuses stays without a vector, and keeps none of the others from theirs.
func TestARefusedTextIsLeftOut(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		for range 30 {
			b.say(key, "the lighthouse keeper sleeps")
		}
		b.say(key, append([]string{"this is poison"}, crowd()...)...)
		b.provider.Fail(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			poisoned := slices.Contains(texts, "this is poison")
			if poisoned {
				http.Error(w, `{"error":{"message":"too long"}}`, http.StatusBadRequest)
			}
			return poisoned
		})
		b.fill()
		b.wantVectors("filled", 35)
		if got := b.state(); got.Waiting != 0 {
			t.Errorf("there are the vectors %+v", got)
		}
		if got := b.find("poison"); len(got) == 0 || got[0] != "this is poison" {
			t.Errorf("without a vector it is not first by its words: %q", got)
		}
	})
}

// Of a text that is too long for the model, the vector is made of its beginning, whether or not the provider says what is
// wrong with it; so is that of a query. The others have theirs.
func TestOfATextThatIsTooLongTheBeginningCounts(t *testing.T) {
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
			each(t, func(t *testing.T, b, _ *bench) {
				b.say(key, crowd()...)
				b.say(key, long)
				b.say(key, "a lamp", "a bulb")
				b.provider.Fail(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
					tooLong := slices.ContainsFunc(texts, func(text string) bool { return len(text) > most })
					if tooLong {
						w.WriteHeader(fault.status)
						_, _ = io.WriteString(w, fault.answer)
					}
					return tooLong
				})
				b.fill()
				b.wantVectors("filled", 8)
				if got := b.state(); got.Waiting != 0 {
					t.Errorf("there are the vectors %+v", got)
				}
				if got := b.find("lighthousekeepers"); len(got) == 0 || !strings.HasPrefix(got[0], "the lighthouse keeper sleeps") {
					t.Errorf("found is %q", got)
				}
				if strings.Contains(b.log.String(), "level=WARN") {
					t.Errorf("the operator is told %s", b.log)
				}
			})
		})
	}
}

// A query that is too long for the model is asked by its beginning, and costs the next ones nothing.
func TestOfAQueryThatIsTooLongTheBeginningCounts(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		b.say(key, append(crowd(), "the lighthouse keeper sleeps")...)
		b.fill()
		b.provider.Fail(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			if len(texts[0]) <= 300 {
				return false
			}
			http.Error(w, `{"error":{"message":"too many input tokens"}}`, http.StatusBadRequest)
			return true
		})
		b.want("too long", strings.Repeat("lighthousekeepers ", 60), "the lighthouse keeper sleeps")
		b.want("short", "lighthousekeepers", "the lighthouse keeper sleeps")
		if strings.Contains(b.log.String(), "level=WARN") {
			t.Errorf("the operator is told %s", b.log)
		}
	})
}

// Run tells of a provider that is away once, and makes the vectors once it is there.
func TestRunTellsOnce(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		b.say(key, crowd()...)
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

// A process goes on where another was killed, and no text is sent twice, whoever fills.
func TestMakingVectorsGoesOn(t *testing.T) {
	each(t, func(t *testing.T, b, other *bench) {
		const texts = 300
		for i := range texts {
			b.say(fmt.Sprint("main:test:", i%7), fmt.Sprintf("text number %d", i))
		}
		b.fillWords()
		for i, more := 0, true; more; i++ {
			process := []*bench{b, other}[i%2]
			var err error
			if more, err = process.Fill(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		other.fill()
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

// While one process asks the provider, another does not ask for the same.
func TestOneProcessAtATimeMakesVectors(t *testing.T) {
	each(t, func(t *testing.T, b, other *bench) {
		b.say(key, crowd()...)
		b.fill()
		b.say(key, "a lamp")
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
		b.fill()
		b.wantVectors("filled", 6)
	})
}

// overtake ends the time that a process has for making vectors alone, and has another one make some.
func overtake(t *testing.T, other *bench) {
	t.Helper()
	db, err := sqldb.OpenAt(t.Context(), other.at, sqlstore.Schema())
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

// A process that was overtaken while it asked the provider changes nothing: neither what a process with another model
// has made, nor what is left for it to make.
func TestWhoWasOvertakenChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, b, other *bench) {
		b.say(key, crowd()...)
		b.fillWords()
		overtaken := 0
		b.provider.Fail(func(_ http.ResponseWriter, r *http.Request, texts []string) bool {
			if overtaken++; overtaken == 1 {
				other.use("others")
				overtake(t, other) // it begins anew
				overtake(t, other) // and makes the vectors
			}
			return false
		})
		if more, err := b.Fill(t.Context()); more || err != nil { // would begin anew
			t.Errorf("who was overtaken: %v, %v", more, err)
		}
		b.wantVectors("of the other process", 5)
		b.use("others")
		b.say(key, "a lamp")
		b.fillWords()
		overtaken = 0
		b.provider.Fail(func(_ http.ResponseWriter, r *http.Request, texts []string) bool {
			if overtaken++; overtaken == 1 {
				b.use("third")
				other.use("third")
				overtake(t, other) // begins anew, and has made no vector yet
			}
			return false
		})
		if more, err := b.Fill(t.Context()); more || err != nil {
			t.Errorf("who was overtaken: %v, %v", more, err)
		}
		b.wantVectors("begun anew by the other process", 0)
		if got := b.state(); got.Of.Model != "third" || got.Waiting != 6 {
			t.Errorf("there are the vectors %+v", got)
		}
		other.fill()
		b.wantVectors("in the end", 6)
	})
}

// Neither a text nor a query is sent with a secret in it.
func TestSecretsAreNotSent(t *testing.T) {
	each(t, func(t *testing.T, b, _ *bench) {
		b.say(key, "the password is sesame", strings.Repeat("x", 1497)+"sesame") // half of it is in what is sent
		b.fill()
		b.find("is it sesame")
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

// Questions about a year of messages are answered as well with vectors as without, on the way by HTTP. The vectors are no
// model's: this says nothing about how much better the order gets.
func TestAnswersAreAmongTheFirstHitsWithVectors(t *testing.T) {
	if testrace.Elsewhere(t) {
		return
	}
	each(t, func(t *testing.T, b, _ *bench) {
		loaded := searchtest.Load(t, b.store)
		b.fill()
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
	for _, none := range [][]float32{nil, {}, {0, 0}, {1, float32(math.NaN())}, {float32(math.Inf(1))}, make([]float32, vectors.MostDimensions+1)} {
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
