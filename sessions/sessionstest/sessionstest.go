// Package sessionstest is the suite that every store of sessions passes: each promise of package sessions is a test.
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
)

// A Store is all that a store does.
type Store interface {
	sessions.Store
	sessions.Reader
	sessions.Budget
	sessions.Eraser
	io.Closer
}

// A Harness tells the suite how to come by a store.
type Harness struct {
	// New makes an empty place for a store, a file's path or a database's URL,
	// that goes away with the test.
	New func(t testing.TB) string
	// Open opens the store at a place. Another process may have had it open, and
	// have been killed.
	Open func(ctx context.Context, place string) (Store, error)
	// Shared says that several processes may have a place open at once.
	Shared bool
	// Files lists the files of a store, which must not hold what was erased. Nil
	// if they are a server's.
	Files func(t testing.TB, place string) []string
}

// Run runs the suite. To have a process to kill it starts the test binary again
// with the name of the test that calls Run, which therefore does nothing else.
func Run(t *testing.T, h Harness) {
	if place := os.Getenv(childPlace); place != "" {
		child(t, h, place)
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
		{"budget", budgetTests()},
		{"erase", eraseTests()},
		{"crash", crashTests()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, tt := range group.tests {
				t.Run(tt.promise, func(t *testing.T) { tt.run(t, place{t, h, h.New(t)}) })
			}
		})
	}
}

// A test is one promise.
type test struct {
	promise string
	run     func(*testing.T, place)
}

// A place is where the stores of one test are.
type place struct {
	t  testing.TB
	h  Harness
	at string
}

// open opens the store until the test ends or it is closed.
func (p place) open() Store {
	p.t.Helper()
	s, err := p.h.Open(p.t.Context(), p.at)
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

// stores opens the store, twice if it can be shared: as two processes have it.
func (p place) stores() [2]Store {
	p.t.Helper()
	one := p.open()
	if !p.h.Shared {
		return [2]Store{one, one}
	}
	return [2]Store{one, p.open()}
}

const key = "main:telegram:42"

func openLog(t testing.TB, s sessions.Store, key string, fence int64) sessions.Log {
	t.Helper()
	l, err := s.Open(t.Context(), key, fence)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// put appends entries at the end of a log.
func put(t testing.TB, l sessions.Log, entries ...sessions.Entry) {
	t.Helper()
	at := l.Next()
	if err := l.Append(t.Context(), at, entries...); err != nil {
		t.Fatal(err)
	}
	if want := at + int64(len(entries)); l.Next() != want {
		t.Fatalf("the next entry after an append is %d, want %d", l.Next(), want)
	}
}

// all reads the whole log of a session.
func all(t testing.TB, s sessions.Reader, key string) []sessions.Entry {
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

// stands fails the test unless the session's log is exactly that.
func stands(t testing.TB, s sessions.Reader, key string, want []sessions.Entry) {
	t.Helper()
	same(t, "the log", all(t, s, key), want)
}

// same fails the test unless two lists of entries are the same, times included
// as far as a microsecond.
func same(t testing.TB, what string, got, want []sessions.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d entries %v, want %d %v", what, len(got), numbers(got), len(want), numbers(want))
	}
	for i := range got {
		if g, w := show(got[i]), show(want[i]); g != w {
			t.Fatalf("entry %d of %s is\n%s\nwant\n%s", i, what, g, w)
		}
	}
}

func show(e sessions.Entry) string {
	return fmt.Sprintf("%d turn=%q kind=%q at=%s cause=%q person=%q call=%q data=%q",
		e.N, e.Turn, e.Kind, e.At.UTC().Truncate(time.Microsecond), e.Cause, e.Person, e.Call, e.Data)
}

func numbers(entries []sessions.Entry) []int64 {
	var n []int64
	for _, e := range entries {
		n = append(n, e.N)
	}
	return n
}

func entry(turn string, kind sessions.Kind, data any) sessions.Entry {
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		panic(err) // the data of these tests can be encoded
	}
	return e
}

func said(turn, cause, text string) sessions.Entry {
	e := entry(turn, sessions.KindUser, sessions.User{Text: text})
	e.Cause, e.Person = cause, "telegram:7"
	return e
}

func reply(turn, text string) sessions.Entry {
	return entry(turn, sessions.KindText, sessions.Text{Text: text})
}

func started(turn string) sessions.Entry {
	return entry(turn, sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte(`{"to":"x"}`)})
}

func done(turn string, outbound ...string) sessions.Entry {
	d := sessions.TurnDone{State: sessions.TurnCompleted}
	for _, id := range outbound {
		d.Outbound = append(d.Outbound, sessions.Reply{ID: id, Text: "answer"})
	}
	return entry(turn, sessions.KindTurnDone, d)
}

func published(turn string) sessions.Entry { return entry(turn, sessions.KindPublished, nil) }

func summary(covers int64) sessions.Entry {
	return entry("s", sessions.KindSummary, sessions.Summary{Covers: covers, Text: "so far"})
}

// again is a deep copy of entries, as a caller has them that must retry.
func again(entries []sessions.Entry) []sessions.Entry {
	copied := make([]sessions.Entry, len(entries))
	for i, e := range entries {
		e.Data = bytes.Clone(e.Data)
		e.N, e.At = 0, time.Time{}
		copied[i] = e
	}
	return copied
}
