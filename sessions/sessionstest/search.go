package sessionstest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/search"
	"parley/tools/testrace"
)

func searchTests() []test {
	both := func(promise string, run func(*testing.T, place, func(Store))) []test {
		return []test{
			{promise + ", before it is in the index", func(t *testing.T, p place) { run(t, p, func(Store) {}) }},
			{promise + ", once it is", func(t *testing.T, p place) { run(t, p, func(s Store) { fillIndex(t, s) }) }},
		}
	}
	return slices.Concat(
		both("what is said is found by each of its forms", testSearchForms),
		both("each kind of entry with words is found, with who, when and where", testSearchKinds),
		both("what is erased is not found", testSearchErased),
		both("only the sessions that are given are looked through", testSearchScope),
		both("a time and a number of hits bound what is found", testSearchBounds),
		both("the turn that asks is left out, and takes no place of what was said before", testSearchNotTurn),
		both("what was said before a conversation begins anew is found", testSearchBeforeNew),
		both("an append that is repeated is found once, and so is a text that is said again", testSearchOnce),
		both("more and rarer words, closer together, come first", testSearchOrder),
		[]test{
			{"an index is filled on by whichever process, and then has everything once", testFillResumed},
			{"an index that is filled while people write and erase has what is there", testFillBeside},
			{"an index that is rebuilt finds everything meanwhile", testSearchRebuilt},
			{"an index has nothing of what is erased in any file", testSearchTraces},
			{"a passage is a part of a long text with the words", testSearchPassage},
			{"the sessions in which people have spoken are known", testSpoken},
		},
	)
}

