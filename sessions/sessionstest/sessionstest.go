// Package sessionstest is the suite that every store of sessions passes: each promise of package sessions is a test.
//
// sessionstest.go has Run, which an implementation's tests call, and the functions that
// all tests share. Each other file is named after the group of promises that it tests;
// erasing has two files, erase.go and erase_person.go. bench.go is the
// benchmark of an implementation.
package sessionstest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/search"
)

// A Store is every interface that an implementation must have.
type Store interface {
	sessions.Store
	sessions.Peeker
	sessions.Reader
	sessions.TurnReader
	sessions.Finder
	sessions.Budget
	sessions.Eraser
	sessions.Auditor
	sessions.Jobs
	sessions.JobLister
	io.Closer
	// Words returns the index of what was said.
	Words() *search.Table
}

// A Harness says how the suite opens an implementation and finds its files.
type Harness struct {
	// New makes an empty place for a store and returns its name, a file's path or a
	// database's URL. The place is removed when the test ends.
	New func(t testing.TB) string
	// Open opens the store at a place. Another process may have had it open before, and
	// may have been killed.
	Open func(ctx context.Context, place string) (Store, error)
	// MultiProcess says that several processes may have a place open at once.
	MultiProcess bool
	// Files lists the files of a store, which must not hold what was erased. It is nil
	// if a server keeps them.
	Files func(t testing.TB, place string) []string
}

// Run runs the suite. To have a process that it can kill, it starts the test binary again
// with the name of the test that called Run; so that test must do nothing else.
func Run(t *testing.T, h Harness) {
	if place := os.Getenv(childPlace); place != "" {
		runChild(t, h, place)
		return
	}
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"log", logTests()},
		{"fence", fenceTests()},
		{"causes", causeTests()},
		{"open", openTests()},
		{"reader", readerTests()},
		{"titles", titleTests()},
		{"recent", recentTests()},
		{"budget", budgetTests()},
		{"reopen", reopenTests()},
		{"peek", peekTests()},
		{"erase", eraseTests()},
		{"search", searchTests()},
		{"audit", auditTests()},
		{"jobs", jobTests()},
		{"crash", crashTests()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, tt := range group.tests {
				t.Run(tt.promise, func(t *testing.T) { tt.run(t, place{t, h, h.New(t)}) })
			}
		})
	}
}

// A test is the test of one promise.
type test struct {
	promise string
	run     func(*testing.T, place)
}

// A place is where one test's store keeps its data.
type place struct {
	t       testing.TB
	harness Harness
	name    string
}

// open opens the store. It is closed when the test ends, if not before.
func (p place) open() Store {
	p.t.Helper()
	s, err := p.harness.Open(p.t.Context(), p.name)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { s.Close() }) // it may be closed already
	return s
}

// reopen closes a store and opens it again.
func (p place) reopen(s Store) Store {
	p.t.Helper()
	if err := s.Close(); err != nil {
		p.t.Fatal(err)
	}
	return p.open()
}

// stores opens the store twice, as two processes would, or returns one store twice if
// only one process can have it open.
func (p place) stores() [2]Store {
	p.t.Helper()
	one := p.open()
	if !p.harness.MultiProcess {
		return [2]Store{one, one}
	}
	return [2]Store{one, p.open()}
}

// key is the session in which most tests write.
const key = "main:telegram:42"

// openLog opens the log of a session under a fence, and fails the test if that fails.
func openLog(t testing.TB, s sessions.Store, key string, fence int64) sessions.Log {
	t.Helper()
	l, err := s.Open(t.Context(), key, fence)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// mustAppend appends entries at the end of a log.
func mustAppend(t testing.TB, l sessions.Log, entries ...sessions.Entry) {
	t.Helper()
	at := l.Next()
	if err := l.Append(t.Context(), at, entries...); err != nil {
		t.Fatal(err)
	}
	if want := at + int64(len(entries)); l.Next() != want {
		t.Fatalf("the next entry after an append is %d, want %d", l.Next(), want)
	}
}

// readLog reads the whole log of a session.
func readLog(t testing.TB, s sessions.Reader, key string) []sessions.Entry {
	t.Helper()
	var entries []sessions.Entry
	for e, err := range s.Read(t.Context(), key, 1) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

// wantLog fails the test unless the session's log has exactly these entries.
func wantLog(t testing.TB, s sessions.Reader, key string, want []sessions.Entry) {
	t.Helper()
	wantSame(t, "the log", readLog(t, s, key), want)
}

// wantSame fails the test unless two lists of entries are equal, with times compared
// in microseconds.
func wantSame(t testing.TB, what string, got, want []sessions.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d entries %v, want %d %v", what, len(got), numbers(got), len(want), numbers(want))
	}
	for i := range got {
		if g, w := describe(got[i]), describe(want[i]); g != w {
			t.Fatalf("entry %d of %s is\n%s\nwant\n%s", i, what, g, w)
		}
	}
}

// describe returns an entry as text, for the message of a failed test.
func describe(e sessions.Entry) string {
	return fmt.Sprintf("%d turn=%q kind=%q at=%s cause=%q person=%q call=%q data=%q",
		e.N, e.Turn, e.Kind, e.At.UTC().Truncate(time.Microsecond), e.Cause, e.Person, e.Call, e.Data)
}

// numbers returns the numbers of entries.
func numbers(entries []sessions.Entry) []int64 {
	var n []int64
	for _, e := range entries {
		n = append(n, e.N)
	}
	return n
}

// entry returns an entry of a turn with its data in JSON.
func entry(turn string, kind sessions.Kind, data any) sessions.Entry {
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		panic(err) // the data of these tests can be encoded
	}
	return e
}

// said returns the entry of a message from anna, whose id is cause.
func said(turn, cause, text string) sessions.Entry {
	e := entry(turn, sessions.KindUser, sessions.User{Text: text})
	e.Cause, e.Person = cause, "telegram:7"
	return e
}

// replied returns the entry of an answer of the model's.
func replied(turn, text string) sessions.Entry {
	return entry(turn, sessions.KindText, sessions.Text{Text: text})
}

// turnStarted returns the entry with which a turn begins.
func turnStarted(turn string) sessions.Entry {
	return entry(turn, sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte(`{"to":"x"}`)})
}

// turnDone returns the entry which says that a turn is done, and lists its outbound messages.
func turnDone(turn string, outbound ...string) sessions.Entry {
	d := sessions.TurnDone{State: sessions.TurnCompleted}
	for _, id := range outbound {
		d.Outbound = append(d.Outbound, sessions.Reply{ID: id, Text: "answer"})
	}
	return entry(turn, sessions.KindTurnDone, d)
}

// turnPublished returns the entry which says that a turn's outbound messages are on the bus.
func turnPublished(turn string) sessions.Entry { return entry(turn, sessions.KindPublished, nil) }

// summary returns a summary that covers all entries up to a number.
func summary(covers int64) sessions.Entry {
	return entry("s", sessions.KindSummary, sessions.Summary{Covers: covers, Text: "so far"})
}

// withoutNumbers copies entries, without the numbers and times that Append has given
// them, for a caller who appends them again.
func withoutNumbers(entries []sessions.Entry) []sessions.Entry {
	copied := make([]sessions.Entry, len(entries))
	for i, e := range entries {
		e.Data = bytes.Clone(e.Data)
		e.N, e.At = 0, time.Time{}
		copied[i] = e
	}
	return copied
}
