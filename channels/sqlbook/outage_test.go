package sqlbook_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels"
	"parley/sessions/sqldb/sqldbtest"
)

// The answer to each call is lost after the server has executed it. The repeated call succeeds. If Begin is
// repeated, it reports the send as new, although the first call has recorded it, so that the send does not
// count as cut off.
func TestLostAnswerIsRepeatedSafely(t *testing.T) {
	proxy, place := sqldbtest.NewProxy(t, sqldbtest.New(t))
	b := openBook(t, place)
	defer b.Close()
	send := func(n int) channels.Send {
		return channels.Send{ID: fmt.Sprint("m", n), Parts: []channels.SentPart{{Text: "one"}, {Text: "two"}}}
	}
	var codes [3]string
	for name, call := range map[string]func(n int) error{
		"begin": func(n int) error {
			_, fresh, err := b.Begin(t.Context(), send(n))
			if err == nil && !fresh {
				t.Errorf("message %d was begun by nobody else and is not fresh", n)
			}
			return err
		},
		"ask": func(n int) error {
			p, err := b.RequestPairing(t.Context(), fmt.Sprint("c:", n), "c:1")
			if codes[n] != "" && codes[n] != p.Code {
				t.Errorf("request %d has another code when it is repeated", n)
			}
			codes[n] = p.Code
			return err
		},
	} {
		for n := range 3 {
			lost := n == 1 // the first call prepares the statements on its connection
			if lost {
				proxy.Lose()
			}
			if err := call(n); (err != nil) != lost {
				t.Fatalf("%s %d: %v", name, n, err)
			}
			if lost {
				if err := call(n); err != nil {
					t.Errorf("%s %d, repeated: %v", name, n, err)
				}
			}
		}
	}
	proxy.Lose()
	sent := channels.SentPart{State: channels.Sent, PlatformID: "p"}
	if err := b.Mark(t.Context(), "m1", 0, sent); err == nil {
		t.Error("a mark whose answer was lost passed")
	}
	if err := b.Mark(t.Context(), "m1", 0, sent); err != nil {
		t.Errorf("a mark, repeated: %v", err)
	}
	if known, fresh, err := b.Begin(t.Context(), send(1)); err != nil || fresh || known.State() != channels.Queued || known.Parts[0].PlatformID != "p" {
		t.Errorf("what was begun and marked is %+v, fresh %v, %v", known, fresh, err)
	}
}

// If the answer to an admission is lost, the admission still counts. The caller learns that immediately or, if
// the server can't be asked either, with the next attempt. For others the code is used up.
func TestAnAdmissionWithALostAnswerSucceeds(t *testing.T) {
	proxy, place := sqldbtest.NewProxy(t, sqldbtest.New(t))
	b := openBook(t, place)
	defer b.Close()
	request := func(t *testing.T, who string) channels.Admission {
		p, err := b.RequestPairing(t.Context(), who, who)
		if err != nil {
			t.Fatal(err)
		}
		return channels.Admission{Code: p.Code}
	}
	offer := func(t *testing.T, who string) channels.Admission {
		code, err := b.OfferOwner(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		// This prepares the statements on the connection: from now on each has one answer.
		if _, err := b.Admit(t.Context(), channels.Admission{Code: "WRONG", Person: who}); !errors.Is(err, channels.ErrNoCode) {
			t.Fatal(err)
		}
		return channels.Admission{Code: code, Person: who, Chat: who}
	}
	for name, c := range map[string]struct {
		code   func(t *testing.T, who string) channels.Admission
		passes int // how many answers to let through, up to that of the commit
	}{"request": {request, 0}, "offer": {offer, 1}} {
		t.Run(name, func(t *testing.T) {
			for i, losses := range []int{1, 2} {
				who := fmt.Sprintf("c:%s-%d", name, i)
				by := c.code(t, who)
				before := proxy.Lost()
				proxy.LoseAfter(c.passes)
				if losses == 2 {
					proxy.Lose() // the answer to the query that checks what became of it
				}
				p, err := b.Admit(t.Context(), by)
				if (err != nil) != (losses == 2) || errors.Is(err, channels.ErrNoCode) {
					t.Fatalf("%d lost: %+v, %v", losses, p, err)
				}
				if proxy.Lost() != before+int64(losses) {
					t.Fatalf("%d answers were lost, want %d", proxy.Lost()-before, losses)
				}
				if losses == 2 {
					p, err = b.Admit(t.Context(), by)
				}
				if err != nil || p.Person != who || !p.Approved || p.Owner != (name == "offer") {
					t.Errorf("%d lost: %+v, %v", losses, p, err)
				}
				if name == "offer" {
					by.Person, by.Chat = "c:thief", "c:thief"
				}
				if _, err := b.Admit(t.Context(), by); !errors.Is(err, channels.ErrNoCode) {
					t.Errorf("a code was used twice: %v", err)
				}
				if err := b.Revoke(t.Context(), who); err != nil { // otherwise the next code could make no owner
					t.Error(err)
				}
			}
		})
	}
}

// Messages are begun and marked while the server is killed again and again. Each call is repeated until it is
// acknowledged. Nothing that was acknowledged is lost.
func TestServerIsKilledUnderLoad(t *testing.T) {
	server := sqldbtest.Start(t)
	b := openBook(t, server.URL())
	defer b.Close()
	var failures, done atomic.Int64
	insist := func(try func() error) {
		deadline := time.After(30 * time.Second)
		for tick := time.Tick(5 * time.Millisecond); ; {
			err := try()
			if err == nil {
				return
			}
			failures.Add(1)
			select {
			case <-tick:
			case <-deadline:
				t.Error(err)
				return
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	const workers = 30
	var counts [workers]int
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for ; ctx.Err() == nil; done.Add(1) {
				id := fmt.Sprintf("m%d-%d", i, counts[i])
				send := channels.Send{ID: id, Parts: []channels.SentPart{{Text: "one"}, {Text: "two"}}}
				fresh := false
				insist(func() (err error) {
					_, fresh, err = b.Begin(t.Context(), send)
					return err
				})
				if !fresh {
					t.Errorf("%s was begun by nobody else and is not fresh", id)
				}
				insist(func() error {
					return b.Mark(t.Context(), id, 0, channels.SentPart{State: channels.Sent, PlatformID: id})
				})
				counts[i]++
			}
		})
	}
	grown := func() {
		from := done.Load()
		insist(func() error {
			if done.Load() < from+100 {
				return fmt.Errorf("messages do not get through")
			}
			return nil
		})
	}
	for range 2 {
		grown()
		server.Kill()
		server.Restart()
	}
	grown()
	cancel()
	wg.Wait()
	for i, n := range counts {
		for j := range n {
			id := fmt.Sprintf("m%d-%d", i, j)
			send, err := b.Lookup(t.Context(), id)
			if err != nil || len(send.Parts) != 2 || send.Parts[0].PlatformID != id || send.Parts[1].State != channels.Queued {
				t.Fatalf("%s is %+v, %v", id, send, err)
			}
		}
	}
	if failures.Load() == 0 {
		t.Error("nothing failed: the server was not killed under load")
	}
	if _, fresh, err := b.Begin(t.Context(), channels.Send{ID: "m0-0"}); fresh || err != nil {
		t.Errorf("a message that is known is fresh: %v, %v", fresh, err)
	}
}
