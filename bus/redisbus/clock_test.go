package redisbus_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/bus"
)

// setBack makes the server's clock lag behind all numbers, as if it had been an hour ahead and was corrected. At that
// moment the clock also seems to have been set forward.
func (r *rig) setBack() {
	r.Helper()
	r.ok("set", r.redis.Set(r.Context(), "parley:{0}:clock", time.Now().Add(time.Hour).UnixMicro(), 0).Err())
}

func TestClockSetBack(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	r := newRig(t, lease)
	other := r.another(lease, newNetwork())
	r.publish("works", "a")
	works, err := other.Claim(t.Context(), inbound)
	r.ok("claim", err)
	r.publish("dies", "b")
	dies := r.claim("dies")
	r.setBack()
	r.checkHeld(works)
	r.checkHeld(dies)
	other.Emit(bus.Event{Type: bus.TurnStart, Session: "works"})

	claim := func(key string, most time.Duration) bus.Lease {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), most)
		defer cancel()
		l, err := other.Claim(ctx, inbound)
		r.ok("claim "+key, err)
		if got := l.Claim(); got.Key != key || got.Fence < time.Now().Add(50*time.Minute).UnixMicro() {
			t.Errorf("claimed %+v, want %s under a fence above those before", got, key)
		}
		return l
	}
	r.network.cut()
	l := claim("dies", 5*lease) // nobody works on it anymore
	r.checkHeld(works)
	r.network.restore()

	r.ok("settle", l.Settle(t.Context(), bus.End{After: 600 * time.Millisecond}))
	start := time.Now()
	l = claim("dies", 5*lease)
	if took := time.Since(start); took < 500*time.Millisecond {
		t.Errorf("what is to be tried in 600ms is after %v", took)
	}
	r.ok("settle", l.Settle(t.Context(), bus.End{Done: 1 << 60}))
	start = time.Now()
	r.ok("publish", r.Publish(t.Context(), inbound, bus.Message{ID: "c", Key: "later", NotBefore: start.Add(800 * time.Millisecond)}))
	l = claim("later", 5*lease)
	if took := time.Since(start); took < 700*time.Millisecond {
		t.Errorf("what is due in 800ms is after %v", took)
	}
	r.ok("settle", l.Settle(t.Context(), bus.End{Done: 1 << 60}))
	r.checkHeld(works)
	d, err := r.Depth(t.Context(), inbound)
	r.ok("depth", err)
	if d.Leased != 1 || d.Delayed != 0 || d.Oldest <= 0 {
		t.Errorf("depth is %+v", d)
	}
}

// Dead letters and forgetting don't depend on the server's clock alone.
func TestClockSetBackAndTheDead(t *testing.T) {
	t.Parallel()
	r := newRig(t, testLease)
	r.setBack()
	var want []string
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		r.publish(key, key+"1", key+"2", key+"3", key+"4")
	}
	for _, key := range keys {
		l := r.claim(key)
		r.ok("settle", l.Settle(t.Context(), bus.End{Dead: r.mailAfter(l, 0)[2].Seq, Reason: "no"}))
		want = append(want, key+"1", key+"2", key+"3")
	}
	var got []string
	for after := ""; ; after = got[len(got)-1] {
		page, err := r.DeadLetters(t.Context(), inbound, after, 1)
		r.ok("dead letters", err)
		if len(page) == 0 {
			break
		}
		got = append(got, page[0].Message.ID)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("dead letters are %v, want %v", got, want)
	}
	n, err := r.Forget(t.Context(), func(bus.Topic, bus.Message) bool { return true })
	r.ok("forget", err)
	if n.Messages != len(keys) || n.DeadLetters != len(want) {
		t.Errorf("forgot %+v, want all", n)
	}
	r.idle()
}
