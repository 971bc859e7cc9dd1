package plainjson_test

import (
	"strings"
	"testing"

	"parley/tools/plainjson"
)

// FuzzAppendString compares the strings that are appended with those that the encoder writes.
func FuzzAppendString(f *testing.F) {
	for _, text := range []string{"", "plain", "a \"quoted\" \\ one", "\b\f\n\r\t\x00\x1f\x7f", "<b>&amp;</b>", "\u2027\u2028\u2029\u202a", "日本語 🙂 наш", "\xff a \xed\xa0\x80 \xe2\x80", "\ufffd", strings.Repeat("long ", 1000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := plainjson.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := plainjson.AppendString([]byte("x"), text); string(got) != "x"+string(want) {
			t.Errorf("%q is %s, want x%s", text, got, want)
		}
	})
}