// fillIndex fills the index until nothing is left.
func fillIndex(t testing.TB, s Store) {
	t.Helper()
	for {
		more, err := s.Words().Fill(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// findEntries returns the numbers of the entries that a query finds in sessions, the best first, with the session if there
// are several.
func findEntries(t testing.TB, s Store, words string, keys ...string) (found []string) {
	t.Helper()
	hits, err := s.Words().Search(t.Context(), search.Query{Words: words, Sessions: keys, Limit: search.MaxHits})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hits {
		name := fmt.Sprint(h.N)
		if len(keys) > 1 {
			name = h.Session + " " + name
		}
		found = append(found, name)
	}
	return found
}

func wantFound(t testing.TB, s Store, words string, want ...string) {
	t.Helper()
	if got := findEntries(t, s, words, key); !slices.Equal(got, want) {
		t.Errorf("%q finds the entries %v, want %v", words, got, want)
	}
}

func testSearchForms(t *testing.T, p place, then func(Store)) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	texts := map[string][]string{ // by text, the queries that find it
		"Wir fahren nach Zürich zur Straße":   {"zürich", "ZURICH", "zuerich", "strasse"},
		"Meet Mueller in the harbour":         {"Müller", "mueller"},
		"the two boxes of invoices are here":  {"box", "invoice", "Boxes"},
		"die Häuser und die Rechnungen":       {"Haus", "rechnung", "haeuser"},
		"error ERR_4711 in /var/log/syslog.1": {"err_4711", "4711", "syslog", "var/log"},
		"call getUserName or foo-bar":         {"username getusername", "foobar", "foo bar"},
		"it costs 1,250.50 euro":              {"125050", "1,250.50"},
		"我们明天去北京的图书馆":                         {"北京", "图书馆", "馆"},
		"明日は東京タワーに行きます":                       {"東京タワー", "タワー"},
		"พรุ่งนี้ไปเชียงใหม่":                 {"เชียงใหม่"},
		"내일 회의는 서울에서 합니다":                     {"서울", "회의"},
		"Ещё одна Ёлка":                       {"ёлка", "елка"},
		"ＦＵＬＬＷＩＤＴＨ ｶﾀｶﾅ":                      {"fullwidth"},
		"Anna's x\x00y \u202eodd\u202c bytes": {"odd", "annas"},
	}
	for text := range texts {
		n := l.Next()
		mustAppend(t, l, said("t", fmt.Sprint("m", n), text))
	}
	then(s)
	at := map[string]string{}
	for _, e := range readLog(t, s, key) {
		if u, err := sessions.Decode[sessions.User](e); err == nil {
			at[u.Text] = fmt.Sprint(e.N)
		}
	}
	for text, queries := range texts {
		for _, q := range queries {
			if got := findEntries(t, s, q, key); len(got) == 0 || got[0] != at[text] {
				t.Errorf("%q finds %v, want %s first: %q", q, got, at[text], text)
			}
		}
	}
	for _, q := range []string{"", " . ", "nothingofthis", "\x00", "\" *", "'", "(", "§"} {
		if got := findEntries(t, s, q, key); len(got) != 0 {
			t.Errorf("%q finds %v", q, got)
		}
	}
}

func testSearchKinds(t *testing.T, p place, then func(Store)) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	at := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	user := withPerson(anna, entry("t1", sessions.KindUser, sessions.User{Name: "Anna", Text: "alpha", Quotes: []sessions.Quote{{Kind: "forwarded", Person: berta, Text: "beta"}}}))
	user.At, user.Cause = at, "m1"
	use := entry("t1", sessions.KindToolUse, sessions.ToolUse{Name: "web_fetch", Args: []byte(`{"url":"omega"}`)})
	use.Call = "c1"
	result := entry("t1", sessions.KindToolResult, sessions.ToolResult{Content: []byte(`{"page":{"title":"gamma","n":7,"lines":["delta \"quoted\"",null]}}`), Untrusted: true})
	result.Call = "c1"
	mustAppend(t, l, user, use, result, replied("t1", "epsilon"),
		entry("t1", sessions.KindSummary, sessions.Summary{Text: "zeta"}),
		withPerson(anna, entry("t2", sessions.KindNotice, sessions.Notice{Text: "omega", MessageID: "m0", Quotes: []sessions.Quote{{Kind: "edited", Person: anna, Text: "eta"}}})),
		withPerson(anna, entry("t2", sessions.KindAttached, sessions.Attached{Message: "m1", Name: "theta_plan.pdf", Kind: "file", Ref: "omega"})),
		withPerson(anna, entry("t2", sessions.KindFetched, sessions.Fetched{Attached: 7, Message: "m1", SpokenWords: "iota"})),
		entry("t2", sessions.KindThinking, sessions.Thinking{Text: "omega"}),
		withPerson(anna, entry("t2", sessions.KindNotice, episodeOf("kappa").Notice("m1"))),
		entry("t2", sessions.KindText, 7), // the data contains no text
		entry("t2", "of a newer release", sessions.Text{Text: "omega"}))
	then(s)
	messages := map[string]string{"alpha": "m1", "beta": "m1", "eta": "m0", "theta": "m1", "iota": "m1", "kappa": "m1"} // for all other entries, it is the message of their turn
	for words, want := range map[string]string{
		"alpha": `1 user t1 telegram:7 Anna "" untrusted`, "beta": `1 user t1 telegram:7 Anna "" untrusted`, "delta": `3 tool_result t1   "web_fetch" untrusted`,
		"gamma": `3 tool_result t1   "web_fetch" untrusted`, "epsilon": `4 text t1   "" `, "zeta": `5 summary t1   "" `,
		"eta": `6 notice t2 telegram:7  "" `, "theta": `7 attached t2 telegram:7  "" `, "iota": `8 fetched t2 telegram:7  "" `,
		"kappa": `10 notice t2 telegram:7  "" untrusted`,
	} {
		hits, err := s.Words().Search(t.Context(), search.Query{Words: words, Sessions: []string{key}})
		if err != nil || len(hits) != 1 {
			t.Errorf("%s: %d hits, %v", words, len(hits), err)
			continue
		}
		h, untrusted := hits[0], ""
		if h.Untrusted {
			untrusted = "untrusted"
		}
		if got := fmt.Sprintf("%d %s %s %s %s %q %s", h.N, h.Kind, h.Turn, h.Person, h.Name, h.Tool, untrusted); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
		if want := cmp.Or(messages[words], "t1"); h.Message != want || h.Link != "" {
			t.Errorf("%s: it is of message %q at %q, want %q", words, h.Message, h.Link, want)
		}
		if h.Session != key || !strings.Contains(h.Text, words) {
			t.Errorf("%s is in the text %q of %s", words, h.Text, h.Session)
		}
		if h.Episode != (h.N == 10) {
			t.Errorf("%s is in an episode: %v", words, h.Episode)
		}
		if h.N == 1 && !h.At.Equal(at) {
			t.Errorf("said at %s, want %s", h.At, at)
		}
	}
	for _, nowhere := range []string{"omega", "title", "page"} {
		wantFound(t, s, nowhere)
	}
}

// episodeOf returns the episode of a turn in which somebody has asked for something.
func episodeOf(asked string) sessions.Episode {
	return sessions.Episode{Entry: 1, Question: asked, Deeds: []sessions.Deed{{Tool: "exec", Calls: 1}}, Untrusted: true}
}

func testSearchErased(t *testing.T, p place, then func(Store)) {
	s := p.open()
	const words = "paprika"
	session := func(n int, entries ...sessions.Entry) (string, sessions.Log) {
		key := fmt.Sprint("main:telegram:", n)
		l := openLog(t, s, key, clockFence())
		mustAppend(t, l, entries...)
		return key, l
	}
	old := wholeTurn(berta, "o1", words)
	for i := range old {
		old[i].At = time.Now().Add(-48 * time.Hour)
	}
	whole, _ := session(1, wholeTurn(berta, "w1", words)...)
	shared, _ := session(2, slices.Concat(wholeTurn(anna, "a1", words), wholeTurn(berta, "b1", words))...)
	before, _ := session(3, slices.Concat(old, wholeTurn(berta, "b2", words))...)
	edit := withPerson(berta, entry("e1", sessions.KindNotice, sessions.Notice{Code: "edited", MessageID: "b3", Quotes: []sessions.Quote{{Kind: "edited", Person: berta, Text: words + " again"}}}))
	message, l := session(4, slices.Concat(wholeTurn(berta, "b3", words), []sessions.Entry{edit, entry("b3", sessions.KindNotice, episodeOf(words).Notice("b3"))})...)
	then(s)
	want := func(when, key string, entries ...string) {
		t.Helper()
		got := findEntries(t, s, words, key)
		if slices.Sort(got); !slices.Equal(got, entries) {
			t.Errorf("%s %s has the entries %v, want %v", when, key, got, entries)
		}
	}
	want("at first", whole, "2", "3")
	want("at first", shared, "6", "7") // the entries of the first turn have the same texts
	want("at first", before, "6", "7")
	want("at first", message, "2", "3", "5", "6")
	if err := l.(sessions.MessageEraser).EraseMessage(t.Context(), "b3"); err != nil { //nolint:forcetypeassert // every log in this suite is one
		t.Fatal(err)
	}
	want("without a message", message, "3")
	if _, err := s.EraseSession(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	want("erased", whole)
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	want("without a person", shared, "6", "7")
	if _, err := s.EraseBefore(t.Context(), time.Now().Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	want("without what is old", before, "6", "7")
	if _, err := s.ErasePerson(t.Context(), berta); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{whole, shared, before, message} {
		want("without anybody", key)
	}
	fillIndex(t, s)
	wantState(t, s, search.State{})
}

// wantState fails the test unless the index has this many rows, and nothing is missing.
func wantState(t testing.TB, s Store, want search.State) {
	t.Helper()
	if got, err := s.Words().State(t.Context()); err != nil || got != want {
		t.Errorf("the index has %+v, %v, want %+v", got, err, want)
	}
}

func testSearchScope(t *testing.T, p place, then func(Store)) {
	s := p.open()
	const n = 90 // more sessions than one scan searches
	var keys []string
	for i := range n {
		key := fmt.Sprint("main:telegram:", i)
		keys = append(keys, key)
		mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, fmt.Sprint("t", i), fmt.Sprintf("banana number n%d of the garden", i))...)
	}
	then(s)
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // it is no secret
	words := strings.Fields("banana number garden n7 n21 n39 about BANANAS gärten unknown")
	queries := 1000
	if testrace.Raced { // the race detector makes each search take ten times as long
		queries = 200
	}
	for range queries {
		given := []string{}
		for _, i := range random.Perm(n)[:random.IntN(n)] {
			given = append(given, keys[i])
		}
		random.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		q := search.Query{Words: strings.Join(words[:1+random.IntN(4)], " "), Sessions: given, Limit: 50}
		hits, err := s.Words().Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hits {
			if !slices.Contains(given, h.Session) {
				t.Fatalf("%+v finds %+v", q, h)
			}
		}
		if strings.Contains(strings.ToLower(q.Words), "banana") && len(given) > 0 && len(hits) == 0 {
			t.Fatalf("%+v finds nothing", q)
		}
	}
	if got := findEntries(t, s, "n21", keys...); !slices.Contains(got, keys[21]+" 2") || len(got) != 2 {
		t.Errorf("among all: %v", got)
	}
	for _, none := range [][]string{nil, {"main:telegram:unknown"}, {"no key"}, {""}, {"\x00"}} {
		if got := findEntries(t, s, "banana", none...); len(got) > 0 {
			t.Errorf("in %q: %v", none, got)
		}
	}
}

func testSearchBounds(t *testing.T, p place, then func(Store)) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	day := func(n int) time.Time { return time.Date(2026, 5, n, 0, 0, 0, 0, time.UTC) }
	for n := 1; n <= 9; n++ {
		e := said("t", fmt.Sprint("m", n), fmt.Sprint("cherry of day number", n))
		e.At = day(n)
		mustAppend(t, l, e)
	}
	then(s)
	for _, tt := range []struct {
		q    search.Query
		want []int64
	}{
		{search.Query{Since: day(8)}, []int64{9, 8}},
		{search.Query{Until: day(3)}, []int64{2, 1}},
		{search.Query{Since: day(4), Until: day(6)}, []int64{5, 4}},
		{search.Query{Since: day(4), Until: day(4)}, nil},
		{search.Query{Limit: 3}, []int64{9, 8, 7}},
		{search.Query{Since: day(2), Limit: 1}, []int64{9}},
	} {
		tt.q.Words, tt.q.Sessions = "cherry", []string{key}
		hits, err := s.Words().Search(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, h := range hits {
			got = append(got, h.N)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v finds %v, want %v", tt.q, got, tt.want)
		}
	}
}

func testSearchNotTurn(t *testing.T, p place, then func(Store)) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	mustAppend(t, l, said("t1", "m1", "the loquat grows behind the shed"), said("t3", "m3", "where does the loquat grow?"))
	for i := range 20 {
		mustAppend(t, l, said("t4", fmt.Sprint("m4-", i), fmt.Sprint("loquat loquat ", i)))
	}
	mustAppend(t, l, said("t4", "m4", "where does the loquat grow?"))
	then(s)
	for _, tt := range []struct {
		turn  string
		limit int
		want  []int64
	}{
		{"t4", 1, []int64{2}}, {"t4", 5, []int64{2, 1}}, {"t1", 1, []int64{23}}, {"", 1, []int64{23}},
	} {
		hits, err := s.Words().Search(t.Context(), search.Query{Words: "where does the loquat grow?", Sessions: []string{key}, Limit: tt.limit, ExcludedTurn: tt.turn})
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, h := range hits {
			got = append(got, h.N)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("without turn %q, at most %d: %v, want %v", tt.turn, tt.limit, got, tt.want)
		}
	}
}

