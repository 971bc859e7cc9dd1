package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// retryUntilDone calls try until it succeeds, as the callers of a store do during an
// outage, and counts the failures.
func retryUntilDone(t *testing.T, failures *int, try func() error) bool {
	deadline := time.After(30 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); ; {
		err := try()
		if err == nil {
			return true
		}
		*failures++
		select {
		case <-tick:
		case <-deadline:
			t.Error(err)
			return false
		}
	}
}

// workUntilDone works on one session until ctx ends: it reserves, appends and settles, and repeats each call
// until it succeeds. Whatever was lost with a connection, the log must then contain each entry once, and each
// must be paid once.
func workUntilDone(ctx context.Context, t *testing.T, s *sqlstore.Store, key string) (entries, failures int) {
	var l sessions.Log
	if !retryUntilDone(t, &failures, func() (err error) {
		l, err = s.Open(t.Context(), key, 1)
		return err
	}) {
		return 0, failures
	}
	for n := 0; ctx.Err() == nil; n++ {
		id, at := fmt.Sprintf("%s-%d", key, n), l.Next()
		r := sessions.Reservation{ID: id, Person: key, Tokens: 10, Cap: 1 << 40, At: noonOfToday()}
		ok := retryUntilDone(t, &failures, func() error { return s.Reserve(t.Context(), r) }) &&
			retryUntilDone(t, &failures, func() error {
				err := l.Append(t.Context(), at, sessions.Entry{Turn: id, Kind: sessions.KindUser, Cause: id}, sessions.Entry{Turn: id, Kind: sessions.KindText})
				if errors.Is(err, sessions.ErrConflict) || errors.As(err, new(*sessions.SeenError)) || errors.Is(err, sessions.ErrFenced) {
					t.Errorf("what was appended once was refused when repeated: %v", err)
				}
				return err
			}) &&
			retryUntilDone(t, &failures, func() error { return s.Settle(t.Context(), r, 7) })
		if !ok {
			break
		}
		entries = n + 1
	}
	return 2 * entries, failures
}

func noonOfToday() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour) }

func TestServerIsKilledUnderLoad(t *testing.T) {
	server := sqldbtest.Start(t)
	s := openTestStore(t, server.URL())
	ctx, cancel := context.WithCancel(t.Context())
	const workers = 30
	var entries, failures [workers]int
	var wg sync.WaitGroup
	key := func(i int) string { return fmt.Sprintf("main:telegram:%d", i) }
	for i := range workers {
		wg.Go(func() { entries[i], failures[i] = workUntilDone(ctx, t, s, key(i)) })
	}
	for range 2 {
		waitForGrowth(t, s, key(0))
		server.Kill()
		server.Restart()
	}
	waitForGrowth(t, s, key(0))
	cancel()
	wg.Wait()
	failed := 0
	for i := range workers {
		failed += failures[i]
		stood := 0
		for e, err := range s.Read(t.Context(), key(i), 1) {
			if err != nil {
				t.Fatal(err)
			}
			if stood++; e.N != int64(stood) || e.Turn != fmt.Sprintf("%s-%d", key(i), (stood-1)/2) {
				t.Fatalf("entry %d of %s is %+v", stood, key(i), e)
			}
		}
		spent, err := s.Spent(t.Context(), key(i), noonOfToday())
		if err != nil || stood != entries[i] || spent != int64(entries[i])/2*7 {
			t.Errorf("%s has %d entries and spent %d, %v; want %d, all paid for", key(i), stood, spent, err, entries[i])
		}
	}
	if failed == 0 {
		t.Error("nothing failed: the server was not killed under load")
	}
	t.Logf("%d calls failed and were repeated", failed)
}

// waitForGrowth waits until a session's log has grown by a few entries.
func waitForGrowth(t *testing.T, s *sqlstore.Store, key string) {
	t.Helper()
	failures, from := 0, int64(-1)
	retryUntilDone(t, &failures, func() error {
		list, err := s.List(t.Context(), "", 100)
		for _, info := range list {
			if info.Key != key {
				continue
			}
			if from < 0 {
				from = info.LastEntry
			}
			if info.LastEntry >= from+20 {
				return nil
			}
		}
		return errors.Join(errors.New("the log does not grow"), err)
	})
}

// The answer to each call is lost after the server has executed it. The repeated call succeeds, and nothing is
// done twice.
func TestLostAnswerIsRepeatedSafely(t *testing.T) {
	proxy, place := sqldbtest.NewProxy(t, sqldbtest.New(t))
	s := openTestStore(t, place)
	const key = "main:telegram:1"
	l, err := s.Open(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	step := func(n int) []sessions.Entry {
		id := fmt.Sprint("t", n)
		return []sessions.Entry{{Turn: id, Kind: sessions.KindUser, Cause: id}, {Turn: id, Kind: sessions.KindText}}
	}
	r := func(n int) sessions.Reservation {
		return sessions.Reservation{ID: fmt.Sprint("r", n), Person: "a", Tokens: 10, Cap: 1000, At: noonOfToday()}
	}
	at := l.Next()
	for _, c := range []struct {
		name string
		call func(n int) error
	}{
		{"append", func(n int) error { return l.Append(t.Context(), int64(2*n+1), step(n)...) }},
		{"append that raises the fence", func(n int) error {
			if err := l.(sessions.ReopenableLog).ReopenLater(int64(n + 2)); err != nil { //nolint:forcetypeassert // the conformance suite says so in words
				return err
			}
			return l.Append(t.Context(), int64(2*n+7), step(n+3)...)
		}},
		{"reserve", func(n int) error { return s.Reserve(t.Context(), r(n)) }},
		{"settle", func(n int) error { return s.Settle(t.Context(), r(n), 7) }},
		{"open", func(n int) error {
			_, err := s.Open(t.Context(), fmt.Sprint("main:telegram:o", n), 1)
			return err
		}},
	} {
		for n := range 3 {
			lost := n == 1 // the first call prepares the statement on its connection
			if lost {
				proxy.Lose()
			}
			if err := c.call(n); (err != nil) != lost {
				t.Fatalf("%s %d: %v", c.name, n, err)
			}
			if err := c.call(n); err != nil {
				t.Errorf("%s %d, repeated: %v", c.name, n, err)
			}
		}
	}
	if proxy.Lost() != 5 {
		t.Errorf("%d answers were lost, want one of each kind", proxy.Lost())
	}
	if at != 1 || l.Next() != 13 {
		t.Errorf("the log began at %d and goes on at %d, want 1 and 13", at, l.Next())
	}
	stood := 0
	for e, err := range s.Read(t.Context(), key, 1) {
		if stood++; err != nil || e.N != int64(stood) {
			t.Fatalf("entry %d is %+v, %v", stood, e, err)
		}
	}
	if spent, err := s.Spent(t.Context(), "a", noonOfToday()); err != nil || stood != 12 || spent != 21 {
		t.Errorf("%d entries stand and %d is spent, %v; want 12 and 21", stood, spent, err)
	}
}
