package plainjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"parley/tools/plainjson"
)

// foreign is a type whose own MarshalJSON escapes, as those of libraries do.
type foreign string

func (f foreign) MarshalJSON() ([]byte, error) { return json.Marshal(string(f)) }

func TestWhatIsWrittenHasNoEscapes(t *testing.T) {
	const text = `<a href="?x=1&y=2">a > b</a>` + "\n\u2028" + `\u003c`
	value := map[string]any{
		"text":    text,
		"foreign": foreign(text),
		"raw":     json.RawMessage(`{"a":  "\u003C\u003e\u0026 \\u003c \\\u003c"}`),
	}
	const want = `{"foreign":"<a href=\"?x=1&y=2\">a > b</a>\n\u2028\\u003c","raw":{"a":"<>& \\u003c \\<"},"text":"<a href=\"?x=1&y=2\">a > b</a>\n\u2028\\u003c"}`
	got, err := plainjson.Marshal(value)
	if err != nil || string(got) != want {
		t.Errorf("Marshal wrote %s (%v)\nwant           %s", got, err, want)
	}
	indented, err := plainjson.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var compact, lines bytes.Buffer
	if err := json.Compact(&compact, indented); err != nil || compact.String() != want || !strings.Contains(string(indented), "\n  \"raw\": {\n    \"a\"") {
		t.Errorf("MarshalIndent wrote %s (%v)", indented, err)
	}
	if err := plainjson.NewEncoder(&lines).Encode(text); err != nil || !strings.HasPrefix(lines.String(), `"<a href=`) || !strings.HasSuffix(lines.String(), "\"\n") {
		t.Errorf("the encoder wrote %q (%v)", lines.String(), err)
	}
	if _, err := plainjson.Marshal(func() {}); err == nil {
		t.Error("a function was written as JSON")
	}
}

func TestUnescapeLeavesItsInputAlone(t *testing.T) {
	raw := []byte(`{"a":"\u003cb\u003e"}`)
	kept := string(raw)
	if got := plainjson.Unescape(raw); string(got) != `{"a":"<b>"}` || string(raw) != kept {
		t.Errorf("got %s of %s", got, raw)
	}
	same := []byte(`"\u00e4 \\u003c"`)
	if got := plainjson.Unescape(same); &got[0] != &same[0] || string(got) != string(same) {
		t.Errorf("without an escape it is another text: %s", got)
	}
}

func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{`"\u003c"`, `"\\u003c"`, `"\\\u003C\\\\u003e"`, `{"\u0026":["\u003e\"\u2028\u00e4"]}`, `"\u00`, `\`, `"a\`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		kept := bytes.Clone(raw)
		got := plainjson.Unescape(raw)
		if !bytes.Equal(raw, kept) {
			t.Fatalf("the input %q became %q", kept, raw)
		}
		if again := plainjson.Unescape(got); json.Valid(raw) && !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, and then %q", raw, got, again)
		}
		var before, after any
		if json.Unmarshal(raw, &before) != nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q, which means something else (%v)", raw, got, err)
		}
		plain := new(bytes.Buffer)
		e := json.NewEncoder(plain)
		e.SetEscapeHTML(false)
		if err := e.Encode(before); err != nil {
			t.Fatal(err)
		}
		if made, err := plainjson.Marshal(before); err != nil || string(made)+"\n" != plain.String() {
			t.Fatalf("Marshal made %q, want %q (%v)", made, plain, err)
		}
	})
}