func testSearchBeforeNew(t *testing.T, p place, then func(Store)) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	mustAppend(t, l, wholeTurn(anna, "a1", "the walnut tree")...)
	appendNew(t, l, "n1")
	mustAppend(t, l, wholeTurn(anna, "a2", "the hazel bush")...)
	then(s)
	wantFound(t, s, "walnut", "2", "3")
}

func testSearchOnce(t *testing.T, p place, then func(Store)) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	entries := []sessions.Entry{said("t1", "m1", "the chestnut"), replied("t1", "yes, roasted")}
	again := withoutNumbers(entries)
	mustAppend(t, l, entries...)
	then(s)
	if err := l.Append(t.Context(), 1, again...); err != nil {
		t.Fatal(err)
	}
	wantFound(t, s, "chestnut", "1")
	mustAppend(t, l.(sessions.SoonLog).Soon(time.Hour), said("t2", "m2", "The  Chestnut"), said("t3", "m3", "the other chestnut")) //nolint:forcetypeassert // every log in this suite is one
	wantFound(t, s, "chestnut", "4", "3")
	fillIndex(t, s)
	wantState(t, s, search.State{Indexed: 4})
}

func testSearchOrder(t *testing.T, p place, then func(Store)) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	texts := []string{
		"the plum is in the kitchen and somewhere far behind all of these many other words stands, after yet more of them, a teapot",
		"the teapot alone", "a plum alone", "plum", "the plum teapot", "plum and pear", "plum and apple",
	}
	for i, text := range texts {
		mustAppend(t, l, said("t", fmt.Sprint("m", i), text))
	}
	then(s)
	got := findEntries(t, s, "Where is the plum teapot?", key)
	if len(got) != len(texts) || got[0] != "5" || got[1] != "1" || got[2] != "2" {
		t.Errorf("the order is %v", got)
	}
}

