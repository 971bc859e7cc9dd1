package sessionstest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/sessions"
)

func causeTests() []test {
	return []test{
		{"a known cause is refused, naming its turn", testRefusalNamesTurn},
		{"a cause stays known under summaries and over restarts", testCausesKnownForever},
		{"a cause twice in one append is refused", testCauseTwice},
		{"two sessions know causes apart", testCausesApart},
		{"causes that look alike are not the same", testCausesAlike},
		{"a message is emptied, by the holder of its session alone, and stays known", testEraseMessage},
	}
}

// testEraseMessage checks that only the holder of a session can empty a message, and that its cause stays
// known.
func testEraseMessage(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	edit := entry("t1", sessions.KindNotice, sessions.Notice{Code: "edited", Text: "reads now", Quotes: []sessions.Quote{{Text: "my other secret"}}, MessageID: "m1"})
	file := entry("t1", sessions.KindAttached, sessions.Attached{Message: "m1", Kind: "document", Name: "secret.txt", Ref: "r"})
	got := entry("t1", sessions.KindFetched, sessions.Fetched{Attached: 3, Message: "m1", Path: "secret.txt", SpokenWords: "my secret words"})
	mustAppend(t, l, turnStarted("t1"), said("t1", "m1", "my secret"), file, got, edit, said("t1", "m2", "this stays"), turnDone("t1"))
	blank := func(l sessions.Log) error {
		b, ok := l.(sessions.MessageEraser)
		if !ok {
			t.Fatal("the log is no MessageEraser")
		}
		return b.EraseMessage(t.Context(), "m1")
	}
	s = p.reopen(s)
	newer := openLog(t, s, key, 3)
	older := openLog(t, s, key, 3)
	if err := blank(older); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for e, err := range s.Read(t.Context(), key, 1) {
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(string(e.Data))
	}
	if strings.Contains(text.String(), "secret") || !strings.Contains(text.String(), "this stays") {
		t.Errorf("left is %s", text.String())
	}
	wantSeen(t, newer.Append(t.Context(), newer.Next(), said("t2", "m1", "again")), "m1", "t1")
	openLog(t, s, key, 4)
	if err := blank(newer); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("a holder of an older fence: %v", err)
	}
}

// wantSeen fails the test unless err is a *SeenError which says that a cause belongs to a turn.
func wantSeen(t *testing.T, err error, cause, turn string) {
	t.Helper()
	got, ok := errors.AsType[*sessions.SeenError](err)
	if !ok || got.Cause != cause || got.Turn != turn {
		t.Errorf("%v, want that %s belongs to turn %s", err, cause, turn)
	}
}

func testRefusalNamesTurn(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	entries := []sessions.Entry{turnStarted("t1"), said("t1", "m1", "hello"), said("t1", "m2", "and")}
	mustAppend(t, l, entries...)
	wantSeen(t, l.Append(t.Context(), 4, said("t2", "m2", "again")), "m2", "t1")
	wantSeen(t, l.Append(t.Context(), 4, turnStarted("t2"), said("t2", "m3", "new"), said("t2", "m1", "old"), replied("t2", "x")), "m1", "t1")
	wantLog(t, s, key, entries) // all or none
	if l.Next() != 4 {
		t.Errorf("a refused append moved the end to %d", l.Next())
	}
	mustAppend(t, l, said("t2", "m3", "new"))
}

func testCausesKnownForever(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l, turnStarted("t1"), said("t1", "m1", "hello"), turnDone("t1"))
	command := entry("m2", sessions.KindCommand, sessions.Command{Name: "new", Route: []byte("{}")})
	command.Cause = "m2"
	mustAppend(t, l, command)
	mustAppend(t, l, summary(4))
	s = p.reopen(s)
	l = openLog(t, s, key, 2)
	if len(l.Entries()) != 1 {
		t.Fatalf("the summary does not cover: %v", numbers(l.Entries()))
	}
	wantSeen(t, l.Append(t.Context(), 6, said("t2", "m1", "hello")), "m1", "t1")
	wantSeen(t, l.Append(t.Context(), 6, said("t2", "m2", "/new")), "m2", "m2")
}

func testCauseTwice(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	wantSeen(t, l.Append(t.Context(), 1, said("t1", "m1", "a"), replied("t1", "b"), said("t2", "m1", "a")), "m1", "t1")
	wantLog(t, s, key, nil)
	mustAppend(t, l, said("t1", "m1", "a"), replied("t1", "no cause"), replied("t1", "nor here"))
}

func testCausesApart(t *testing.T, p place) {
	s := p.open()
	for i := range 3 {
		mustAppend(t, openLog(t, s, fmt.Sprintf("main:telegram:%d", i), 1), said(fmt.Sprint("t", i), "m1", "hello"))
	}
	for i := range 3 {
		e, err := s.Find(t.Context(), fmt.Sprintf("main:telegram:%d", i), "m1")
		if err != nil || e.Turn != fmt.Sprint("t", i) {
			t.Errorf("session %d has it in turn %s, %v", i, e.Turn, err)
		}
	}
}

func testCausesAlike(t *testing.T, p place) {
	l := openLog(t, p.open(), key, 1)
	for _, cause := range []string{"a", "A", "a ", "a\x00", "a\xff", "a\xfe", "a\uFFFD", `\x61`, `\x6100`, "á", "a\u0301"} {
		mustAppend(t, l, said("t", cause, "hello"))
		wantSeen(t, l.Append(t.Context(), l.Next(), said("t2", cause, "hello")), cause, "t")
	}
}
