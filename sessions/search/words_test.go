package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/sessions"
)

func exactForms(text string) string {
	var all []string
	for t := range tokens(text) {
		all = append(all, t.exact)
	}
	return strings.Join(all, " ")
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"Hello, World!":                   "hello world",
		"Zürich, STRASSE straße Ærø":      "zurich strasse strasse aero",
		"foo_bar.go":                      "foo bar go foobargo",
		"getUserName 10kg v2":             "getusername get user name 10kg 10 kg v2",
		"1,234.50 and a,b":                "1 234 50 123450 and a b",
		"Anna's don’t":                    "anna annas don dont",
		"https://a.example/x?q=1":         "https a example x aexamplex q 1",
		"北京市":                             "北 北京 京 京市 市",
		"東京タワー":                           "東 東京 京 京タ タワ ワー",
		"ひ":                               "ひ",
		"x北京y":                            "x 北 北京 京 y",
		"が":                               "が", // the mark is part of the letter
		"e\u0301te\u0301":                 "ete",
		"--- ... \x00\xff":                "",
		strings.Repeat("a", 500) + " end": "end",
	} {
		if got := exactForms(text); got != want {
			t.Errorf("%.40q is cut into %q, want %q", text, got, want)
		}
	}
}

func TestFormsOfOneWordHaveOneStem(t *testing.T) {
	for _, same := range []string{
		"box boxes", "invoice invoices", "city cities", "house houses", "church churches", "plan planned planning plans", "book booked booking",
		"haus hauser", "rechnung rechnungen", "katze katzen", "kind kinder kindern", "auto autos", "termin termine terminen", "freundin freundinnen",
		"apfel", "bus", "class", "analysis",
	} {
		words := strings.Fields(same)
		for _, w := range words {
			if stem(w) != stem(words[0]) {
				t.Errorf("%s has the form %s, and %s has %s", w, stem(w), words[0], stem(words[0]))
			}
		}
	}
	for _, other := range []string{"bus but", "sing sie", "need nee", "red re", "und uns", "press pres", "tee ten"} {
		a, b, _ := strings.Cut(other, " ")
		if stem(a) == stem(b) {
			t.Errorf("%s and %s have the same form %s", a, b, stem(a))
		}
	}
}

func TestWordsOfAQuery(t *testing.T) {
	query := func(text string) (all []string) {
		for _, w := range WordsOf(text) {
			all = append(all, strings.Join(w.Forms, "|"))
		}
		return all
	}
	for text, want := range map[string]string{
		"Where is the München invoice?": "munch|muench invoic",
		"Muenchen":                      "muench|munch",
		"who are you":                   "who are you",
		"box boxes BOX":                 "box",
		"":                              "",
	} {
		if got := strings.Join(query(text), " "); got != want {
			t.Errorf("%q has the words %q, want %q", text, got, want)
		}
	}
	var long strings.Builder
	for i := range 500 {
		fmt.Fprintf(&long, "word%dx ", i)
	}
	if n := len(query(long.String())); n != MaxWords {
		t.Errorf("a long query has %d words", n)
	}
	if n := len(query(strings.Repeat("the who are ", 90))); n != 3 {
		t.Errorf("common words are %d", n)
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range []string{"Zürich foo_bar", "北京 x9y", "\xff\x00'’-", "e\u0301ﬁﬀ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last := 0
		for tok := range tokens(text) {
			if tok.from < 0 || tok.to > len(text) || tok.from >= tok.to || tok.to < last-longestToken*8 {
				t.Fatalf("%+v in %q", tok, text)
			}
			last = tok.to
			if strings.ContainsAny(string(keyOf(tok.stemmed)), " x'\"") || len(keyOf(tok.stemmed)) != 8 {
				t.Fatalf("the key %q", keyOf(tok.stemmed))
			}
		}
		c := newCandidate(searchedSession{}, newUserEntry(sessions.User{Text: text + strings.Repeat(" filler", 200) + text}), WordsOf(text))
		if p := c.passage(make([]float64, MaxWords)); len(p) > MaxPassage || utf8.ValidString(text) && !utf8.ValidString(p) {
			t.Fatalf("the passage %q", p)
		}
	})
}