func testFillResumed(t *testing.T, p place) {
	s := p.open()
	var keys []string
	for i := range 7 {
		key := fmt.Sprint("main:telegram:", i)
		keys = append(keys, key)
		l := openLog(t, s, key, clockFence())
		for j := range 10 {
			mustAppend(t, l, wholeTurn(anna, fmt.Sprint("t", j), fmt.Sprintf("quince q%dx%d", i, j))...)
		}
	}
	wantState(t, s, search.State{Unindexed: 7 * 40})
	for i := 0; ; i++ {
		stores := p.stores()
		more, err := stores[i%2].Words().Fill(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := findEntries(t, stores[0], "quince", keys...); len(got) != search.MaxHits {
			t.Fatalf("meanwhile %d are found", len(got))
		}
		if !more {
			if i < 2 {
				t.Errorf("it was filled by %d calls", i)
			}
			break
		}
		if err := stores[1].Close(); err != nil { // the next process knows only what is in the tables
			t.Fatal(err)
		}
	}
	s = p.open()
	wantState(t, s, search.State{Indexed: 7 * 20})
	for i, key := range keys {
		if got := findEntries(t, s, fmt.Sprintf("q%dx3", i), key); len(got) != 2 {
			t.Errorf("in %s %v", key, got)
		}
	}
}

func testFillBeside(t *testing.T, p place) {
	stores := p.stores()
	s := stores[0]
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := stores[1].Words().Fill(t.Context()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	var keys []string
	for i := range 12 {
		key := fmt.Sprint("main:telegram:", i)
		keys = append(keys, key)
		l := openLog(t, s, key, clockFence())
		for j := range 4 {
			mustAppend(t, l, wholeTurn(anna, fmt.Sprint("a", j), "rhubarb of anna")...)
			mustAppend(t, l, wholeTurn(berta, fmt.Sprint("b", j), fmt.Sprint("gooseberry of berta ", j))...)
		}
		if i%3 == 0 {
			if _, err := s.EraseSession(t.Context(), key); err != nil {
				t.Error(err)
			}
			mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(berta, "b9", "gooseberry of berta")...)
		}
	}
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Error(err)
	}
	stop()
	wg.Wait()
	if got := findEntries(t, s, "rhubarb", keys...); len(got) > 0 {
		t.Errorf("of anna is found: %v", got)
	}
	fillIndex(t, s)
	wantState(t, s, search.State{Indexed: 4*2 + 8*4*2})
	if got := findEntries(t, s, "rhubarb", keys...); len(got) > 0 {
		t.Errorf("of anna is found once the index is filled: %v", got)
	}
	if got := findEntries(t, s, "gooseberry", keys[1]); len(got) != 8 {
		t.Errorf("of berta is found: %v", got)
	}
}

