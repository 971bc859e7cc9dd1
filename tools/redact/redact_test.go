package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"parley/tools/plainjson"
)

// testSecret has characters that each encoding writes differently.
const testSecret = `hunter2/+"<&> pass\word`

// sampleTokens returns tokens in the forms of various services; none of them is real. They are put together here so
// that no scanner takes this file for a leak.
func sampleTokens() []string {
	x := func(n int) string { return strings.Repeat("aB3", n)[:n] }
	return []string{
		"ghp" + "_" + x(36), "github" + "_pat_" + x(60), "xox" + "b-1234567890-" + x(24), "xapp" + "-1-A1-" + x(40), "AKIA" + "ABCDEFGHIJ234567",
		"sk" + "-proj-" + x(48), "glpat" + "-" + x(20), "AIza" + x(35), "npm" + "_" + x(36), "hf" + "_" + x(34), "123456789" + ":AA" + x(33),
		"eyJ" + x(40) + ".eyJ" + x(40) + "." + x(30), "SG" + "." + x(22) + "." + x(43),
		"-----BEGIN " + "RSA PRIVATE KEY-----\n" + x(64) + "\n" + x(30) + "\n-----END RSA PRIVATE KEY-----",
	}
}

func newRedactor(t testing.TB, patterns ...string) *Redactor {
	t.Helper()
	r, err := New([]string{testSecret, "short", "", "another-secret-value"}, patterns)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encodings(s string) map[string]string {
	quoted, _ := json.Marshal(s)
	twice, _ := json.Marshal(string(quoted))
	return map[string]string{
		"plain": s, "JSON": string(quoted), "JSON in JSON": string(twice), "query": url.QueryEscape(s), "path": url.PathEscape(s), "hex": hex.EncodeToString([]byte(s)),
		"base64": base64.StdEncoding.EncodeToString([]byte(s)), "base64, one on": base64.StdEncoding.EncodeToString([]byte("x" + s + "y")),
		"base64, two on": base64.URLEncoding.EncodeToString([]byte("xy" + s)), "basic": base64.StdEncoding.EncodeToString([]byte("user:" + s)),
	}
}

func TestKnownSecrets(t *testing.T) {
	r := newRedactor(t)
	for name, text := range encodings(testSecret) {
		got := r.Text("before " + text + " after")
		if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, Redacted) || strings.Contains(got, text) || len(got) > len("before  after")+len(Redacted)+16 {
			t.Errorf("%s: %s", name, got)
		}
		raw, err := json.Marshal(map[string]any{"stdout": "a\n" + text, "list": []string{text}, text: 1})
		if err != nil {
			t.Fatal(err)
		}
		made := r.JSON(raw)
		if !json.Valid(made) || strings.Count(string(made), Redacted) < 3 || strings.Contains(string(made), strings.Trim(text, `"`)) {
			t.Errorf("%s in JSON: %s", name, made)
		}
	}
	for _, plain := range []string{"short", "hunter2", "", "x", "another-secret-valu"} {
		if got := r.Text(plain); got != plain {
			t.Errorf("%q is %q", plain, got)
		}
	}
}

func TestTokens(t *testing.T) {
	r := newRedactor(t)
	for _, token := range sampleTokens() {
		for _, around := range [][2]string{{"", ""}, {"x=", ";"}, {"https://u:", "@host"}, {`"`, `"`}} {
			if got := r.Text(around[0] + token + around[1]); got != around[0]+Redacted+around[1] {
				t.Errorf("%.40q is %q", around[0]+token+around[1], got)
			}
		}
		raw, err := json.Marshal(map[string]string{"out": "a\n" + token + "\nb<" + token + ">"})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.JSON(raw); !json.Valid(got) || strings.Count(string(got), Redacted) != 2 {
			t.Errorf("%.40q in JSON is %s", token, got)
		}
	}
	for in, want := range map[string]string{
		`{"aws_secret_access_key":"` + strings.Repeat("aB3/", 10) + `"}`: `{"aws_secret_access_key":"` + Redacted + `"}`,
		`{"n":1}`: `{"n":1}`,
	} {
		if got := r.JSON(json.RawMessage(in)); string(got) != want {
			t.Errorf("%s is %s", in, got)
		}
	}
	for _, plain := range []string{
		"task-list-of-all-the-things-to-do", "desk-" + strings.Repeat("a", 30), "12:30:AAAA", "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", "eyJ is how it begins", "AKIAMINE", "ghp_short",
	} {
		if got := r.Text(plain); got != plain {
			t.Errorf("%q is %q", plain, got)
		}
	}
}