func newUserEntry(u sessions.User) sessions.Entry {
	e, err := sessions.NewEntry("t", sessions.KindUser, u)
	if err != nil {
		panic(err)
	}
	e.At = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	return e
}

func TestTheNewerOfTwoEqualTextsIsKept(t *testing.T) {
	words := WordsOf("cheese cake")
	var found []candidate
	for i, text := range []string{"a cheese cake", "cheese", "A  CHEESE cake", "cake with cheese"} {
		e := newUserEntry(sessions.User{Text: text})
		e.N, e.At = int64(i), e.At.Add(time.Duration(i)*time.Hour)
		found = append(found, newCandidate(searchedSession{}, e, words))
	}
	var got []int64
	for _, c := range rank(found, words, []float64{1, 1}, time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), 9) {
		got = append(got, c.N)
	}
	if !slices.Equal(got, []int64{2, 3, 1}) {
		t.Errorf("the order is %v", got)
	}
}

func TestUntrustedContent(t *testing.T) {
	for _, tt := range []struct {
		u    sessions.User
		want bool
	}{
		{sessions.User{Text: "x"}, false},
		{sessions.User{Text: "x", Untrusted: true}, true},
		{sessions.User{Text: "x", Quotes: []sessions.Quote{{Kind: "forwarded", Person: "b", Text: "y"}}}, true},
		{sessions.User{Text: "x", Quotes: []sessions.Quote{{Kind: "answered", Person: "a", Text: "y"}}}, false},
		{sessions.User{Text: "x", Quotes: []sessions.Quote{{Kind: "told", Own: true, Text: "y"}}}, false},
		{sessions.User{Text: "x", Quotes: []sessions.Quote{{Kind: "answered", Own: true, Text: "y"}}}, true},
	} {
		e := newUserEntry(tt.u)
		e.Person = "a"
		if got := contentOf(e).untrusted; got != tt.want {
			t.Errorf("%+v: %t", tt.u, got)
		}
	}
}

func TestTextsOfResults(t *testing.T) {
	for content, want := range map[string]string{
		`"plain"`: "plain", `{"a":"x","b":["y",{"c":"z","d":1}],"e":null,"f":true,"g":""}`: "x\ny\nz", `[]`: "", `7`: "", `{"a":`: "", "": "", `[["a"],"b"]`: "a\nb",
		`{"a":{"b":"c"},"d":"e"}`: "c\ne",
	} {
		if got := textsIn([]byte(content)); got != want {
			t.Errorf("%s has the texts %q, want %q", content, got, want)
		}
	}
	long := contentOf(sessions.Entry{Kind: sessions.KindToolResult, Data: []byte(`{"content":"begin ` + strings.Repeat("ä", 30_000) + ` end"}`)}).text
	if len(long) > headResultBytes+10 || !strings.HasPrefix(long, "begin") || !strings.HasSuffix(long, "end") || !utf8.ValidString(long) {
		t.Errorf("of a long result %d bytes are left", len(long))
	}
}

// hasWords returns true exactly for the entries for which wordsOf returns words.
func TestWhichEntriesHaveWords(t *testing.T) {
	for _, data := range []any{
		sessions.User{}, sessions.User{Text: "hello"}, sessions.User{Text: "... \x00"}, sessions.User{Name: "Anna"}, sessions.User{Name: "Anna", Text: "!"},
		sessions.User{Text: strings.Repeat("a", 500)}, sessions.User{Text: "s", Deleted: true}, sessions.User{Quotes: []sessions.Quote{{Text: "x"}}},
		sessions.User{Text: "北"}, sessions.User{Text: "\u0301"}, sessions.User{Text: "---" + strings.Repeat("b", 100)}, 7,
	} {
		e, err := sessions.NewEntry("t", sessions.KindUser, data)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := hasWords(e), wordsOf(e) != ""; got != want {
			t.Errorf("%+v has words: %v, want %v", data, got, want)
		}
	}
}
