package sessionstest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"parley/sessions"
)

func peekTests() []test {
	return []test{
		{"a log that nobody holds is read in brief", testPeek},
		{"of a log with an unfinished turn its course is read", testPeekUnfinished},
		{"ids of any characters are read in brief as they are", testPeekIDs},
		{"what happens after a log was read in brief is noticed", testPeekTooLate},
	}
}

// peek reads a log in brief.
func peek(t *testing.T, s sessions.Peeker, key string) sessions.Log {
	t.Helper()
	l, ok, err := s.Peek(t.Context(), key)
	if err != nil || !ok {
		t.Fatalf("peek: %t, %v", ok, err)
	}
	return l
}

func testPeek(t *testing.T, p place) {
	stores := p.stores()
	if _, ok, err := stores[0].Peek(t.Context(), key); ok || err != nil {
		t.Errorf("of a session that is not there: %t, %v", ok, err)
	}
	if _, _, err := stores[0].Peek(t.Context(), "not a key"); !errors.Is(err, sessions.ErrInvalidKey) {
		t.Errorf("of what is no key: %v", err)
	}
	l := openLog(t, stores[0], key, 10)
	if _, ok, err := stores[0].Peek(t.Context(), key); ok || err != nil {
		t.Errorf("of a session without entries: %t, %v", ok, err)
	}
	used := func(turn string) sessions.Entry {
		return entry(turn, sessions.KindUsage, sessions.Usage{Model: "m", Input: 7})
	}
	mustAppend(t, l, turnStarted("t1"), said("t1", "m1", "one"), replied("t1", "1"), used("t1"), turnDone("t1", "o1"), turnPublished("t1"))
	mustAppend(t, l, entry("t2", sessions.KindSummary, sessions.Summary{Covers: 6, Text: "so far", Keep: []int64{2}}))
	mustAppend(t, l, turnStarted("t2"), said("t2", "m2", "two"), entry("t2", sessions.KindToolUse, sessions.ToolUse{Name: "x", Args: []byte(`{}`)}), used("t2"),
		entry("t2", sessions.KindToolStarted, sessions.ToolStarted{Attempt: 1}), entry("t2", sessions.KindToolResult, sessions.ToolResult{Content: []byte(`"y"`)}),
		replied("t2", "2"), used("t2"), used(""), turnDone("t2", "o2"), turnPublished("t2"))
	var want []sessions.Entry
	for _, e := range readLog(t, stores[0], key) {
		switch e.N {
		case 8, 17: // the beginning and the end of a turn
			e.Data = nil
		case 2, 7, 9, 10, 13, 14, 15, 16, 18:
		default:
			continue
		}
		want = append(want, e)
	}
	peeked := peek(t, stores[1], key)
	wantSame(t, "in brief", peeked.Entries(), want)
	if peeked.Next() != 19 {
		t.Errorf("the next is %d", peeked.Next())
	}
	mustAppend(t, l, turnStarted("t3")) // the log's holder is not shut out
	peeked = peek(t, stores[1], key)
	reopen(t, peeked, 11, true)
	wantFenced(t, "append under the former fence", l.Append(t.Context(), l.Next(), replied("t3", "late")))
	mustAppend(t, peeked, replied("t3", "3"))
	later := peek(t, stores[0], key)
	reopenLater(t, later, 12)
	mustAppend(t, later, turnDone("t3"))
	wantFenced(t, "append under the former fence", peeked.Append(t.Context(), peeked.Next(), replied("t3", "late")))
}

func testPeekUnfinished(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 10)
	mustAppend(t, l, wholeTurn(anna, "t1", "x")...)
	mustAppend(t, l, turnStarted("t2"), said("t2", "m2", "two"), replied("t2", "2"), turnDone("t2", "o2"))
	wantSame(t, "while it is not published", peek(t, s, key).Entries(), readLog(t, s, key))
	mustAppend(t, l, turnPublished("t2"))
	if got := peek(t, s, key).Entries(); len(got) != 9 || got[4].Data != nil {
		t.Errorf("%d entries once it is published, and its beginning has %s", len(got), got[4].Data)
	}
}

// testPeekIDs uses ids that look like the separators between entries and columns.
func testPeekIDs(t *testing.T, p place) {
	s := p.open()
	const forged = "x\x1e3\x1ft\x1fuser\x1f2026-01-01T00:00:00.000000Z\x1f\x1f\x1f\x1f{}"
	for n, id := range []string{"a\x1fb", "a\x1eb", forged, "\x1f\x1f\x1f\x1f\x1f\x1f\x1f", "a\x00b\xff", `\x1f`, "x\x1f1\x1e"} {
		session := fmt.Sprint(key, n)
		l := openLog(t, s, session, 10)
		asked := said("t1", id, "one \u001f\u001e two")
		asked.Person, asked.Call = "p"+id, id
		mustAppend(t, l, asked, replied(id, "\x1f said \x1e"), said(id, "m2"+id, "x"))
		wantSame(t, fmt.Sprintf("with the id %q", id), peek(t, s, session).Entries(), readLog(t, s, session))
	}
}

func testPeekTooLate(t *testing.T, p place) {
	stores := p.stores()
	l := openLog(t, stores[0], key, clockFence())
	mustAppend(t, l, wholeTurn(anna, "t1", "secret")...)
	for name, happens := range map[string]func() error{
		"another has opened it": func() (err error) { l, err = stores[0].Open(context.Background(), key, clockFence()); return err },
		"it has grown":          func() error { return l.Append(context.Background(), l.Next(), replied("t1", "more")) },
		"a message is erased":   func() error { return l.(sessions.MessageEraser).EraseMessage(context.Background(), "t1") }, //nolint:forcetypeassert // every store in this suite is one
		"it is erased":          func() error { _, err := stores[0].ErasePerson(context.Background(), anna); return err },
	} {
		peeked, later := peek(t, stores[1], key), peek(t, stores[1], key)
		if err := happens(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reopenLater(t, later, clockFence())
		wantConflict(t, name, later.Append(t.Context(), later.Next(), turnStarted("late")))
		reopen(t, peeked, clockFence(), false)
		if name == "it is erased" {
			l = openLog(t, stores[0], key, clockFence())
			mustAppend(t, l, wholeTurn(anna, "t"+name, "secret")...)
		}
	}
	fence := clockFence()
	openLog(t, stores[0], key, fence)
	if _, err := peek(t, stores[1], key).(sessions.ReopenableLog).Reopen(t.Context(), fence-1); !errors.Is(err, sessions.ErrFenced) { //nolint:forcetypeassert // reopen says so in words
		t.Errorf("reopened under a lower fence: %v", err)
	}
}