func testSearchRebuilt(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	for i := range 100 {
		mustAppend(t, l, wholeTurn(anna, fmt.Sprint("t", i), fmt.Sprintf("medlar m%d", i))...)
	}
	fillIndex(t, s)
	wantState(t, s, search.State{Indexed: 200})
	// Small additions don't cause the index to be filled without a pause.
	mustAppend(t, l, said("t", "m-last", "a short one"))
	if more, err := s.Words().Fill(t.Context()); err != nil || more {
		t.Errorf("after one more message there may be more to fill: %v, %v", more, err)
	}
	if err := s.Words().Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	for calls := 0; ; calls++ {
		if got := findEntries(t, s, "m5", key); len(got) != 2 {
			t.Fatalf("after %d calls %v are found", calls, got)
		}
		more, err := s.Words().Fill(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	wantState(t, s, search.State{Indexed: 201})
}

func testSearchTraces(t *testing.T, p place) {
	if p.harness.Files == nil {
		t.Skip("a server keeps the files")
	}
	s := p.open()
	l := openLog(t, s, key, clockFence())
	const text = "Xylophonist Querschlägers"
	mustAppend(t, l, wholeTurn(anna, "a1", text)...)
	fillIndex(t, s)
	other := openLog(t, s, otherKey, clockFence())
	for i := range 60 { // so many that the index does not merge its segments because of the erasure
		mustAppend(t, other, wholeTurn(berta, fmt.Sprint("b", i), fmt.Sprintf("something else e%d", i))...)
	}
	fillIndex(t, s)
	if len(findEntries(t, s, "xylophonist", key)) == 0 {
		t.Fatal("it is not found: the test cannot fail")
	}
	var words, keys []string
	for _, w := range search.WordsOf(text) {
		keys = append(keys, search.KeyOf(w.Forms[0])[2:]) // the index omits the prefix that a word has in common with the word before
		words = append(words, append(w.Forms, w.Exact)...)
	}
	words = slices.Concat(words, keys, []string{text, "Xylophonist", "Querschl"})
	traces := func() (found []string) {
		for _, w := range words {
			if p.countInFiles(w) > 0 {
				found = append(found, w)
			}
		}
		return found
	}
	if found := traces(); !slices.Contains(found, keys[0]) || !slices.Contains(found, text) {
		t.Fatalf("only traces of %q are found before: the test cannot fail", found)
	}
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if got := traces(); len(got) > 0 {
		t.Errorf("there are traces of %q", got)
	}
}

func testSearchPassage(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	filler := strings.Repeat("größere Wörter über Bäume. ", 200)
	mustAppend(t, l, said("t", "m1", filler+"The safe opens with the number of the old lighthouse. "+filler))
	hits, err := s.Words().Search(t.Context(), search.Query{Words: "lighthouse safe", Sessions: []string{key}})
	if err != nil || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	text := hits[0].Text
	if len(text) > search.MaxPassage || len(text) < search.MaxPassage/2 || !strings.Contains(text, "safe opens with the number of the old lighthouse.") || strings.Contains(text, "\uFFFD") {
		t.Errorf("the passage is %q", text)
	}
}

func testSpoken(t *testing.T, p place) {
	s := p.open()
	say := func(key, person string) {
		l := openLog(t, s, key, clockFence())
		mustAppend(t, l, wholeTurn(person, fmt.Sprint("t", l.Next()), "hello")...)
	}
	for i := range 5 {
		say(fmt.Sprint("main:telegram:", i), anna)
	}
	say("other:telegram:0", anna)
	say("main:telegram:1", berta)
	say("main:telegram:9", berta)
	l := openLog(t, s, "main:telegram:8", clockFence())
	mustAppend(t, l, withPerson(anna, entry("n", sessions.KindNotice, sessions.Notice{Text: "on her behalf"})))
	for _, tt := range []struct {
		people []string
		limit  int
		want   string
	}{
		{[]string{anna}, 9, "main:telegram:1 main:telegram:4 main:telegram:3 main:telegram:2 main:telegram:0"},
		{[]string{anna}, 2, "main:telegram:1 main:telegram:4"},
		{[]string{anna, berta}, 3, "main:telegram:9 main:telegram:1 main:telegram:4"},
		{[]string{"", "telegram:0"}, 3, ""}, {nil, 3, ""}, {[]string{anna}, 0, ""},
	} {
		got, err := s.Words().SessionsSpokenIn(t.Context(), "main", tt.people, tt.limit)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("of %q at most %d: %q, %v, want %q", tt.people, tt.limit, got, err, tt.want)
		}
	}
}
