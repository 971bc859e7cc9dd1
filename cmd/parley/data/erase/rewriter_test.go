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

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/cmd/parley/data/erase"
	"parley/cmd/parley/hometest"
)

// aMoment is longer than the pause without writes after which the file is rewritten.
const aMoment = 3 * time.Second

// The database is rewritten once in a while for all erasures of that time, and keeps none of the erased words. If the
// process dies before that, the next one rewrites it.
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
			if len(r.Log.Sessions) != 1 || !strings.Contains(r.String(), "within about 21 minutes") {
				t.Errorf("the receipt is %s", r.String())
			}
			synctest.Wait()
			<-time.After(aMoment)
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
		stop() // and the words of the last erasure are left
		stop = run()
		<-time.After(aMoment)
		synctest.Wait()
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

// If the process dies before it rewrites the file, the next start does, and nothing of an erased memory remains.
func TestAMemoryIsErasedAlsoIfTheProcessDies(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := hometest.Open(t, dir)
		const anna = "telegram:1"
		err := h.Book.Remember(t.Context(), channels.ScopePerson, anna, "call", false, false, func(string) (string, error) { return secret, nil })
		if err != nil {
			t.Fatal(err)
		}
		died := erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler))
		if err := died.Erase(t.Context(), func(ctx context.Context) (bool, error) { return true, h.Book.Forget(ctx, channels.ScopePerson, anna) }); err != nil {
			t.Fatal(err)
		}
		if len(hometest.FilesContaining(t, dir, secret)) == 0 {
			t.Error("nothing is left before the file is rewritten: the test cannot fail")
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler)).Run(ctx) })
		<-time.After(aMoment)
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

// The file is rewritten after an erasure that fails, because it may have erased something already.
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
		<-time.After(aMoment)
		synctest.Wait()
		cancel()
		running.Wait()
		if n := hometest.Rewritings(t, dir) - before; n != 1 {
			t.Errorf("after an erasure that has failed half way the file was rewritten %d times, want once", n)
		}
	})
}

// An erasure returns its receipt before the file is rewritten. The rewriting waits until nobody writes, but not
// forever.
func TestTheFileIsRewrittenWhenNobodyWrites(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := hometest.Open(t, dir)
		c := config(h)
		c.Rewriter = erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = c.Rewriter.Run(ctx) })
		defer running.Wait()
		defer cancel()
		working, sending := h.RunWorker(nil), h.RunDispatcher(channelstest.NewMemoryChannel())
		h.Say("m", "1", "1", "find "+secret)
		h.Say("n", "2", "2", "find "+secret)
		synctest.Wait()
		working()
		sending()
		before := hometest.Rewritings(t, dir)
		forget := func(chat string) {
			t.Helper()
			if r, err := erase.New(c).SessionSoon(t.Context(), hometest.Key(t, chat)); err != nil || len(r.Log.Sessions) != 1 || !strings.Contains(r.String(), "when nothing else is writing to them") {
				t.Fatal(r.String(), err)
			}
		}
		writeFor := func(lasts time.Duration) {
			t.Helper()
			for end := time.Now().Add(lasts); time.Now().Before(end); <-time.After(time.Second) {
				if err := h.Book.SetNote(t.Context(), "busy", "x", time.Now().String()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		forget("1")
		writeFor(time.Minute)
		if n := hometest.Rewritings(t, dir) - before; n != 0 {
			t.Errorf("it was rewritten %d times while somebody wrote", n)
		}
		<-time.After(aMoment)
		synctest.Wait()
		if n := hometest.Rewritings(t, dir) - before; n != 1 {
			t.Errorf("it was rewritten %d times once nobody wrote", n)
		}
		forget("2")
		writeFor(c.Rewriter.Within() + time.Minute)
		if n := hometest.Rewritings(t, dir) - before; n != 2 {
			t.Errorf("it was rewritten %d times, though somebody writes all the time", n)
		}
	})
}

// A short process that has the home for itself rewrites the file when it ends.
func TestAShortProcessRewritesTheFileAtItsEnd(t *testing.T) {
	dir := t.TempDir()
	h := hometest.Open(t, dir)
	c := config(h)
	c.Rewriter = erase.NewRewriter(h.Store, false, slog.New(slog.DiscardHandler))
	stop := h.RunWorker(nil)
	h.Say("m", "1", "1", "find "+secret)
	h.WaitIdle(bus.InboundTopic)
	stop()
	before := hometest.Rewritings(t, dir)
	if _, err := erase.New(c).SessionSoon(t.Context(), hometest.Key(t, "1")); err != nil {
		t.Fatal(err)
	}
	if n := hometest.Rewritings(t, dir) - before; n != 0 {
		t.Errorf("it was rewritten %d times before the receipt", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Rewriter.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if n := hometest.Rewritings(t, dir) - before; n != 1 || len(hometest.FilesContaining(t, dir, secret)) > 0 {
		t.Errorf("it was rewritten %d times at the end, and what is erased is left in %q", n, hometest.FilesContaining(t, dir, secret))
	}
}
