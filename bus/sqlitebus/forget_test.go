package sqlitebus_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/bus"
	"parley/bus/bustest"
)

// Forget removes the text of old answers, waiting messages and dead letters from the file.
func TestForgetLeavesNoTrace(t *testing.T) {
	path := bustest.FilePlace(t)
	b := open(t, path)
	const secret = "a word that nobody else says"
	publish := func(key, text string, n int) {
		t.Helper()
		m := bus.Message{ID: fmt.Sprint(key, n), Key: key, Body: []byte(strings.Repeat(text, 1+n%50))}
		if err := b.Publish(t.Context(), bus.InboundTopic, m); err != nil {
			t.Fatal(err)
		}
	}
	traces := func(text string) (n int) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
		if err != nil || len(files) < 2 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(raw, []byte(text))
		}
		return n
	}
	for n := range 100 {
		publish("answered", secret, n)
		publish("other", "somebody else", n)
	}
	for _, end := range []bus.End{{Done: 1 << 60}, {}, {Dead: 1 << 60, Reason: "poison"}} {
		l, err := b.Claim(t.Context(), bus.InboundTopic)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Settle(t.Context(), end); err != nil {
			t.Fatal(err)
		}
		publish("answered", secret, 1000+int(l.Claim().Fence%1000))
	}
	if traces(secret) == 0 {
		t.Fatal("the files do not hold it: the test cannot fail")
	}
	got, err := b.Forget(t.Context(), func(_ bus.Topic, m bus.Message) bool { return m.Key == "answered" })
	if err != nil || got.Messages+got.DeadLetters == 0 {
		t.Fatalf("forgot %+v, %v", got, err)
	}
	if n := traces(secret); n != 0 {
		t.Errorf("%d traces are left", n)
	}
	if traces("somebody else") == 0 {
		t.Error("the rest is gone too")
	}
}
