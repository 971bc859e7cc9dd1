package plainjson_test

import (
	"encoding/json"
	"maps"
	"testing"

	"parley/tools/plainjson"
)

// read returns the strings in an object, as ReadStrings reads them.
func read(raw []byte) (map[string]string, bool) {
	got := map[string]string{}
	ok := plainjson.ReadStrings(raw, func(name, value []byte) bool {
		got[string(name)] = string(value)
		return true
	})
	return got, ok
}

// What Marshal writes of plain texts is read, whatever characters they have, but for those that it writes by their
// numbers.
func TestStringsAreReadAsWritten(t *testing.T) {
	for _, want := range []map[string]string{
		{"text": "plain"}, {"text": ""}, {"": "no name"},
		{"text": "two\nlines, \"quoted\", a \\ and a\ttab\r\b\f", "name": "Ann"},
		{"text": "日本語 🙂 наш <b>&amp;</b> \ufffd \x7f", "é\n": "x"},
	} {
		raw, err := plainjson.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := read(raw); !ok || !maps.Equal(got, want) {
			t.Errorf("%s is read as %q, %v", raw, got, ok)
		}
	}
	if _, ok := read([]byte(`{"text":"a\/b"}`)); !ok {
		t.Error(`"\/" is not read`)
	}
}

// FuzzReadStrings checks that what is read is what encoding/json reads.
func FuzzReadStrings(f *testing.F) {
	for _, raw := range []string{
		`{"text":"plain","name":"Ann"}`, `{"text":"a\n\"b\" \\ \/ \b\f\r\t"}`, `{"a":"1","a":"2"}`, `{}`, `{"a":""}`, ``, `{`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"\`, `{"a":"x"`, `{"a":"x",`, `{"a":"x",}`, `{"a":"x"}}`, `{"a":"x"} `, `["a"]`,
		`{"a":"\u0041"}`, `{"a":"\x"}`, "{\"a\":\"\xff\"}", "{\"a\":\"\n\"}", "{\"\xed\xa0\x80\":\"x\"}", `{"a":1}`, `{"a":null}`, `{"a":{"b":"c"}}`, `{ "a":"x"}`, `{"a": "x"}`, `{"a\n":"\\\\"}`, `{"a":"x""b":"y"}`, `{"a""x"}`, `{,}`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := string(raw)
		got, ok := read(raw)
		if string(raw) != before {
			t.Fatalf("%q was changed to %q", before, raw)
		}
		if !ok {
			return
		}
		var want map[string]string
		if err := json.Unmarshal(raw, &want); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q is read as %q, want %q, %v", raw, got, want, err)
		}
	})
}
