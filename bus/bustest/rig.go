package bustest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
)

const inbound = bus.InboundTopic

// A rig is one test's bus, with the steps that the tests share.
type rig struct {
	*testing.T
	harness Harness
	place   string
	options Options
	Bus
}

func newRig(t *testing.T, h Harness) *rig {
	return &rig{T: t, harness: h, place: h.NewPlace(t)}
}

// open opens r's bus, and closes it after the test.
func (r *rig) open(o Options) *rig {
	r.Helper()
	r.options = o
	r.Bus = r.openAnother()
	return r
}

// openAnother opens one more bus over the same data. Only a Shared harness can do so while
// the first is open.
func (r *rig) openAnother() Bus {
	r.Helper()
	b, err := r.harness.Open(r.Context(), r.place, r.options)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := b.Close(); err != nil {
			r.Errorf("close: %v", err)
		}
	})
	return b
}

// reopen closes r's bus and opens it again over the same data.
func (r *rig) reopen() {
	r.Helper()
	if err := r.Close(); err != nil {
		r.Fatalf("close: %v", err)
	}
	r.Bus = r.openAnother()
}

// noError fails the test on an error.
func (r *rig) noError(what string, err error) {
	r.Helper()
	if err != nil {
		r.Fatalf("%s: %v", what, err)
	}
}

// wantError fails the test unless err is want.
func (r *rig) wantError(what string, err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// publish publishes messages with those ids to a mailbox of topic inbound. It may be called
// from any goroutine, as may settle.
func (r *rig) publish(key string, ids ...string) {
	r.Helper()
	for _, id := range ids {
		if err := r.Publish(r.Context(), inbound, bus.Message{ID: id, Key: key, Body: []byte("body of " + id)}); err != nil {
			r.Errorf("publish %s: %v", id, err)
		}
	}
}

// claim claims the next mailbox of topic inbound.
func (r *rig) claim() bus.Lease {
	r.Helper()
	return r.claimOf(r.Bus, inbound)
}

// patience is how long a test waits for something before it fails.
const patience = 2 * time.Minute

// claimOf claims the next mailbox of a topic from b.
func (r *rig) claimOf(b Bus, topic bus.Topic) bus.Lease {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	l, err := b.Claim(ctx, topic)
	r.noError("claim", err)
	return l
}

// claimKey claims a mailbox, and fails the test if it is not that of key.
func (r *rig) claimKey(key string) bus.Lease {
	r.Helper()
	l := r.claim()
	for r.harness.Divided && l.Claim().Key != key { // another mailbox may be claimed earlier
		r.settle(l, bus.End{Uncounted: true})
		l = r.claim()
	}
	if got := l.Claim().Key; got != key {
		r.Fatalf("claimed %q, want %q", got, key)
	}
	return l
}

// wantNothingDue checks that no mailbox can be claimed for a while.
func (r *rig) wantNothingDue(topic bus.Topic, while time.Duration) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), while)
	defer cancel()
	l, err := r.Claim(ctx, topic)
	if err == nil {
		r.Fatalf("claimed %q, want nothing to be due", l.Claim().Key)
	}
	r.wantError("claim", err, context.DeadlineExceeded)
}

// wantMail reads the messages of a lease whose numbers are greater than after, checks that they
// have these ids, and returns the last number. It waits until it has as many messages as there are
// ids.
func (r *rig) wantMail(l bus.Lease, after int64, ids ...string) int64 {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var got []string
	for len(got) < len(ids) {
		page, err := AwaitMail(ctx, l, after)
		r.noError("mail", err)
		for _, m := range page {
			if m.Seq <= after {
				r.Fatalf("message %s has number %d, not beyond %d", m.ID, m.Seq, after)
			}
			if m.Key != l.Claim().Key || string(m.Body) != "body of "+m.ID {
				r.Fatalf("message %s is %q under %q, not as published", m.ID, m.Body, m.Key)
			}
			got, after = append(got, m.ID), m.Seq
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(ids) {
		r.Fatalf("mail is %v, want %v", got, ids)
	}
	return after
}

// settle settles a lease, and fails the test if that fails.
func (r *rig) settle(l bus.Lease, end bus.End) {
	r.Helper()
	if err := l.Settle(r.Context(), end); err != nil {
		r.Errorf("settle: %v", err)
	}
}

// finish claims the next mailbox, checks that it has that key and exactly these messages, and settles all of them.
func (r *rig) finish(key string, ids ...string) {
	r.Helper()
	l := r.claimKey(key)
	r.settle(l, bus.End{Done: r.wantMail(l, 0, ids...)})
}

// wantAttempts checks how often a mailbox was claimed.
func (r *rig) wantAttempts(l bus.Lease, want int) {
	r.Helper()
	if got := l.Claim().Attempts; got != want {
		r.Fatalf("attempt %d, want %d", got, want)
	}
}

// wantNothingLeft checks that the bus keeps nothing for any mailbox, beside dead letters.
func (r *rig) wantNothingLeft() {
	r.Helper()
	if left := r.harness.Residue(r, r.place, r.Bus); len(left) > 0 {
		r.Errorf("left behind: %v", left)
	}
}

// await waits until cond returns true, and fails the test if it does not.
func (r *rig) await(what string, cond func() bool) {
	r.Helper()
	Await(r, what, cond)
}

// Await waits until cond returns true, and fails the test if that takes longer than patience.
func Await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// AwaitMail returns the messages of a lease whose numbers are greater than after, and waits for them.
func AwaitMail(ctx context.Context, l bus.Lease, after int64) ([]bus.Message, error) {
	came := make(chan struct{}, 1)
	stop := l.OnMail(func() {
		select {
		case came <- struct{}{}:
		default: // more mail is known already
		}
	})
	defer stop()
	for {
		mail, err := l.Mail(ctx, after)
		if err != nil || len(mail) > 0 {
			return mail, err
		}
		select {
		case <-came:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// waitIdle waits, in a synctest bubble, until every other goroutine waits too.
func (r *rig) waitIdle() {
	if r.harness.Simulated {
		synctest.Wait()
	}
}
