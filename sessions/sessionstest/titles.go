package sessionstest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions"
)

func titleTests() []test {
	return []test{
		{"the first words that somebody says are the title, in one line and cut at a word", testTitle},
		{"a title outlives a summary and a restart, and a new conversation has a new one", testTitleStays},
		{"a title is noted whoever opens the session, and who has peeked at it", testTitleByLaterHolder},
		{"a title of a message that is erased is that of the next", testTitleOfErasedMessage},
		{"a person who is forgotten is in no title", testTitleOfErasedPerson},
		{"a title leaves with what is old", testTitleOfOldTurn},
		{"another title takes the place of the first words, and leaves with the conversation", testSetTitle},
		{"another title leaves with what is erased, from every file", testSetTitleErased},
	}
}

// titleOf returns the title of a session in lists, and who has said it. It fails the test unless all lists
// contain the same.
func titleOf(t testing.TB, s Store, key string) string {
	t.Helper()
	byKey, err := s.List(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	byTime, err := s.Recent(t.Context(), sessions.SessionQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	is := func(i sessions.Info) bool { return i.Key == key }
	a, b := slices.IndexFunc(byKey, is), slices.IndexFunc(byTime.Sessions, is)
	if a < 0 || b < 0 {
		return "no session"
	}
	if byKey[a] != byTime.Sessions[b] {
		t.Errorf("one list has %+v, the other %+v", byKey[a], byTime.Sessions[b])
	}
	if byKey[a].Title == "" && byKey[a].Person == "" {
		return ""
	}
	return byKey[a].Person + ": " + byKey[a].Title
}

func wantTitle(t testing.TB, s Store, when, key, want string) {
	t.Helper()
	if got := titleOf(t, s, key); got != want {
		t.Errorf("%s the title is %q, want %q", when, got, want)
	}
}

// appendNew appends the entry that /new writes.
func appendNew(t testing.TB, l sessions.Log, cause string) {
	t.Helper()
	command := entry(cause, sessions.KindCommand, sessions.Command{Name: "new"})
	command.Cause, command.Person = cause, anna
	mustAppend(t, l, command, entry("", sessions.KindSummary, sessions.Summary{Covers: l.Next() - 1, Keep: []int64{1}}))
}

func testTitle(t *testing.T, p place) {
	s := p.open()
	n := 0
	for text, want := range map[string]string{
		"  How do I\nbake\tbread?  ":                          "How do I bake bread?",
		"a\x1b[31mb \u202egnol\u202c \x00 end":                "a [31mb gnol end",
		strings.Repeat("word ", 40):                           strings.TrimSpace(strings.Repeat("word ", 12)) + "…",
		strings.Repeat("ä", 61):                               strings.Repeat("ä", 60) + "…",
		strings.Repeat("12345 ", 10):                          strings.TrimSpace(strings.Repeat("12345 ", 10)),
		`she said "yes" \ no`:                                 `she said "yes" \ no`,
		`a "text":"b" ` + strings.Repeat("\\\"\u0001 ", 5000): `a "text":"b" ` + strings.TrimSpace(strings.Repeat("\\\" ", 16)) + "…",
	} {
		n++
		place := fmt.Sprint("main:telegram:", n)
		l := openLog(t, s, place, clockFence())
		nothing := entry("t1", sessions.KindUser, sessions.User{Name: "Anna"}) // for example a picture without words
		nothing.Cause, nothing.Person = "m0", anna
		e := entry("t1", sessions.KindUser, sessions.User{Name: `An"na`, Text: text, Quotes: []sessions.Quote{{Text: strings.Repeat("quoted ", 5000)}}})
		e.Cause, e.Person = "m1", anna
		mustAppend(t, l, turnStarted("t1"), nothing, e)
		wantTitle(t, s, "of a text", place, anna+": "+want)
	}
}

func testTitleStays(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	wantTitle(t, s, "at first", key, "")
	mustAppend(t, l, wholeTurn(anna, "a1", "bread and butter")...)
	mustAppend(t, l, wholeTurn(berta, "b1", "something else")...)
	wantTitle(t, s, "after two turns", key, anna+": bread and butter")
	mustAppend(t, l, summary(l.Next()-1))
	mustAppend(t, l, wholeTurn(berta, "b2", "more")...)
	wantTitle(t, s, "after a summary", key, anna+": bread and butter")
	s = p.reopen(s)
	l = openLog(t, s, key, clockFence())
	mustAppend(t, l, wholeTurn(berta, "b3", "and more")...)
	wantTitle(t, s, "after a restart", key, anna+": bread and butter")
	appendNew(t, l, "n1")
	wantTitle(t, s, "of a new conversation", key, "")
	mustAppend(t, l, entry("", sessions.KindSummary, sessions.Summary{Covers: l.Next() - 2, Cleared: 3}))
	mustAppend(t, l, wholeTurn(berta, "b4", "the moon")...)
	mustAppend(t, l, wholeTurn(anna, "a2", "the sun")...)
	mustAppend(t, l, summary(l.Next()-1))
	wantTitle(t, s, "later in it", key, berta+": the moon")
}

func testTitleByLaterHolder(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	mustAppend(t, l, wholeTurn(anna, "a1", "bread and butter")...)
	appendNew(t, l, "n1")
	for _, peek := range []bool{false, true} {
		s = p.reopen(s)
		if peek {
			l = peekedLog(t, s)
		} else {
			l = openLog(t, s, key, clockFence())
		}
		mustAppend(t, l, wholeTurn(berta, "b1"+strings.Repeat("x", len(l.Entries())), "the moon")...)
		mustAppend(t, l, summary(l.Next()-1))
		wantTitle(t, s, "of another holder", key, berta+": the moon")
	}
}

// peekedLog returns the session's log as Peek returns it, for appends.
func peekedLog(t testing.TB, s Store) sessions.Log {
	t.Helper()
	l, known, err := s.Peek(t.Context(), key)
	if err != nil || !known {
		t.Fatal(known, err)
	}
	if err := l.(sessions.ReopenableLog).ReopenLater(clockFence()); err != nil { //nolint:forcetypeassert // what Peek returns is one
		t.Fatal(err)
	}
	return l
}

func testTitleOfErasedMessage(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	mustAppend(t, l, withPerson(anna, turnStarted("a1")), withPerson(anna, said("a1", "m1", secret)), withPerson(anna, said("a1", "m2", "the sun")), turnDone("a1"))
	wantTitle(t, s, "before", key, anna+": "+secret)
	if err := l.(sessions.MessageEraser).EraseMessage(t.Context(), "m1"); err != nil { //nolint:forcetypeassert // every log in this suite is one
		t.Fatal(err)
	}
	wantTitle(t, s, "after", key, anna+": the sun")
	mustAppend(t, l, wholeTurn(berta, "b1", "the moon")...)
	wantTitle(t, s, "a turn later", key, anna+": the sun")
}

func testTitleOfErasedPerson(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, otherKey, clockFence())
	mustAppend(t, l, wholeTurn(anna, "a1", secret)...)
	mustAppend(t, l, wholeTurn(berta, "b1", "the moon")...)
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a2", secret)...)
	wantTitle(t, s, "before", otherKey, anna+": "+secret)
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	wantTitle(t, s, "of what others share", otherKey, berta+": the moon")
	wantTitle(t, s, "of what was hers", key, "no session")
	mustAppend(t, openLog(t, s, otherKey, clockFence()), wholeTurn(berta, "b2", "the stars")...)
	wantTitle(t, s, "a turn later", otherKey, berta+": the moon")
	if got, err := s.ErasePerson(t.Context(), berta); err != nil || len(got.Sessions) != 1 {
		t.Fatal(got, err)
	}
	mustAppend(t, openLog(t, s, otherKey, clockFence()), wholeTurn(anna, "a3", "hello again")...)
	wantTitle(t, s, "of a session that begins anew", otherKey, anna+": hello again")
}

func testTitleOfOldTurn(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	old := wholeTurn(anna, "a1", secret)
	for i := range old {
		old[i].At = time.Now().Add(-48 * time.Hour)
	}
	mustAppend(t, l, old...)
	mustAppend(t, l, wholeTurn(anna, "a2", "the sun")...)
	mustAppend(t, l, wholeTurn(anna, "a3", "the moon")...)
	if got, err := s.EraseBefore(t.Context(), time.Now().Add(-24*time.Hour)); err != nil || got.Entries != int64(len(old)) {
		t.Fatal(got, err)
	}
	wantTitle(t, s, "of what is left", key, anna+": the sun")
	mustAppend(t, l, wholeTurn(anna, "a4", "the stars")...)
	wantTitle(t, s, "a turn later", key, anna+": the sun")
}

// setTitle gives the conversation a title in place of the words of entry n.
func setTitle(t testing.TB, l sessions.Log, n int64, title string) {
	t.Helper()
	if err := l.(sessions.Titler).SetTitle(t.Context(), n, title); err != nil { //nolint:forcetypeassert // every log in this suite is one
		t.Fatal(err)
	}
}

func testSetTitle(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, clockFence())
	mustAppend(t, l, wholeTurn(anna, "a1", "How do I bake bread?")...)
	setTitle(t, l, 3, "not of the first words")
	wantTitle(t, s, "of another entry", key, anna+": How do I bake bread?")
	setTitle(t, l, 2, "Baking bread")
	wantTitle(t, s, "of a model", key, anna+": Baking bread")
	wantRecent(t, s, sessions.SessionQuery{Words: "baking"}, key)
	wantRecent(t, s, sessions.SessionQuery{Words: "how"})
	mustAppend(t, l, wholeTurn(berta, "b1", "more")...)
	mustAppend(t, l, summary(l.Next()-1))
	s = p.reopen(s)
	wantTitle(t, s, "after a restart", key, anna+": Baking bread")
	l = openLog(t, s, key, clockFence())
	next := openLog(t, s, key, clockFence())
	setTitle(t, l, 2, "of who has lost it")
	wantTitle(t, s, "of an earlier holder", key, anna+": Baking bread")
	appendNew(t, next, "n1")
	wantTitle(t, s, "of a new conversation", key, "")
	setTitle(t, next, 2, "too late")
	mustAppend(t, next, wholeTurn(anna, "a2", "the moon")...)
	wantTitle(t, s, "of its first words", key, anna+": the moon")
}

