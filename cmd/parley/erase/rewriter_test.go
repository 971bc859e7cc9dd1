package erase_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channelstest"
	"parley/cmd/parley/erase"
	"parley/cmd/parley/hometest"
)

// However many people erase what they said, and however often, the home's database is rewritten once
// in a while for all of them, and the words of none are left in it. A process that dies before that
// leaves it to the next one.
func TestTheFileIsRewrittenForManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := hometest.Open(t, dir)
		working, sending := h.RunWorker(nil), h.RunDispatcher(channelstest.NewMemoryChannel())
		const people = 6
		for n := range people {
			h.Say(fmt.Sprint("m", n), fmt.Sprint(n), fmt.Sprint(n), fmt.Sprintf("find %s-%d-", secret, n))
		}
		synctest.Wait()
		working()
		sending()
		isLeft := func(n int) bool {
			return len(hometest.FilesContaining(t, dir, fmt.Sprintf("%s-%d-", secret, n))) > 0
		}
		before := hometest.Rewritings(t, dir)
		wantRewritten := func(when string, want int) {
			t.Helper()
			if n := hometest.Rewritings(t, dir) - before; n != want {
				t.Fatalf("%s the file was rewritten %d times, want %d", when, n, want)
			}
		}
		var rewriter *erase.Rewriter
		run := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			rewriter = erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler))
			var running sync.WaitGroup
			running.Go(func() { _ = rewriter.Run(ctx) })
			synctest.Wait()
			return func() { cancel(); running.Wait() }
		}
		forget := func(n int) {
			t.Helper()
			c := config(h)
			c.Rewriter = rewriter
			r, err := erase.New(c).PersonSoon(t.Context(), fmt.Sprint("telegram:", n))
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Log.Sessions) != 1 || !strings.Contains(r.String(), "within about 11 minutes") {
				t.Errorf("the receipt is %s", r.String())
			}
			synctest.Wait()
		}
		stop := run()
		wantRewritten("at a start", 0)
		forget(0)
		wantRewritten("for the first", 1)
		for n := 1; n < people-2; n++ {
			forget(n)
		}
		wantRewritten("for those who follow", 1)
		if !isLeft(1) {
			t.Error("nothing is left before the file is rewritten: the test cannot fail")
		}
		<-time.After(rewriter.Within() + time.Second)
		synctest.Wait()
		wantRewritten("for all of these", 2)
		<-time.After(time.Hour)
		wantRewritten("with nothing left", 2)

		forget(people - 2)
		forget(people - 1)
		wantRewritten("for the first after a while", 3)
		stop() // and what the last has erased is left
		stop = run()
		wantRewritten("by the next process", 4)
		stop()
		run()()
		wantRewritten("by another one", 4)
		for n := range people {
			if isLeft(n) {
				t.Errorf("what person %d said is left", n)
			}
		}
	})
}

// Of a memory that was erased nothing is left after the next start, if this process dies before the file
// is rewritten.
func TestAMemoryIsErasedAlsoIfTheProcessDies(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := hometest.Open(t, dir)
		const anna = "telegram:1"
		err := h.Book.Remember(t.Context(), channels.OfPerson, anna, "call", false, false, func(string) (string, error) { return secret, nil })
		if err != nil {
			t.Fatal(err)
		}
		died := erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler))
		if err := died.Erase(t.Context(), func(ctx context.Context) (bool, error) { return true, h.Book.Forget(ctx, channels.OfPerson, anna) }); err != nil {
			t.Fatal(err)
		}
		if len(hometest.FilesContaining(t, dir, secret)) == 0 {
			t.Error("nothing is left before the file is rewritten: the test cannot fail")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler)).Run(ctx) })
		synctest.Wait()
		cancel()
		running.Wait()
		for _, text := range []string{secret, anna} {
			if left := hometest.FilesContaining(t, dir, text); len(left) > 0 {
				t.Errorf("%q is left in %q", text, left)
			}
		}
	})
}

// An erasure that fails may have erased something already, so the file is rewritten.
func TestTheFileIsRewrittenAfterAnErasureThatFails(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := hometest.Open(t, dir)
		rewriter := erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler))
		broken, calls := fmt.Errorf("the disk is away"), 0
		err := rewriter.Erase(t.Context(), func(context.Context) (bool, error) { calls++; return false, broken })
		if err == nil || calls != 1 {
			t.Fatalf("erased %d times, %v", calls, err)
		}
		before := hometest.Rewritings(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = rewriter.Run(ctx) })
		synctest.Wait()
		cancel()
		running.Wait()
		if n := hometest.Rewritings(t, dir) - before; n != 1 {
			t.Errorf("after an erasure that has failed half way the file was rewritten %d times, want once", n)
		}
	})
}