func TestPatterns(t *testing.T) {
	r := newRedactor(t, `(?i)ticket-\d+`, `\b\d{4}-\d{4}\b`)
	got := r.JSON(json.RawMessage(`{"b":"Ticket-12 and another-secret-value","a":12345678901234567890,"c":["1234-5678"],"ticket-1":null}`))
	if string(got) != `{"[redacted]":null,"a":12345678901234567890,"b":"[redacted] and [redacted]","c":["[redacted]"]}` {
		t.Errorf("it is %s", got)
	}
	same := json.RawMessage(`{ "b" : 1 }`)
	if got := r.JSON(same); string(got) != string(same) {
		t.Errorf("it is %s", got)
	}
	for _, bad := range []string{"(", `(\pL?){999}`} {
		if _, err := New(nil, []string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A marker of an earlier redaction stays as it is: watchers are shown the log's text, which was redacted before.
func TestRedactingTwiceChangesNothing(t *testing.T) {
	for _, pattern := range []string{`[a-z]{8}`, `\S{8}`, `\S{9}`, `\S{10}`, `\S{12}`, `red\w+`, `id=\S{4}`} {
		r, err := New([]string{"correct-horse-battery"}, []string{pattern})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"abcdefgh", "ab correct-horse-battery, cd", "id=correct-horse-battery", "correct-horse-battery x", "abcdefghijkl mnopqrst\nuvwxyzab", `the key is "correct-horse-battery"`} {
			once := r.Text(text)
			if twice := r.Text(once); twice != once || strings.Contains(once, "correct") {
				t.Errorf("%s: %q becomes %q, and that %q", pattern, text, once, twice)
			}
			clean, piece := r.Stream(), ""
			for i := range len(once) {
				piece += clean(once[i:i+1], false)
			}
			if piece += clean("", true); piece != once {
				t.Errorf("%s: in pieces %q becomes %q", pattern, once, piece)
			}
			raw, err := plainjson.Marshal(map[string]string{"a": text})
			if err != nil {
				t.Fatal(err)
			}
			first := r.JSON(raw)
			if second := r.JSON(first); string(second) != string(first) {
				t.Errorf("%s: %s becomes %s, and that %s", pattern, raw, first, second)
			}
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	r, err := New([]string{"nsecret-value", "1234567890"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`"a\nsecret-value"`:      `"a\nsecret-value"`, // an escaped line feed, followed by other words
		`{"n":1234567890}`:       `{"n":"[redacted]"}`,
		`"nsecret-value"`:        `"[redacted]"`,
		`not JSON nsecret-value`: `"not JSON [redacted]"`,
	} {
		if got := r.JSON(json.RawMessage(in)); string(got) != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

// However a text is split, the output of a stream has no more of a secret than the whole text without it.
func TestStreams(t *testing.T) {
	r := newRedactor(t)
	lines := newRedactor(t, `ticket-\d+`)
	random := rand.New(rand.NewPCG(3, 4))
	for name, text := range encodings(testSecret) {
		inPieces(t, random, r, name, "It is "+text+", and that is all.")
	}
	for _, token := range sampleTokens() {
		inPieces(t, random, r, "token", "Use "+token+" for it.\nOr "+token)
		inPieces(t, random, r, "token", token)
	}
	inPieces(t, random, lines, "pattern", "See ticket-1234567 of another-secret-value\nand more")
	inPieces(t, random, r, "plain", "A text with nothing in it, 12:30 and 2026-11-22, desk-top, ey and -----.")
}

func inPieces(t *testing.T, random *rand.Rand, r *Redactor, name, text string) {
	t.Helper()
	want := r.Text(text)
	for n := range 60 {
		next := r.Stream()
		var out strings.Builder
		for rest := text; rest != ""; {
			size := min(len(rest), 1+random.IntN(1+n%7))
			out.WriteString(next(rest[:size], false))
			if !strings.HasPrefix(want, out.String()) && !strings.HasPrefix(out.String(), want) {
				t.Errorf("%s: %q says %q, want %q", name, text, out.String(), want)
				return
			}
			rest = rest[size:]
		}
		out.WriteString(next("", true))
		if out.String() != want {
			t.Errorf("%s: %q is %q, want %q", name, text, out.String(), want)
			return
		}
	}
}

// Ordinary words are not held back.
func TestAStreamHoldsLittleBack(t *testing.T) {
	next := newRedactor(t).Stream()
	if got := next("Hello, how are you today? ", false); got != "Hello, how are you today? " {
		t.Errorf("it says %q", got)
	}
}

// However a JSON value is cut, the pieces of the output contain no secret: neither a known one nor a match of an
// expression within a text of the value.
func TestJSONStream(t *testing.T) {
	plain, err := New([]string{"swordfish-4711"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	matching, err := New([]string{"swordfish-4711"}, []string{`^called "\w+"$`})
	if err != nil {
		t.Fatal(err)
	}
	value := `{"a":"it is swordfish-4711 here","b":"called \"Ann\"","c":[1,"so it is"]}`
	for _, tc := range []struct {
		r    *Redactor
		want string
	}{
		{plain, `{"a":"it is [redacted] here","b":"called \"Ann\"","c":[1,"so it is"]}`},
		{matching, `{"a":"it is [redacted] here","b":"[redacted]","c":[1,"so it is"]}`},
	} {
		for size := 1; size < 20; size++ {
			next, got := tc.r.JSONStream(), ""
			for rest := value; rest != ""; rest = rest[min(size, len(rest)):] {
				got += next(rest[:min(size, len(rest))], false)
				if strings.Contains(got, "sword") || tc.r == matching && strings.Contains(got, "Ann") {
					t.Fatalf("in pieces of %d: %s", size, got)
				}
			}
			if got += next("", true); got != tc.want {
				t.Errorf("in pieces of %d: %s, want %s", size, got, tc.want)
			}
		}
	}
	next := matching.JSONStream()
	if got := next(`{"a":"swordfish-4711`, true); strings.Contains(got, "sword") {
		t.Errorf("half a value is %s", got)
	}
}

func TestLogs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(Handler(slog.NewJSONHandler(&out, nil), func() *Redactor { return newRedactor(t) })).With(slog.String("with", "another-secret-value"))
	log.Info("of another-secret-value", slog.Any("error", errors.New("it is another-secret-value")), slog.Int("n", 7),
		slog.Group("g", slog.String("x", "another-secret-value"), slog.Int("m", 8)), slog.Any("list", []string{"another-secret-value"}))
	log.WithGroup("in").Info("again", slog.String("x", "another-secret-value"))
	if text := out.String(); strings.Contains(text, "another-secret-value") || strings.Count(text, Redacted) != 7 || !strings.Contains(text, `"n":7`) || !strings.Contains(text, `"m":8`) {
		t.Errorf("the log says %s", text)
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range sampleTokens() {
		f.Add("a "+s, "b")
	}
	f.Add(`{"a":"another-secret-`, `value"}`)
	r := newRedactor(f)
	f.Fuzz(func(t *testing.T, a, b string) {
		text := a + b
		got := r.Text(text)
		if strings.Contains(got, "another-secret-value") || strings.Contains(got, testSecret) {
			t.Errorf("%q is %q", text, got)
		}
		next := r.Stream()
		if out := next(a, false) + next(b, false) + next("", true); strings.Contains(out, "another-secret-value") || strings.Contains(out, testSecret) {
			t.Errorf("%q and %q are %q", a, b, out)
		}
		if json.Valid([]byte(text)) && !json.Valid(r.JSON(json.RawMessage(text))) {
			t.Errorf("%q is no JSON anymore: %q", text, r.JSON(json.RawMessage(text)))
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	var secrets []string
	for n := range 20 {
		secrets = append(secrets, strings.Repeat(string(rune('a'+n)), 3)+"-secret-value-0123456789")
	}
	r, err := New(secrets, nil)
	if err != nil {
		b.Fatal(err)
	}
	for name, size := range map[string]int{"1 KB": 1, "64 KB": 64} {
		raw, _ := json.Marshal(map[string]string{"stdout": strings.Repeat("The quick brown fox jumps over the lazy dog, 1234567.\n", size*1024/54)})
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				r.JSON(raw)
			}
		})
	}
	b.Run("delta", func(b *testing.B) {
		next := r.Stream()
		for b.Loop() {
			next("some more words ", false)
		}
	})
}

// A secret is found wherever it is in a text, and however short the rest is.
func TestSecretsAtEveryPlace(t *testing.T) {
	r := newRedactor(t)
	for before := range 9 {
		for after := range 4 {
			text := strings.Repeat("-", before) + "another-secret-value" + strings.Repeat("\"", after)
			if got := r.Text(text); strings.Contains(got, "secret") {
				t.Errorf("%q is %q", text, got)
			}
			raw, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.JSON(raw); strings.Contains(string(got), "secret") || !json.Valid(got) {
				t.Errorf("%s is %s", raw, got)
			}
		}
	}
	twice := "another-secret-valueanother-secret-value"
	if got := r.Text(twice); strings.Contains(got, "secret") {
		t.Errorf("%q is %q", twice, got)
	}
}