func testSetTitleErased(t *testing.T, p place) {
	s := p.open()
	for what, erase := range map[string]func(sessions.Log, string) error{
		"the message": func(l sessions.Log, _ string) error {
			return l.(sessions.MessageEraser).EraseMessage(t.Context(), "a1")
		}, //nolint:forcetypeassert // likewise
		"the person":  func(sessions.Log, string) error { _, err := s.ErasePerson(t.Context(), anna); return err },
		"the session": func(_ sessions.Log, key string) error { _, err := s.EraseSession(t.Context(), key); return err },
		"what is old": func(sessions.Log, string) error {
			_, err := s.EraseBefore(t.Context(), time.Now().Add(time.Hour))
			return err
		},
	} {
		place := "main:telegram:" + strings.ReplaceAll(what, " ", "")
		l := openLog(t, s, place, clockFence())
		mustAppend(t, l, wholeTurn(anna, "a1", "bread")...)
		mustAppend(t, l, wholeTurn(berta, "b1", "the moon")...)
		setTitle(t, l, 2, secret)
		wantTitle(t, s, "before "+what+" is erased", place, anna+": "+secret)
		if err := erase(l, place); err != nil {
			t.Fatal(err)
		}
		setTitle(t, l, 2, secret) // this title was made in the meantime
		if got := titleOf(t, s, place); strings.Contains(got, secret) || what != "the session" && what != "what is old" && got != berta+": the moon" {
			t.Errorf("after %s is erased the title is %q", what, got)
		}
	}
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(berta, "b1", "the moon")...)
	if _, err := s.EraseSession(t.Context(), key); err != nil { // this erasure also removes the traces of an erased message
		t.Fatal(err)
	}
	if p.harness.Files != nil && p.countInFiles(secret) != 0 {
		t.Errorf("%d traces are left", p.countInFiles(secret))
	}
}
