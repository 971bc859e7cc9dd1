package redisbus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/redisbus"
)

// A claimed is a lease and the name of the process that has it.
type claimed struct {
	by    string
	lease bus.Lease
}

// claimAll makes a process claim mailboxes, as soon as it can, until the test ends.
func (r *rig) claimAll(by string, b *redisbus.Bus, to chan<- claimed) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			l, err := b.Claim(ctx, inbound)
			if err != nil {
				return
			}
			select {
			case to <- claimed{by, l}:
			case <-ctx.Done():
				return
			}
		}
	}()
	r.Cleanup(func() {
		cancel()
		<-ended
	})
}

// next returns the next lease, and fails the test if it is late.
func (r *rig) next(from <-chan claimed) claimed {
	r.Helper()
	select {
	case c := <-from:
		return c
	case <-time.After(patience):
		r.Fatal("nobody claims the mailbox")
		return claimed{}
	}
}

// New messages of a session go to the process that had it last, even if others wait, too. So does the rest of a
// mailbox after that process settles a part.
func TestMailGoesToWhoHadTheSessionLast(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	got := make(chan claimed)
	for _, name := range []string{"b", "c", "d"} {
		r.claimAll(name, r.another(testLease, newNetwork()), got)
	}
	r.claimAll("a", r.Bus, got)
	last := map[string]string{}
	for round := range 20 {
		for key := range 10 {
			key := fmt.Sprint("k", key)
			first, second := fmt.Sprintf("%s/%d", key, round), fmt.Sprintf("%s/%d'", key, round)
			r.publish(key, first)
			c := r.next(got)
			if round > 0 && c.by != last[key] {
				t.Errorf("%s goes to %s, and %s had its session last", first, c.by, last[key])
			}
			mail := r.mailAfter(c.lease, 0)
			r.publish(key, second)
			r.ok("settle", c.lease.Settle(t.Context(), bus.End{Done: mail[0].Seq}))
			again := r.next(got)
			if again.by != c.by {
				t.Errorf("%s goes to %s, and %s had its session last", second, again.by, c.by)
			}
			r.finish(again.lease, second)
			last[key] = again.by
		}
	}
	many := map[string]bool{}
	for _, by := range last {
		many[by] = true
	}
	if len(many) < 2 {
		t.Errorf("all sessions are new, and all go to %v", many)
	}
}

// A process that doesn't wait for messages, or is closed, declines what is offered to it, and others get it.
func TestAnOfferIsDeclined(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	other := r.another(testLease, newNetwork())
	r.publish("k", "a")
	r.finish(r.claim("k"), "a")
	got := make(chan claimed)
	r.claimAll("other", other, got)
	r.publish("k", "b")
	c := r.next(got)
	r.ok("close", r.Bus.Close())
	r.finish(c.lease, "b")

	third := r.another(testLease, newNetwork())
	r.Bus = third
	r.publish("l", "c")
	r.finish(r.next(got).lease, "c")
	r.ok("close", other.Close())
	r.publish("l", "d")
	r.finish(r.claim("l"), "d")
}

// An offer to a process that hangs or hears nothing expires soon, and other processes claim the mailbox.
func TestAnOfferThatIsNotHeard(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	const still = "stands-still"
	heard := r.redis.Subscribe(t.Context(), "parley:{0}:notes:"+still)
	defer func() { _ = heard.Close() }()
	_, err := heard.Receive(t.Context())
	r.ok("subscribe", err)
	r.publish("k", "a")
	r.finish(r.claim("k"), "a")
	for _, key := range r.redis.Keys(t.Context(), "parley:{0}:last:*").Val() {
		r.ok("set", r.redis.Set(t.Context(), key, still, 0).Err())
	}
	got := make(chan claimed)
	r.claimAll("a", r.Bus, got)
	r.publish("k", "b")
	if m, err := heard.ReceiveMessage(t.Context()); err != nil || m.Payload != "offer 7 inboundk" {
		t.Errorf("the process that had it last hears %v, %v", m, err)
	}
	r.finish(r.next(got).lease, "b")
}

// Offers don't change the order: a mailbox that was due before an offered one is claimed before it.
func TestOffersKeepTheirPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	r.publish("offered", "a")
	r.finish(r.claim("offered"), "a")
	r.publish("first", "b")
	r.publish("second", "c")
	r.publish("offered", "d")
	for _, key := range []string{"first", "second", "offered"} {
		r.claim(key)
	}
}

// A process with far more work than others declines its offers.
func TestAProcessWithFarMoreToDoDeclines(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	const most = 120
	for n := range most {
		r.publish(fmt.Sprint("k", n), fmt.Sprint("a", n))
	}
	var held []bus.Lease
	for n := range most {
		held = append(held, r.claim(fmt.Sprint("k", n)))
	}
	got := make(chan claimed)
	r.claimAll("other", r.another(testLease, newNetwork()), got)
	r.await("both to be counted", func() bool {
		return r.redis.PubSubNumSub(t.Context(), "parley:{0}:claimers:inbound").Val()["parley:{0}:claimers:inbound"] == 2
	})
	r.publish("new", "b")
	r.finish(r.next(got).lease, "b")
	r.finish(held[0], "a0")
	r.claimAll("mine", r.Bus, got)
	// The process has claimed something before it knows how much work the others have.
	deadline := time.Now().Add(patience)
	for n := 0; ; n++ {
		id := fmt.Sprint("c", n)
		r.publish("k0", id)
		c := r.next(got)
		r.finish(c.lease, id)
		if c.by == "other" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it has taken what was offered to it %d times", n)
		}
	}
}
